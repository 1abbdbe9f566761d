package why

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	acts "github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func restart(name string, state api.ActionState) api.Action {
	return api.Action{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       api.ActionSpec{Kind: api.ActionDaemonRestart, Target: "daemon/ceph-osd-3", Cluster: "ceph", Host: "h3"},
		Status:     api.ActionStatus{State: state},
	}
}

// What waits for a person is told before what goes on by itself. What has ended, and the steps of a cluster's own plan, are told nowhere.
func TestOpen(t *testing.T) {
	command := restart("command", api.ActionRunning)
	command.Spec.Kind = api.ActionServiceCommand
	look := restart("look", api.ActionRunning)
	look.Spec.Kind = acts.DaemonLog
	all := []api.Action{
		restart("turn", api.ActionPendingSchedule), restart("done", api.ActionDone), restart("new", api.ActionNew), restart("fresh", ""), command, look,
		restart("runs", api.ActionRunning), restart("asks", api.ActionPendingApproval), restart("lost", api.ActionLost),
	}
	var names []string
	for _, a := range Open(all, func(*api.Action) bool { return true }) {
		names = append(names, a.Name)
	}
	if want := []string{"asks", "runs", "new", "turn", "fresh"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

// An action is told of where it has to do with what is asked about, and nowhere else.
func TestExplain_actions(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*api.Action)
		told   string
	}{
		{"a restart", func(*api.Action) {}, "osd.3 host/h3 cluster/ceph"},
		{"a drain", func(a *api.Action) { a.Spec.Kind, a.Spec.Target, a.Spec.Cluster = "host.drain", "host/h3", "" }, "osd.3 mgr.b host/h3 cluster/ceph"},
		{"of another host", func(a *api.Action) { a.Spec.Target, a.Spec.Host, a.Spec.Cluster = "host/h9", "h9", "" }, ""},
		{"of another namespace", func(a *api.Action) { a.Namespace = "other" }, "host/h3"},
		{"of another cluster", func(a *api.Action) { a.Spec.Target, a.Spec.Cluster = "daemon/other-osd-3", "other" }, "host/h3"},
		{"ended", func(a *api.Action) { a.Status.State = api.ActionDone }, ""},
	} {
		w := world()
		a := restart("x", api.ActionPendingApproval)
		tt.change(&a)
		w.Actions = []api.Action{a}
		var told []string
		for _, object := range []string{"osd.3", "mgr.b", "host/h3", "cluster/ceph", "host/h2"} {
			answer, err := w.Explain(object)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(answer.Text, "Action x: ") && strings.HasPrefix(answer.Next, "run 'holdfast action approve x' or 'holdfast action cancel x'.") {
				told = append(told, object)
			}
		}
		if got := strings.Join(told, " "); got != tt.told {
			t.Errorf("%s: told of %s, want %s", tt.name, got, tt.told)
		}
	}
}

func TestExplain_manyActions(t *testing.T) {
	w := world()
	w.Actions = []api.Action{restart("turn", api.ActionPendingSchedule), restart("runs", api.ActionRunning), restart("later", api.ActionPendingSchedule)}
	a, err := w.Explain("osd.3")
	if err != nil || !strings.HasSuffix(a.Text, "Action runs: daemon.restart on daemon/ceph-osd-3 is running. 2 more not ended: 'holdfast action list'.") {
		t.Errorf("%v %s", err, a)
	}
}
