package e2e

import (
	"fmt"
	"syscall"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// TestHostActions works on hosts and their daemons by the commands of a person, while a client writes: daemons are restarted, also when the agent and
// the leader are killed meanwhile, a host loses its power in the middle of an action, a machine that is dead for good is replaced by a new one, and
// that one is emptied and taken out.
func TestHostActions(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 5, Disks: 1})
	b := &bed{t, home.StartServers(t, lab, binary, 3)}
	b.StartAgent(t, 4, b.Token(t, "agent"))
	b.AwaitHosts(t, 4)
	spec := home.SpecFor(lab, 3, 2, 1)
	delete(spec.Devices, lab.Host(5).Name)
	b.mustApply(spec.YAML())
	client := b.startClient(1)
	b.await("Ceph to be well with a pool", func() error { return b.health(3, 4) })

	for _, step := range []struct {
		name string
		do   func(*bed)
		osds int // that there are afterwards
	}{
		{"bad input is refused", (*bed).hostRefusals, 4},
		{"daemons are restarted", (*bed).daemonsRestarted, 4},
		{"a restart has to be approved", (*bed).restartApproved, 4},
		{"restarts wait in line", (*bed).restartWaitsInLine, 4},
		{"a restart is cancelled", (*bed).restartCancelled, 4},
		{"a restart asks Ceph", (*bed).restartAsksCeph, 4},
		{"the agent is killed in a restart", func(b *bed) { b.killedInRestart(false) }, 4},
		{"the agent and the leader are killed in a restart", func(b *bed) { b.killedInRestart(true) }, 4},
		{"power is lost in the middle of an action", (*bed).powerLostInAction, 4},
		{"an action is cancelled", (*bed).actionCancelled, 4},
		{"the leader is killed in the middle of an action", (*bed).leaderKilledInAction, 4},
		{"a dead machine is replaced in two commands", (*bed).deadReplaced, 4},
		{"a host that is said to be gone is back", (*bed).goneIsBack, 4},
		{"a host is emptied and taken out", func(b *bed) { b.hostTakenOut(client) }, 3},
		{"a machine that was removed is back", (*bed).removedIsBack, 4},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			b := &bed{t, b.Home}
			step.do(b)
			client.goesOn(t)
			b.await("Ceph to be well", func() error { return b.health(3, step.osds) })
		}) {
			t.FailNow()
		}
	}
	client.end(t)
	b.noOrphans()
}

// hostRefusals asks for what cannot be: each is refused with exit code 3 and the reason, and changes nothing.
func (b *bed) hostRefusals() {
	for _, test := range []struct{ command, reason string }{
		{"host maintenance enter h44", "host h44 does not exist: did you mean h4?"},
		{"host label -l rack=none role=x", "no host has the labels rack=none"},
		{"host remove h1", "the StorageNode default/ceph-h1 is on host h1; delete with --delete-nodes"},
		{"host remove h4 --gone --delete-nodes", "--gone refused: the agent of host h4 is connected"},
		{"host replace h4 h1 --wait", "host h1 cannot replace h4: node/ceph-h4: "},
		{"action cancel nothing", "action nothing does not exist: list them with 'holdfast action list --all'"},
		{"orchestrate nothing", "storagecluster/nothing does not exist in namespace default"},
	} {
		b.refused(test.command, test.reason)
	}
}

// powerLostInAction takes a host's power away while an action on it waits for its agent, and brings it back.
func (b *bed) powerLostInAction() {
	const number = 4
	h := b.Lab.Host(number)
	b.Server(number).Signal(b, syscall.SIGSTOP)
	b.run("host", "maintenance", "enter", h.Name)
	b.await("the action to be in the middle", func() error { return b.lastAction(h.Name, api.ActionRunning) })
	h.PowerOff(b)
	h.PowerOn(b)
	b.StartAgent(b, number, "")
	b.await("the action to be done", func() error { return b.lastAction(h.Name, api.ActionDone) })
	if left := b.runsOn(number); len(left) > 0 {
		b.Errorf("in maintenance there run %v", left)
	}
	b.run("host", "maintenance", "exit", h.Name, "--wait", "--timeout", "2m")
}

// actionCancelled cancels an action that waits for a silent agent: the host's mode is as before.
func (b *bed) actionCancelled() {
	const number = 4
	h := b.Lab.Host(number)
	b.Server(number).Signal(b, syscall.SIGSTOP)
	b.run("host", "maintenance", "enter", h.Name)
	b.await("the action to be in the middle", func() error { return b.lastAction(h.Name, api.ActionRunning) })
	name := b.actionsOn(h.Name)[0].Name
	b.run("action", "cancel", name)
	b.Server(number).Signal(b, syscall.SIGCONT)
	b.await("the action to be cancelled", func() error { return b.lastAction(h.Name, api.ActionCancelled) })
	if mode := b.hostObject(h.Name).ModeOf(); mode != api.HostActive {
		b.Errorf("the host's mode is %s after the action was cancelled", mode)
	}
	b.refused("action cancel "+name, "has already ended as Cancelled")
}

// deadReplaced puts the fifth machine in the place of the fourth, which is dead for good: it joins, and replaces.
func (b *bed) deadReplaced() {
	dead, fresh := b.Lab.Host(4), b.Lab.Host(5)
	dead.PowerOff(b)
	b.StartAgent(b, 5, b.Token(b, "agent"))
	b.await("the new host", b.heard(1, fresh.Name, true))
	b.await("the dead host to be found silent", b.heard(1, dead.Name, false))
	b.Logf("%s", b.run("host", "replace", dead.Name, fresh.Name, "--gone", "--devices", fresh.Disk(0).ID(), "--wait", "--timeout", "150s"))
	if out, err := b.Holdfast("get", "host", dead.Name); err == nil {
		b.Errorf("the dead host is still there:\n%s", out)
	}
}

// actionsOn are the actions on a host, the newest first.
func (b *bed) actionsOn(host string) []api.Action {
	b.Helper()
	var on []api.Action
	for _, a := range list[api.Action](b, "actions", "-n", "holdfast-system") {
		if a.Spec.Host == host && (len(on) == 0 || !a.CreationTimestamp.Before(&on[0].CreationTimestamp)) {
			on = append([]api.Action{a}, on...)
		}
	}
	return on
}

// lastAction says in which state the newest action on a host is, if it is not in the wanted one.
func (b *bed) lastAction(host string, want api.ActionState) error {
	on := b.actionsOn(host)
	if len(on) == 0 {
		return fmt.Errorf("there is no action on %s", host)
	}
	if a := on[0]; a.Status.State != want {
		return fmt.Errorf("action %s is %s: %s; it waits for %q", a.Name, a.Status.State, a.Status.Message, a.Status.WaitsFor)
	}
	return nil
}

func (b *bed) hostObject(name string) *api.Host {
	b.Helper()
	h, err := read[api.Host](b, 1, "hosts", name)
	if err != nil {
		b.Fatalf("%v", err)
	}
	return &h
}
