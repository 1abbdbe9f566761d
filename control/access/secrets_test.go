package access

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestNeeds: what a host needs is asked for once for all its daemons, a no is asked for again, and a yes does not hold for ever.
func TestNeeds(t *testing.T) {
	var asked atomic.Int64
	list := api.DaemonList{}
	list.APIVersion, list.Kind = api.GroupVersion.String(), "DaemonList"
	list.Items = []api.Daemon{daemonWith("ns", "one", "two"), daemonWith("other", "three")}
	actions := api.ActionList{Items: []api.Action{commandWith(t, "ns", "user", api.ActionRunning), commandWith(t, "ns", "old", api.ActionDone)}}
	actions.APIVersion, actions.Kind = api.GroupVersion.String(), "ActionList"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Query().Get("fieldSelector") != "spec.host=h1" {
			t.Errorf("asked for %s", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		var answer any = &list
		if strings.HasSuffix(r.URL.Path, "/actions") {
			answer = &actions
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	made, err := NewSecrets(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	s := made.(*daemonSecrets)
	now := time.Now()
	s.now = func() time.Time { return now }
	for _, tt := range []struct {
		namespace, name string
		want            bool
		asked           int64
	}{
		{"ns", "one", true, 1},
		{"ns", "two", true, 0},
		{"other", "three", true, 0},
		{"ns", "one", true, 0},
		{"ns", "three", false, 4},
		{"ns", "new", false, 4},
		{"ns", "user", true, 3},
		{"ns", "old", false, 4},
		{"other", "user", false, 4},
	} {
		before := asked.Load()
		got, err := s.Needs(t.Context(), "h1", tt.namespace, tt.name)
		if err != nil || got != tt.want || asked.Load()-before != tt.asked {
			t.Errorf("%s/%s: %v, %v with %d questions; want %v with %d", tt.namespace, tt.name, got, err, asked.Load()-before, tt.want, tt.asked)
		}
	}
	list.Items = nil
	now = now.Add(neededFor)
	if got, err := s.Needs(t.Context(), "h1", "ns", "one"); err != nil || got {
		t.Errorf("after %s a host without daemons needs the secret: %v, %v", neededFor, got, err)
	}
}

func commandWith(t *testing.T, namespace, secret string, state api.ActionState) api.Action {
	t.Helper()
	a, err := action.CommandAction("a", "c", "h1", action.Command{Namespace: namespace, Daemon: "d", Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	a.Status.State = state
	return *a
}

// daemonWith names Secrets, in files and in devices that are encrypted.
func daemonWith(namespace string, secrets ...string) api.Daemon {
	d := api.Daemon{}
	d.Namespace, d.Spec.Host = namespace, "h1"
	for i, name := range secrets {
		if i > 0 {
			d.Spec.Devices = append(d.Spec.Devices, api.DaemonDevice{Name: "block", KeySecret: name})
			continue
		}
		d.Spec.Files = append(d.Spec.Files, api.DaemonFile{Sources: []api.FileSource{{Secret: &api.SecretKey{Name: name, Key: "k"}}}})
	}
	return d
}
