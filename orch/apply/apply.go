// Package apply carries out Actions of kind orch.apply: what 'ceph orch apply' declares is written,
// and waited for.
package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/orch/answer"
	"github.com/holdfast-storage/holdfast/orch/spec"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// Kind is the kind of these Actions.
const Kind = wire.ActionApply

// The steps.
const (
	// StepPersist: everything is written to the API.
	StepPersist = "persist"
	// StepEffective: the cluster is as it was declared.
	StepEffective = "effective"
	// StepWipe: the disks that the call names are erased, once no cluster has them any more.
	StepWipe = "wipe"
)

const (
	// paramConflicts is Take where what somebody else applied is taken over.
	paramConflicts = "conflicts"
	// paramPart and a number is a part of the list of writes.
	paramPart = "writes-"
	// paramWipe are disks to erase, as HOST/ID, separated by commas.
	paramWipe = "wipe"
	// partBytes and mostParts are bounds of the API.
	partBytes, mostParts = 32768, 14
)

// write is a spec.Write as an Action keeps it.
type write struct {
	Manager string         `json:"manager"`
	Object  map[string]any `json:"object"`
}

// Parameters are those of the Action that carries writes out, and then erases disks, each HOST/ID.
// The error says that there are too many of them for one.
func Parameters(writes []spec.Write, take bool, wipe ...string) (map[string]api.ActionParameter, error) {
	list := make([]write, len(writes))
	for i, w := range writes {
		list[i] = write{w.Manager, w.Object.Object}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	parameters := map[string]api.ActionParameter{}
	for i := 0; len(text) > 0; i++ {
		n := min(len(text), partBytes)
		for n < len(text) && !utf8.RuneStart(text[n]) { // a part of a character is no text
			n--
		}
		if i == mostParts {
			return nil, tooMany(len(list))
		}
		parameters[partName(i)] = api.ActionParameter(text[:n])
		text = text[n:]
	}
	if take {
		parameters[paramConflicts] = api.ActionParameter(api.CephOrchTake)
	}
	if disks := strings.Join(wipe, ","); len(disks) > partBytes {
		return nil, fmt.Errorf("the names of %d disks are too much for one call: name fewer of them", len(wipe))
	} else if disks != "" {
		parameters[paramWipe] = api.ActionParameter(disks)
	}
	return parameters, nil
}

func tooMany(resources int) error {
	return fmt.Errorf("the documents of one call come to %d resources of more than %d bytes, and one call has no room "+
		"for more: apply them in several calls", resources, partBytes*mostParts)
}

// writesOf reads the parameters of an Action.
func writesOf(a *api.Action) ([]write, error) {
	var text strings.Builder
	for i := range mostParts {
		text.WriteString(string(a.Spec.Parameters[partName(i)]))
	}
	var list []write
	if err := json.Unmarshal([]byte(text.String()), &list); err != nil {
		return nil, refuse("its parameters cannot be read: %v", err)
	}
	return list, nil
}

func partName(i int) string { return paramPart + strconv.Itoa(i) }

// Handler carries out these Actions.
type Handler struct {
	// Client writes in the name of 'ceph orch' of a cluster.
	Client func(cluster types.NamespacedName) (client.Client, error)
}

var _ action.Handler = (*Handler)(nil)

// Kind implements action.Handler. What was written stays when the Action is cancelled or fails: it
// is what was declared.
func (*Handler) Kind() action.Kind {
	return action.Kind{
		Name: Kind, Summary: "declares what a user of 'ceph orch' applied, and waits until it is so",
		Executor: api.ByLeader, Mode: action.Beside, Steps: []string{StepPersist, StepEffective, StepWipe}, Final: true,
	}
}

// Check implements action.Handler.
func (h *Handler) Check(_ context.Context, a *api.Action) error {
	if a.Spec.Cluster == "" {
		return refuse("spec.cluster must name the cluster")
	}
	_, err := writesOf(a)
	return err
}

// Undo implements action.Handler: nothing is taken back.
func (*Handler) Undo(context.Context, *api.Action, string) (action.Progress, error) {
	return action.Progress{Done: true}, nil
}

// writeTimeout bounds the writes of one step, and readAgain is between two looks at what became of
// them. writesSoon is between two looks at an Action that writes first.
const writeTimeout, readAgain, writesSoon = 30 * time.Second, time.Second, 100 * time.Millisecond

// Step implements action.Handler.
func (h *Handler) Step(ctx context.Context, a *api.Action, step string) (action.Progress, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	writes, err := writesOf(a)
	if err != nil {
		return action.Progress{}, err
	}
	c, err := h.Client(types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.Cluster})
	if err != nil {
		return action.Progress{}, err
	}
	switch step {
	case StepPersist:
		if first, err := earlier(ctx, c, a, writes); err != nil || first != "" {
			return action.Progress{Recheck: writesSoon, WaitsFor: "action/" + first + " to write first"}, err
		}
		return persist(ctx, c, writes, a.Spec.Parameters[paramConflicts] == api.ActionParameter(api.CephOrchTake))
	case StepWipe:
		return wipe(ctx, c, a)
	}
	return effective(ctx, c, writes)
}

func persist(ctx context.Context, c client.Client, writes []write, take bool) (action.Progress, error) {
	for _, w := range writes {
		u := (&unstructured.Unstructured{Object: w.Object}).DeepCopy()
		if err := Object(ctx, c, u, w.Manager, take); err != nil {
			return action.Progress{}, final(err)
		}
	}
	return action.Progress{Done: true, Message: fmt.Sprintf("%d declared", len(writes))}, nil
}

// effective looks at the conditions of each object (kstatus): one that is Stalled is refused, one
// that is Reconciling is waited for.
func effective(ctx context.Context, c client.Client, writes []write) (action.Progress, error) {
	p := action.Progress{Total: int64(len(writes)), Unit: "objects", Recheck: readAgain}
	for _, w := range writes {
		of := &unstructured.Unstructured{Object: w.Object}
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(of.GroupVersionKind())
		err := c.Get(ctx, client.ObjectKeyFromObject(of), u)
		if client.IgnoreNotFound(err) != nil {
			return p, fmt.Errorf("while reading %s: %w", NameOf(of), err)
		}
		if err != nil {
			return p, refuse("%s was deleted", NameOf(of))
		}
		wait, err := state(u)
		if err == nil && wait == "" {
			wait, err = leaves(ctx, c, of, u)
		}
		switch {
		case err != nil:
			return p, err
		case wait == "":
			p.Count++
		case p.WaitsFor == "":
			p.WaitsFor = wait
		}
	}
	p.Done, p.Message = p.Count == p.Total, fmt.Sprintf("%d of %d as declared", p.Count, p.Total)
	return p, nil
}

// state says what an object still waits for.
func state(u *unstructured.Unstructured) (wait string, err error) {
	// A label, and a host that declares no device, count at once.
	if u.GetKind() == "Host" || u.GetKind() == "StorageNode" {
		return "", nil
	}
	ready, stalled := condition(u, api.ConditionReady), condition(u, api.ConditionStalled)
	switch {
	case ready == nil || ready.ObservedGeneration < u.GetGeneration():
		return NameOf(u) + ": the leader has not observed it yet", nil
	case ready.Status == metav1.ConditionTrue:
		return "", nil
	case u.GetKind() == "StorageCluster" && !refused(condition(u, api.ClusterAccepted)):
		return NameOf(u) + ": " + ready.Message, nil // what stalls a cluster may be none of what was declared
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		return "", refuse("%s: %s", NameOf(u), stalled.Message)
	}
	return NameOf(u) + ": " + ready.Message, nil
}

func refused(accepted *metav1.Condition) bool {
	return accepted != nil && accepted.Status == metav1.ConditionFalse
}

// condition is a condition of an object, nil where it has none.
func condition(u *unstructured.Unstructured, kind string) *metav1.Condition {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	text, err := json.Marshal(list)
	var conditions []metav1.Condition
	if err != nil || json.Unmarshal(text, &conditions) != nil {
		return nil
	}
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

// refusal is an error that says why something cannot be done, and nothing else.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return action.ErrRefused }

func refuse(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// final makes the server's word on an object a refusal, which is not tried again.
func final(err error) error {
	var said *answer.Error
	var status apierrors.APIStatus
	if errors.As(err, &said) {
		return refuse("%s", said.Message)
	}
	refused := apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err)
	if errors.As(err, &status) && refused {
		return refuse("%v", err)
	}
	return err
}
