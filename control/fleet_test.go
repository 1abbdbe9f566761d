package control_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestHostIndex: an agent's list is read by an index, not by going through what all hosts have, and its watch brings its own alone.
func TestHostIndex(t *testing.T) {
	s, config := sharedServer(t)
	admin := newClient(t, s.Config())
	ns := newNamespace(t, admin)
	mine := newHost(t, s, config, "index-1")
	w, err := dynamic.NewForConfigOrDie(mine.config).Resource(api.GroupVersion.WithResource("daemons")).
		Watch(timeout(t), metav1.ListOptions{FieldSelector: "spec.host=index-1"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for n := range 6 {
		if err := admin.Create(t.Context(), daemonOn(ns, fmt.Sprintf("d%d", n), fmt.Sprintf("index-%d", n%3), "s")); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"d1", "d4"} {
		if e := <-w.ResultChan(); e.Object.(client.Object).GetName() != want {
			t.Errorf("the watch brings %v, want %s", e, want)
		}
	}
	var list api.DaemonList
	if err := newClient(t, mine.config).List(t.Context(), &list, client.MatchingFields{"spec.host": "index-1"}); err != nil || len(list.Items) != 2 {
		t.Errorf("the list has %d daemons: %v", len(list.Items), err)
	}
	text := ask(t, s.Config(), "/metrics")
	if !strings.Contains(text, `apiserver_cache_list_fetched_objects_total{group="holdfast.io",index="f:spec.host",resource="daemons"}`) {
		t.Error("no list of daemons was read by the index")
	}
}

// TestUntracked: a Daemon takes no more room than what it says, however often it is written; one that is applied on the server's side
// is tracked from then on, as people expect who do so.
func TestUntracked(t *testing.T) {
	s, config := sharedServer(t)
	admin := newClient(t, s.Config())
	ns := newNamespace(t, admin)
	d := daemonOn(ns, "d", "untracked", "s")
	if err := admin.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	agent := newClient(t, newHost(t, s, config, "untracked").config)
	if err := agent.Status().Patch(t.Context(), d.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"state":"Running"}}`))); err != nil {
		t.Fatal(err)
	}
	read := func() *api.Daemon {
		now := &api.Daemon{}
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(d), now); err != nil {
			t.Fatal(err)
		}
		return now
	}
	if now := read(); len(now.ManagedFields) > 0 || now.Status.State != api.DaemonRunning {
		t.Errorf("after a status it is %s, and it is kept who manages what: %v", now.Status.State, now.ManagedFields)
	}
	apply := []byte(`{"apiVersion":"holdfast.io/v1alpha1","kind":"Daemon","metadata":{"name":"d","namespace":"` + ns + `","labels":{"a":"b"}}}`)
	if err := admin.Patch(t.Context(), d.DeepCopy(), client.RawPatch(types.ApplyPatchType, apply), client.FieldOwner("alice")); err != nil {
		t.Fatal(err)
	}
	if now := read(); len(now.ManagedFields) == 0 || now.Labels["a"] != "b" || now.Spec.Host != "untracked" {
		t.Errorf("after an apply it is %+v", now)
	}
}

func ask(t *testing.T, config *rest.Config, path string) string {
	t.Helper()
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fewBeats is how many heartbeats, one after the other, get at least through beside the overload, however slow the machine is.
const fewBeats = 5

// TestHeartbeatsUnderLoad: while agents ask for far more than the server can do, each heartbeat gets through at the first try, and
// before them; so does the administrator; and those who wait are answered in the end, none is told to come again.
func TestHeartbeatsUnderLoad(t *testing.T) {
	s, config := sharedServer(t)
	admin := newClient(t, s.Config())
	busy, quiet := newHost(t, s, config, "busy"), newHost(t, s, config, "quiet")
	err := newClient(t, quiet.config).Create(timeout(t), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "holdfast-system", Name: "host-quiet"},
	})
	if err != nil {
		t.Fatal(err)
	}
	// While the cache of a kind fills for the first time, the library does tell clients to come again, and this one does.
	if err := admin.List(timeout(t), &api.DaemonList{}); err != nil {
		t.Fatal(err)
	}
	var load sync.WaitGroup
	var left atomic.Int64
	left.Store(2 * overload)
	to := linesOf(t, busy.config, 8)
	for n := range overload {
		load.Go(func() {
			for range 2 {
				code, err := to[n%len(to)].do(timeout(t), http.MethodGet, "/apis/holdfast.io/v1alpha1/daemons?fieldSelector=spec.host%3Dbusy", "")
				if err != nil || code != http.StatusOK {
					t.Errorf("a list under load: %d, %v", code, err)
				}
				left.Add(-1)
			}
		})
	}
	heart, beats := linesOf(t, quiet.config, 1)[0], 0
	for ; left.Load() > overload/4 || beats == 0; beats++ {
		code, err := heart.do(timeout(t), http.MethodPatch, "/apis/coordination.k8s.io/v1/namespaces/holdfast-system/leases/host-quiet",
			fmt.Sprintf(`{"spec":{"leaseTransitions":%d}}`, beats))
		if err == nil && code == http.StatusOK {
			err = admin.List(timeout(t), &api.HostList{})
		}
		if err != nil || code != http.StatusOK {
			t.Fatalf("a heartbeat or the administrator under load: %d, %v", code, err)
		}
	}
	load.Wait()
	// Who waits in the same line as all others gets through once or twice in that time.
	if beats < fewBeats {
		t.Errorf("%d heartbeats while there were %d other requests: want at least %d", beats, 2*overload, fewBeats)
	}
}

// line is a connection of its own to the server.
type line struct {
	http *http.Client
	host string
}

// linesOf are several of one host: the server takes some hundred requests at once on each. They are connected already: the server gives a
// new one two seconds to say what it is, and a client that is about to send hundreds of requests may take longer.
func linesOf(t *testing.T, config *rest.Config, n int) []line {
	t.Helper()
	all := make([]line, n)
	for i := range all {
		tls, err := rest.TLSConfigFor(config)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true}
		t.Cleanup(transport.CloseIdleConnections)
		all[i] = line{&http.Client{Transport: transport}, config.Host}
		if code, err := all[i].do(timeout(t), http.MethodGet, "/readyz", ""); err != nil || code != http.StatusOK {
			t.Fatalf("connecting: %d, %v", code, err)
		}
	}
	return all
}

func (l line) do(ctx context.Context, method, path, body string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, method, l.host+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/merge-patch+json")
	answer, err := l.http.Do(r)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, errors.Join(err, answer.Body.Close())
}
