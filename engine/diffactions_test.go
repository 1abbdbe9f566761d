package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func testAction(name, uid string, state api.ActionState, change ...func(*api.Action)) api.Action {
	a := api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(uid)},
		Spec:       api.ActionSpec{Kind: "daemon.restart", Target: "daemon/x", Cluster: "c", Requester: "jo"},
		Status:     api.ActionStatus{State: state, Message: "it is so"},
	}
	for _, c := range change {
		c(&a)
	}
	return a
}

func onHost(host string) func(*api.Action) {
	return func(a *api.Action) { a.Spec.Cluster, a.Spec.Host = "", host }
}

func TestDiff_actions(t *testing.T) {
	waits := func(a *api.Action) { a.Status.WaitsFor = "its turn" }
	for _, test := range []struct {
		name          string
		before, after []api.Action
		want          []string
	}{
		{"new", nil, []api.Action{testAction("a", "1", "")}, []string{"ACTION_NEW action/a daemon.restart of daemon/x was requested by jo"}},
		{"new and begun", nil, []api.Action{testAction("a", "1", api.ActionRunning)}, []string{
			"ACTION_NEW action/a daemon.restart of daemon/x was requested by jo", "ACTION_CHANGED action/a daemon.restart of daemon/x is Running",
		}},
		{"changed", []api.Action{testAction("a", "1", "")}, []api.Action{testAction("a", "1", api.ActionPendingSchedule, waits)}, []string{
			"ACTION_CHANGED action/a daemon.restart of daemon/x is PendingSchedule; it waits for its turn",
		}},
		{"progress is no event", []api.Action{testAction("a", "1", api.ActionRunning)}, []api.Action{testAction("a", "1", api.ActionRunning, waits)}, nil},
		{"finished", []api.Action{testAction("a", "1", api.ActionRunning)}, []api.Action{testAction("a", "1", api.ActionDone)}, []string{
			"ACTION_FINISHED action/a daemon.restart of daemon/x is Done: it is so",
		}},
		{"removed", []api.Action{testAction("a", "1", api.ActionDone)}, nil, nil},
		{"another one of the same name", []api.Action{testAction("a", "1", api.ActionDone)}, []api.Action{testAction("a", "2", "")}, []string{
			"ACTION_NEW action/a daemon.restart of daemon/x was requested by jo",
		}},
		{"on a host of the cluster", nil, []api.Action{testAction("a", "1", "", onHost("h1"))}, []string{"ACTION_NEW action/a daemon.restart of daemon/x was requested by jo"}},
		{"on another host", nil, []api.Action{testAction("a", "1", "", onHost("h2"))}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			view := func(actions []api.Action) *View {
				return &View{
					Cluster: &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, Actions: actions,
					Daemons: []api.Daemon{{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: api.DaemonSpec{Host: "h1"}}},
				}
			}
			var got []string
			for _, e := range Diff(view(test.before), view(test.after), epoch) {
				got = append(got, strings.Join([]string{string(e.Code), e.Object, e.Message}, " "))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestActionsOf: what nobody follows is in no view, and so emits no events.
func TestActionsOf(t *testing.T) {
	of := func(kind string) func(*api.Action) { return func(a *api.Action) { a.Spec.Kind = kind } }
	all := []api.Action{
		testAction("a", "1", ""), testAction("b", "2", "", of(action.DaemonLog)),
		testAction("c", "3", "", of(api.ActionServiceCommand)), testAction("d", "4", "", onHost("h1")),
	}
	got := ActionsOf(all, types.NamespacedName{Namespace: "default", Name: "c"})
	if len(got) != 2 || got[0].Name != "a" || got[1].Name != "d" {
		t.Errorf("%+v", got)
	}
}
