package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// newWiped makes a home with a cluster of this policy, which has an OSD on each of its hosts.
func newWiped(t *testing.T, namespace string, policy api.DeletionPolicy) *person {
	t.Helper()
	p := newHome(t, namespace)
	p.must(t, exitOK, p.manifest("deletionPolicy: "+string(policy)+", ceph: {}"), []string{"apply", "-f", "-"})
	for i := 1; i <= 3; i++ {
		host, disk := fmt.Sprintf("%s-%d", namespace, i), fmt.Sprintf("wwn-%d0", i)
		node := &api.StorageNode{}
		if err := p.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("n%d", i)}, node); err != nil {
			t.Fatal(err)
		}
		node.Status.Host, node.Status.Devices = host, []api.ClaimedDevice{{Name: disk, ID: disk}}
		if err := p.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		osd := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("c-osd-%d", i)}, Spec: api.DaemonSpec{
			Cluster: "c", Type: "ceph-osd", ID: fmt.Sprint(i), Host: host, State: api.WantRunning, Command: []string{"ceph-osd"},
			Devices: []api.DaemonDevice{{Name: "block", ID: disk}}, OnRemoval: api.DeletionRetain,
		}}
		if err := p.Create(t.Context(), osd); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { p.endActions(t) })
	return p
}

// actions are those on the home's hosts.
func (p *person) actions(t *testing.T) (on []api.Action) {
	t.Helper()
	var list api.ActionList
	if err := p.List(context.Background(), &list, client.InNamespace(api.SystemNamespace)); err != nil {
		t.Fatal(err)
	}
	for _, a := range list.Items {
		if strings.HasPrefix(a.Spec.Host, p.namespace+"-") {
			on = append(on, a)
		}
	}
	return on
}

func (p *person) endActions(t *testing.T) {
	t.Helper()
	for _, a := range p.actions(t) {
		if err := p.Delete(context.Background(), &a); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *person) nothingBegun(t *testing.T) {
	t.Helper()
	if all := p.actions(t); len(all) > 0 {
		t.Fatalf("%d actions were made: %+v", len(all), all)
	}
}

func (p *person) begin(t *testing.T, plan string) {
	t.Helper()
	x := &api.Plan{}
	if err := p.Get(t.Context(), types.NamespacedName{Namespace: p.namespace, Name: plan}, x); err != nil {
		t.Fatal(err)
	}
	x.Status.State = api.PlanApplying
	if err := p.Status().Update(t.Context(), x); err != nil {
		t.Fatal(err)
	}
}

// TestHost_ofDataNamesItsPlan: a command that empties a host whose disks are wiped is done by the name of its plan, and once.
func TestHost_ofDataNamesItsPlan(t *testing.T) {
	t.Parallel()
	p := newWiped(t, "emptied", api.DeletionWipe)
	fresh := newHome(t, "emptiedby")
	fresh.editHost(t, "emptiedby-1", func(h *api.Host) { h.Status.Addresses = []string{"10.0.0.9"} })
	for command, shows := range map[string][]string{
		"host drain emptied-1 --reason fan":                   {"host/emptied-1 ", "spec.mode: ", "Active -> Drain", "spec.reason: ", "fan"},
		"host remove emptied-1 --delete-nodes":                {"storagenode/emptied/n1 ", "deleted", "deleted when it is empty"},
		"host replace emptied-1 emptiedby-1 --devices wwn-11": {"storagenode/emptied/n1 ", "emptied-1 -> emptiedby-1", `["wwn-10"] -> ["wwn-11"]`},
	} {
		t.Run(command, func(t *testing.T) {
			defer p.endActions(t)
			args := strings.Fields(command)
			shown := append([]string{"[DATA IS DESTROYED]", "highest risk: Data"}, shows...)
			before := p.plans(t)
			p.must(t, exitOK, "", append(args, "--dry-run"), shown...)
			if after := p.plans(t); after != before {
				t.Errorf("a plan was kept that was only to be shown: %d, then %d", before, after)
			}
			name := nameIn(t, p.must(t, exitRefused, "", args, append(shown, "this destroys data, so nothing was changed", "name it with: holdfast apply --plan plan-")...))
			p.nothingBegun(t)
			p.must(t, exitOK, "", []string{"apply", "--plan", name}, "action/"+args[1]+"-emptied-1-", " created",
				"follow it with 'holdfast action wait "+args[1]+"-emptied-1-")
			made := p.actions(t)
			if len(made) != 1 || made[0].Spec.Host != "emptied-1" || p.state(t, name) != api.PlanApplied {
				t.Fatalf("the plan is %s, and made %+v", p.state(t, name), made)
			}
			p.must(t, exitRefused, "", []string{"apply", "--plan", name}, "was already carried out (by holdfast:admin)")

			// Cut off before it was marked as done, it is finished by its name, with the same action.
			p.begin(t, name)
			p.must(t, exitOK, "", []string{"apply", "--plan", name}, "action/"+made[0].Name+" unchanged", "follow it with 'holdfast action wait "+made[0].Name+"'")
			if again := p.actions(t); len(again) != 1 || again[0].UID != made[0].UID {
				t.Errorf("naming it again made %+v of %+v", again, made)
			}
		})
	}
}

// TestHost_planIsWaitedFor: with --wait the action that a plan makes is followed to its end, whatever that is.
func TestHost_planIsWaitedFor(t *testing.T) {
	t.Parallel()
	p := newWiped(t, "awaited", api.DeletionWipe)
	for state, says := range map[api.ActionState]string{api.ActionDone: "nothing is left on it", api.ActionFailed: "refused, and nothing was changed: nothing is left on it"} {
		plan := nameIn(t, p.must(t, exitRefused, "", []string{"host", "drain", "awaited-1"}, "name it with"))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); p.endAs(ctx, state, "nothing is left on it") }()
		code := map[api.ActionState]int{api.ActionDone: exitOK, api.ActionFailed: exitRefused}[state]
		p.must(t, code, "", []string{"apply", "--plan", plan, "--wait", "--timeout", "1m"}, "action/drain-awaited-1-", says)
		cancel()
		<-ended
		p.endActions(t)
	}
}

// endAs plays the leader, who ends the actions on the home's hosts.
func (p *person) endAs(ctx context.Context, state api.ActionState, message string) {
	for ctx.Err() == nil {
		var list api.ActionList
		_ = p.List(ctx, &list, client.InNamespace(api.SystemNamespace))
		for _, a := range list.Items {
			if strings.HasPrefix(a.Spec.Host, p.namespace+"-") && !a.Status.State.Final() {
				a.Status.State, a.Status.Message = state, message
				_ = p.Status().Update(ctx, &a) // what fails is tried again by the next round
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *person) plans(t *testing.T) int {
	t.Helper()
	var list api.PlanList
	if err := p.List(t.Context(), &list, client.InNamespace(p.namespace)); err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

// TestHost_planSaysWhatMoved: the plan of an action on a host binds as any other does.
func TestHost_planSaysWhatMoved(t *testing.T) {
	t.Parallel()
	p := newWiped(t, "stale", api.DeletionWipe)
	p.must(t, exitOK, "", []string{"host", "drain", "stale-2", "--dry-run"}, "[DATA IS DESTROYED]")
	for name, tt := range map[string]struct {
		move func(*testing.T)
		says string
	}{
		"its mode": {func(t *testing.T) {
			p.editHost(t, "stale-2", func(h *api.Host) { h.Spec.Mode = api.HostMaintenance })
			t.Cleanup(func() { p.editHost(t, "stale-2", func(h *api.Host) { h.Spec.Mode = api.HostActive }) })
		}, "spec.mode Active -> Maintenance"},
		"a label of another host": {func(t *testing.T) {
			p.editHost(t, "stale-3", func(h *api.Host) { h.Labels["rack"] = "r1" })
		}, "label rack (unset) -> r1"},
		"a disk": {func(t *testing.T) {
			p.editHost(t, "stale-2", func(h *api.Host) { h.Status.Devices = h.Status.Devices[1:] })
		}, "device wwn-20 (Available ACME DISK S20 4 TiB) is gone"},
		"another action": {func(t *testing.T) {
			p.must(t, exitOK, "", strings.Fields("host maintenance enter stale-2"))
			t.Cleanup(func() { p.endActions(t) })
		}, "host.enter-maintenance) is new"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := nameIn(t, p.must(t, exitRefused, "", []string{"host", "drain", "stale-2"}, "name it with"))
			tt.move(t)
			made := len(p.actions(t))
			p.must(t, exitRefused, "", []string{"apply", "--plan", plan}, "plan "+plan+" is out of date", tt.says)
			p.must(t, exitRefused, "", []string{"apply", "--plan", plan}, "is stale")
			if now := len(p.actions(t)); now != made {
				t.Errorf("there were %d actions, and are %d", made, now)
			}
		})
	}
}

// TestHost_actsAtOnce: nothing has to be named where nothing is wiped: the data is kept, the host comes back, or nobody is left to wipe it.
func TestHost_actsAtOnce(t *testing.T) {
	t.Parallel()
	p := newWiped(t, "wiping", api.DeletionWipe)
	keeps := newWiped(t, "keeping", api.DeletionRetain)
	silence := func(h *api.Host) {
		h.Status.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: metav1.ConditionFalse, Reason: "Test", LastTransitionTime: metav1.Now()}}
	}
	p.must(t, exitOK, "", strings.Fields("host maintenance enter wiping-2 --dry-run"), "Active -> Maintenance", "highest risk: ")
	p.nothingBegun(t)
	p.must(t, exitOK, "", strings.Fields("host maintenance enter wiping-2"), "action/enter-maintenance-wiping-2-", "follow it with 'holdfast action wait enter-maintenance-wiping-2-")
	keeps.must(t, exitOK, "", strings.Fields("host drain keeping-1"), "action/drain-keeping-1-", "follow it with")
	keeps.must(t, exitOK, "", strings.Fields("host remove keeping-2 --delete-nodes"), "action/remove-keeping-2-")
	keeps.must(t, exitOK, "", strings.Fields("host drain keeping-3 --dry-run"), "Active -> Drain", "highest risk: None")

	// A machine that is silent may come back and wipe; of one that is gone for good nobody does.
	p.editHost(t, "wiping-1", silence)
	p.must(t, exitRefused, "", strings.Fields("host drain wiping-1"), "[DATA IS DESTROYED]", "name it with: holdfast apply --plan plan-")
	p.must(t, exitOK, "", strings.Fields("host remove wiping-1 --gone --delete-nodes --dry-run"), "storagenode/wiping/n1 ", "highest risk: None")
	p.must(t, exitOK, "", strings.Fields("host replace wiping-1 wiping-3 --gone --devices wwn-31"), "action/replace-wiping-1-", "follow it with")
	if made := len(p.actions(t)); made != 2 {
		t.Errorf("%d actions were made", made)
	}
	// Only the removal of a host lets go of its daemons: the same word in another action is worth nothing.
	p.editHost(t, "wiping-3", silence)
	p.must(t, exitRefused, hostActionYAML("drains", "host.drain", "wiping-3", "gone: \"Yes\""), []string{"apply", "-f", "-"}, "[DATA IS DESTROYED]")
}

func hostActionYAML(name, kind, host, parameters string) string {
	return fmt.Sprintf("apiVersion: holdfast.io/v1alpha1\nkind: Action\nmetadata: {name: %s, namespace: holdfast-system}\n"+
		"spec: {kind: %s, target: host/%s, host: %s, parameters: {%s}}\n", name, kind, host, host, parameters)
}

// TestPlan_restart: a restart that is asked for in a file is no change without a risk.
func TestPlan_restart(t *testing.T) {
	t.Parallel()
	p := newWiped(t, "restarts", api.DeletionRetain)
	p.must(t, exitOK, "{apiVersion: holdfast.io/v1alpha1, kind: Action, metadata: {name: again}, spec: {kind: daemon.restart, target: daemon/c-osd-1, host: restarts-1, cluster: c}}",
		[]string{"plan", "-f", "-", "--dry-run"}, "action/restarts/again", "[less redundancy]", "highest risk: Redundancy")
}

// TestPlan_impossibleAction: what can never be begun is refused when it is planned, in the words that applying it would end with.
func TestPlan_impossibleAction(t *testing.T) {
	t.Parallel()
	p := newWiped(t, "impossible", api.DeletionRetain)
	for spec, want := range map[string]string{
		"kind: test.strange, target: host/impossible-1, host: impossible-1":                                          `action/a: kind "test.strange" does not exist; choose one of `,
		"kind: daemon.restart, target: daemon/c-osd-1, cluster: c":                                                   "action/a: daemon.restart needs spec.host, whose agent carries it out",
		"kind: daemon.restart, target: daemon/c-osd-2, host: impossible-1, cluster: c":                               "action/a: daemon c-osd-2 of namespace impossible does not exist on host impossible-1: see 'holdfast get daemons'",
		"kind: daemon.restart, target: daemon/c-osd-1, host: impossible-1, cluster: c, parameters: {force: \"yes\"}": `action/a: the parameter "force" is "yes", but must be "Yes"`,
		"kind: host.drain, target: host/impossible-1":                                                                "action/a: spec.target must be host/NAME and spec.host the same NAME",
	} {
		file := "{apiVersion: holdfast.io/v1alpha1, kind: Action, metadata: {name: a}, spec: {" + spec + "}}"
		p.must(t, exitRefused, file, []string{"plan", "-f", "-"}, "nothing was changed", want)
	}
	p.nothingBegun(t)
	if n := p.plans(t); n > 0 {
		t.Errorf("%d plans were kept", n)
	}
}

// TestApply_ofAHostsAction: from a file it is as by its command.
func TestApply_ofAHostsAction(t *testing.T) {
	t.Parallel()
	p := newWiped(t, "filed", api.DeletionWipe)
	drain := hostActionYAML("drain-filed", "host.drain", "filed-1", "")
	p.must(t, exitOK, drain, []string{"plan", "-f", "-", "--dry-run"}, "action/holdfast-system/drain-filed", "Active -> Drain", "[DATA IS DESTROYED]")
	name := nameIn(t, p.must(t, exitRefused, drain, []string{"apply", "-f", "-"}, "[DATA IS DESTROYED]", "name it with: holdfast apply --plan plan-"))
	p.nothingBegun(t)
	p.must(t, exitRefused, hostActionYAML("remove-filed", "host.remove", "filed-1", ""), []string{"apply", "-f", "-"},
		"the StorageNode filed/n1 is on host filed-1; delete with --delete-nodes")
	p.must(t, exitRefused, hostActionYAML("remove-filed", "host.remove", "filed-1", "gone: \"Yes\", storageNodes: Delete"), []string{"plan", "-f", "-"},
		"--gone refused: the agent of host filed-1 is connected")
	p.nothingBegun(t)
	p.must(t, exitRefused, "{apiVersion: holdfast.io/v1alpha1, kind: Host, metadata: {name: filed-2}, spec: {mode: Drain}}", []string{"apply", "-f", "-", "--force-conflicts"},
		"host/filed-2 ", "[DATA IS DESTROYED]", "name it with: holdfast apply --plan plan-")
	p.must(t, exitOK, "", []string{"apply", "--plan", name}, "action/drain-filed created")
	p.must(t, exitRefused, "", []string{"host", "drain", "filed-1"}, "action drain-filed (host.drain) is in progress on host filed-1")
}
