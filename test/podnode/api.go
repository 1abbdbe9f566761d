// Package podnode is a stand-in for Kubernetes as an agent on a node sees it: an API server over
// HTTP that has pods and nothing else, and the kubelet of one node, which runs the pods' commands
// as processes.
//
// It is neither. The API server checks of a pod what this package knows of, keeps everything in
// memory, and lets everybody do everything. The kubelet has no images and no containers: a command
// runs with the host's own files, as one session of processes that are known by their environment,
// its pauses are fractions of a second, and pod networks, probes, init containers and eviction by
// itself are missing. It shows that whoever makes pods speaks to the API rightly and goes by what
// pods go through. That a real kubelet takes those pods it does not show: tests of Kubernetes
// itself do.
package podnode

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// API is the stand-in for an API server.
type API struct {
	server *httptest.Server

	mu      sync.Mutex
	version int
	pods    map[types.NamespacedName]*corev1.Pod
	log     []event
	changed chan struct{}
	down    bool
	held    bool
	// requests are what was asked for, such as "DELETE default/x", but not what is only read.
	requests []string
	// refuse, when not nil, says why a pod may not be made.
	refuse func(*corev1.Pod) error
}

// event is one change of a pod.
type event struct {
	kind    string
	version int
	pod     *corev1.Pod
}

// NewAPI starts an API server, which ends with the test.
func NewAPI(t *testing.T) *API {
	t.Helper()
	a := &API{version: 100, pods: map[types.NamespacedName]*corev1.Pod{}, changed: make(chan struct{})}
	a.server = httptest.NewServer(a)
	t.Cleanup(func() {
		a.server.CloseClientConnections()
		a.server.Close()
	})
	return a
}

// Config leads to the server. A client's idle connections end with the test that made it.
func (a *API) Config(t *testing.T) *rest.Config {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &rest.Config{Host: a.server.URL, Transport: transport, QPS: -1}
}

// SetDown has the server answer nothing, and end all watches.
func (a *API) SetDown(down bool) {
	a.mu.Lock()
	a.down = down
	a.wake()
	a.mu.Unlock()
}

// Hold keeps all news from who watches.
func (a *API) Hold(held bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held = held
	a.wake()
}

// Refuse has pods refused for which why says so.
func (a *API) Refuse(why func(*corev1.Pod) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refuse = why
}

// Requests are the writes so far that did something, such as "DELETE default/x".
func (a *API) Requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests)
}

// Pod is a pod as it is now; nil when there is none.
func (a *API) Pod(namespace, name string) *corev1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pods[types.NamespacedName{Namespace: namespace, Name: name}].DeepCopy()
}

// Delete deletes a pod as 'kubectl delete pod' does; with no grace as 'kubectl delete --force'
// does, which takes it from the API while its processes run.
func (a *API) Delete(t *testing.T, namespace, name string, grace int64) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if err := a.delete(key, &metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
		t.Error(err)
	}
}

// Create makes a pod as others do.
func (a *API) Create(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.create(pod); err != nil {
		t.Error(err)
	}
}

// Change changes a pod in any way.
func (a *API) Change(t *testing.T, namespace, name string, change func(*corev1.Pod)) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	pod := a.pods[types.NamespacedName{Namespace: namespace, Name: name}]
	if pod == nil {
		t.Errorf("there is no pod %s", name)
		return
	}
	pod = pod.DeepCopy()
	change(pod)
	a.put("MODIFIED", pod)
}

// problem is an answer that says no.
type problem struct {
	code   int32
	reason metav1.StatusReason
	text   string
}

func (p *problem) Error() string { return p.text }

// put makes a version of a pod. The caller holds the lock.
func (a *API) put(kind string, pod *corev1.Pod) {
	a.version++
	pod.ResourceVersion = strconv.Itoa(a.version)
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	if kind == "DELETED" {
		delete(a.pods, key)
	} else {
		a.pods[key] = pod
	}
	a.log = append(a.log, event{kind, a.version, pod})
	a.wake()
}

func (a *API) wake() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// remove takes a pod from the API, as the kubelet does when all has ended.
func (a *API) remove(pod *corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if have := a.pods[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]; have != nil && have.UID == pod.UID {
		a.put("DELETED", have.DeepCopy())
	}
}

// setStatus writes the status of a pod, as the kubelet does: conditions of others stay.
func (a *API) setStatus(pod *corev1.Pod, change func(*corev1.PodStatus)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	have := a.pods[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]
	if have == nil || have.UID != pod.UID {
		return
	}
	have = have.DeepCopy()
	change(&have.Status)
	a.put("MODIFIED", have)
}

func (a *API) create(pod *corev1.Pod) (*corev1.Pod, error) {
	if err := validate(pod); err != nil {
		text := "Pod " + pod.Name + " is invalid: " + err.Error()
		return nil, &problem{http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, text}
	}
	if a.refuse != nil {
		if err := a.refuse(pod); err != nil {
			text := "pods " + pod.Name + " is forbidden: " + err.Error()
			return nil, &problem{http.StatusForbidden, metav1.StatusReasonForbidden, text}
		}
	}
	if a.pods[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] != nil {
		return nil, &problem{http.StatusConflict, metav1.StatusReasonAlreadyExists, "pods " + pod.Name + " already exists"}
	}
	pod.UID, pod.CreationTimestamp = types.UID(uuid.NewString()), metav1.Now().Rfc3339Copy()
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(30))
	}
	a.put("ADDED", pod)
	return pod, nil
}

// delete does what the API server does: a pod whose kubelet has something to end only gets a time.
func (a *API) delete(key types.NamespacedName, opts *metav1.DeleteOptions) error {
	pod := a.pods[key]
	if pod == nil {
		return &problem{http.StatusNotFound, metav1.StatusReasonNotFound, "pods " + key.Name + " not found"}
	}
	if p := opts.Preconditions; p != nil && p.UID != nil && *p.UID != pod.UID {
		return &problem{http.StatusConflict, metav1.StatusReasonConflict, "the UID in the precondition is another one"}
	}
	grace := *pod.Spec.TerminationGracePeriodSeconds
	if opts.GracePeriodSeconds != nil {
		grace = *opts.GracePeriodSeconds
	}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		grace = 0
	}
	pod = pod.DeepCopy()
	if grace == 0 {
		a.put("DELETED", pod)
		return nil
	}
	if pod.DeletionTimestamp != nil && *pod.DeletionGracePeriodSeconds <= grace {
		return nil // it has ended sooner
	}
	pod.DeletionTimestamp = ptr.To(metav1.NewTime(time.Now().Add(time.Duration(grace) * time.Second)))
	pod.DeletionGracePeriodSeconds = &grace
	a.put("MODIFIED", pod)
	return nil
}

// patch changes a pod by a strategic merge patch; status alone, or all but the status.
func (a *API) patch(key types.NamespacedName, patch []byte, status bool) (*corev1.Pod, error) {
	have := a.pods[key]
	if have == nil {
		return nil, &problem{http.StatusNotFound, metav1.StatusReasonNotFound, "pods " + key.Name + " not found"}
	}
	old, err := json.Marshal(have)
	if err != nil {
		return nil, err
	}
	text, err := strategicpatch.StrategicMergePatch(old, patch, corev1.Pod{})
	if err != nil {
		return nil, &problem{http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error()}
	}
	now := &corev1.Pod{}
	if err := json.Unmarshal(text, now); err != nil {
		return nil, &problem{http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error()}
	}
	if now.UID != have.UID {
		return nil, &problem{http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "metadata.uid: field is immutable"}
	}
	is := have.DeepCopy()
	if status {
		is.Status = now.Status
	} else {
		is.Labels, is.Annotations = now.Labels, now.Annotations
	}
	a.put("MODIFIED", is)
	return is, nil
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	down := a.down
	a.mu.Unlock()
	if down {
		answer(w, nil, &problem{http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the server is down"})
		return
	}
	path, found := strings.CutPrefix(r.URL.Path, "/api/v1/")
	if !found {
		http.NotFound(w, r)
		return
	}
	if path == "pods" && r.Method == http.MethodGet {
		a.list(w, r)
		return
	}
	parts := strings.Split(path, "/") // namespaces/NS/pods[/NAME[/status]]
	if len(parts) < 3 || parts[0] != "namespaces" || parts[2] != "pods" {
		http.NotFound(w, r)
		return
	}
	key := types.NamespacedName{Namespace: parts[1]}
	if len(parts) > 3 {
		key.Name = parts[3]
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	out, err := a.write(r.Method, key, body, len(parts) > 4)
	answer(w, out, err)
}

// write carries out a request about one pod.
func (a *API) write(method string, key types.NamespacedName, body []byte, status bool) (out any, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() {
		if err == nil && method != http.MethodGet {
			a.requests = append(a.requests, method+" "+key.String())
		}
	}()
	switch method {
	case http.MethodGet:
		if pod := a.pods[key]; pod != nil {
			return pod, nil
		}
		return nil, &problem{http.StatusNotFound, metav1.StatusReasonNotFound, "pods " + key.Name + " not found"}
	case http.MethodPost:
		pod := &corev1.Pod{}
		if err := strict(body, pod); err != nil {
			return nil, &problem{http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error()}
		}
		key.Name = pod.Name
		return a.create(pod)
	case http.MethodPatch:
		return a.patch(key, body, status)
	case http.MethodDelete:
		opts := &metav1.DeleteOptions{}
		if err := json.Unmarshal(body, opts); len(body) > 0 && err != nil {
			return nil, &problem{http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error()}
		}
		if err := a.delete(key, opts); err != nil {
			return nil, err
		}
		return &metav1.Status{Status: metav1.StatusSuccess}, nil
	}
	return nil, &problem{http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, method}
}

func answer(w http.ResponseWriter, out any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		p := &problem{http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error()}
		_ = errors.As(err, &p)
		w.WriteHeader(int(p.code))
		out = &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: p.code, Reason: p.reason, Message: p.text,
		}
	}
	_ = json.NewEncoder(w).Encode(withKind(out)) // the client may be gone
}

// withKind is an object as it is on the wire.
func withKind(obj any) any {
	if pod, ok := obj.(*corev1.Pod); ok {
		pod = pod.DeepCopy()
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		return pod
	}
	return obj
}

// list answers with the pods that a request selects, and watches them from a version on if it asks
// for that.
func (a *API) list(w http.ResponseWriter, r *http.Request) {
	selects, err := selector(r)
	if err != nil {
		answer(w, nil, err)
		return
	}
	if r.URL.Query().Get("watch") != "" {
		a.watch(w, r, selects)
		return
	}
	a.mu.Lock()
	out := &corev1.PodList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(a.version)},
	}
	for _, pod := range a.pods {
		if selects(pod) {
			out.Items = append(out.Items, *pod.DeepCopy())
		}
	}
	a.mu.Unlock()
	answer(w, out, nil)
}

func selector(r *http.Request) (func(*corev1.Pod) bool, error) {
	byLabel, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	byField, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		return nil, err
	}
	return func(pod *corev1.Pod) bool {
		return byLabel.Matches(labels.Set(pod.Labels)) && byField.Matches(fields.Set{"spec.nodeName": pod.Spec.NodeName})
	}, nil
}

// watch tells what happens from a version on, until the client or the server is gone.
func (a *API) watch(w http.ResponseWriter, r *http.Request, selects func(*corev1.Pod) bool) {
	from, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		answer(w, nil, fmt.Errorf("no version to watch from: %w", err))
		return
	}
	flusher, _ := w.(http.Flusher)
	w.Header().Set("Content-Type", "application/json")
	flusher.Flush()
	for {
		a.mu.Lock()
		changed, down := a.changed, a.down
		var news []event
		for _, e := range a.log {
			if e.version > from && !a.held {
				news = append(news, e)
			}
		}
		a.mu.Unlock()
		if down {
			return
		}
		for _, e := range news {
			from = e.version
			if selects(e.pod) && json.NewEncoder(w).Encode(map[string]any{"type": e.kind, "object": withKind(e.pod)}) != nil {
				return
			}
		}
		flusher.Flush()
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
	}
}
