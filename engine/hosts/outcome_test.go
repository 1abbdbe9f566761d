package hosts_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
)

// TestGone: only a removal that is not over lets go of the daemons of a host, and only of one that is silent: the word of all else is worth nothing.
func TestGone(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*api.Host, *api.Action)
		want   bool
	}{
		"removed":        {func(*api.Host, *api.Action) {}, true},
		"replaced":       {func(_ *api.Host, a *api.Action) { a.Spec.Kind = hosts.Replace }, true},
		"under way":      {func(_ *api.Host, a *api.Action) { a.Status.State = api.ActionRunning }, true},
		"drained":        {func(_ *api.Host, a *api.Action) { a.Spec.Kind = hosts.Drain }, false},
		"nobody said so": {func(_ *api.Host, a *api.Action) { a.Spec.Parameters = nil }, false},
		"another host":   {func(_ *api.Host, a *api.Action) { a.Spec.Host = "h2" }, false},
		"cancelled":      {func(_ *api.Host, a *api.Action) { a.Spec.Want = api.WantCancelled }, false},
		"waits for approval": {func(_ *api.Host, a *api.Action) {
			a.Spec.Approval, a.Status.State = api.ApprovalRequired, api.ActionPendingApproval
		}, false},
		"is to be approved": {func(_ *api.Host, a *api.Action) { a.Spec.Approval = api.ApprovalRequired }, false},
		"rejected":          {func(_ *api.Host, a *api.Action) { a.Spec.Approval = api.ApprovalRejected }, false},
		"granted":           {func(_ *api.Host, a *api.Action) { a.Spec.Approval = api.ApprovalGranted }, true},
		"failed":            {func(_ *api.Host, a *api.Action) { a.Status.State = api.ActionFailed }, false},
		"heard":             {func(h *api.Host, _ *api.Action) { h.Status.Conditions[0].Status = metav1.ConditionTrue }, false},
	} {
		h := api.Host{ObjectMeta: metav1.ObjectMeta{Name: "h1"}}
		h.Status.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: metav1.ConditionFalse}}
		a := newAction(hosts.Remove, "h1")
		a.Spec.Parameters = map[string]api.ActionParameter{hosts.ParamGone: hosts.Yes}
		tt.change(&h, a)
		if got := hosts.Gone([]api.Host{h, {ObjectMeta: metav1.ObjectMeta{Name: "h3"}}}, []api.Action{*a}); got["h1"] != tt.want || got["h3"] {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestOutcome: what an action writes is said before without a change of what is there.
func TestOutcome(t *testing.T) {
	on := func() *engine.HostView {
		return &engine.HostView{Host: &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "h1"}}, Nodes: []api.StorageNode{{
			Spec:   api.StorageNodeSpec{NodeSelector: map[string]string{api.LabelHostname: "h1"}, Devices: []string{"a"}},
			Status: api.StorageNodeStatus{Host: "h1"},
		}}}
	}
	heir := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "h2"}}
	for kind, tt := range map[string]struct {
		mode  api.HostMode
		nodes int
		on    string
	}{
		hosts.EnterMaintenance: {api.HostMaintenance, 1, "h1"},
		hosts.ExitMaintenance:  {api.HostActive, 1, "h1"},
		hosts.Drain:            {api.HostDrain, 1, "h1"},
		hosts.Remove:           {api.HostDrain, 0, ""},
		hosts.Replace:          {api.HostDrain, 1, "h2"},
	} {
		a := newAction(kind, "h1")
		a.Spec.Parameters = map[string]api.ActionParameter{hosts.ParamReason: "fan"}
		if kind == hosts.Remove {
			a.Spec.Parameters[hosts.ParamNodes] = hosts.Delete
		}
		if kind == hosts.Replace {
			a.Spec.Parameters[hosts.ParamDevices] = "b,c"
		}
		was := on()
		a.Spec.Parameters[hosts.ParamGone] = hosts.Yes
		if host, _ := hosts.Outcome(a, was, heir); engine.DisksKept(host) != hosts.Removes(a) {
			t.Errorf("%s of a host that is gone: its disks are kept: %t", kind, engine.DisksKept(host))
		}
		delete(a.Spec.Parameters, hosts.ParamGone)
		if tt.mode == api.HostDrain {
			engine.KeepDisks(was.Host, true)
		}
		host, nodes := hosts.Outcome(a, was, heir)
		if engine.DisksKept(host) {
			t.Errorf("%s: its disks are kept, as they were to be when it was gone", kind)
		}
		if host.ModeOf() != tt.mode || len(nodes) != tt.nodes || tt.nodes > 0 && nodes[0].Spec.NodeSelector[api.LabelHostname] != tt.on {
			t.Errorf("%s: mode %s, %+v", kind, host.ModeOf(), nodes)
		}
		if kind == hosts.Replace && (len(nodes[0].Spec.Devices) != 2 || nodes[0].Status.Host != "") {
			t.Errorf("the node that is moved is %+v", nodes[0])
		}
		if n := was.Nodes[0]; was.Host.Spec.Mode != "" || n.Spec.NodeSelector[api.LabelHostname] != "h1" || len(n.Spec.Devices) != 1 || n.Status.Host != "h1" {
			t.Errorf("%s changed what is there: %+v", kind, was)
		}
	}
}
