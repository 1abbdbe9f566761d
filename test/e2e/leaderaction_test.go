package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// leaderKilledInAction kills the leader while an action waits for a silent agent. The next leader carries it on, and changes nothing
// twice: each daemon of the host is stopped by one change.
func (b *bed) leaderKilledInAction() {
	const number = 4
	h := b.Lab.Host(number)
	generations := b.generations(h.Name)
	b.Server(number).Signal(b, syscall.SIGSTOP)
	b.run("host", "maintenance", "enter", h.Name)
	before := b.inStep(h.Name, "stop-daemons")
	b.killLeader()
	b.Server(number).Signal(b, syscall.SIGCONT)
	b.await("the action to be done", func() error { return b.lastAction(h.Name, api.ActionDone) })
	b.carriedOn(before)
	for name, now := range b.generations(h.Name) {
		if was := generations[name]; now != was+1 {
			b.Errorf("daemon %s was changed %d times", name, now-was)
		}
	}
	if left := b.runsOn(number); len(left) > 0 {
		b.Errorf("in maintenance there run %v", left)
	}
	b.run("host", "maintenance", "exit", h.Name, "--wait", "--timeout", "2m")
}

// generations are those of the daemons on a host.
func (b *bed) generations(host string) map[string]int64 {
	b.Helper()
	all := map[string]int64{}
	for _, d := range b.daemons() {
		if d.Spec.Host == host {
			all[d.Name] = d.Generation
		}
	}
	return all
}

// inStep waits until the newest action on a host is at a step, and returns it.
func (b *bed) inStep(host, step string) (a api.Action) {
	b.Helper()
	b.await("the action to be at the step "+step, func() error {
		if err := b.lastAction(host, api.ActionRunning); err != nil {
			return err
		}
		a = b.actionsOn(host)[0]
		if !slices.ContainsFunc(a.Status.Steps, func(s api.ActionStep) bool { return s.Name == step && s.State == api.StepRunning }) {
			return fmt.Errorf("its steps are %+v", a.Status.Steps)
		}
		return nil
	})
	return a
}

// killLeader is kill -9 of the server that leads, which is started again when another one leads.
func (b *bed) killLeader() {
	b.Helper()
	leader := b.leader()
	b.Server(leader).Kill(b)
	b.await("another leader", b.leads(leader%3+1, func(now int) bool { return now != leader }))
	b.StartServer(b, leader)
	b.await("the server that was killed", func() error {
		_, err := b.leaderFrom(leader)
		return err
	})
}

// carriedOn fails the test unless an action that has ended was carried on from what it was: nothing that was begun or done then was
// begun anew, its end came once, and its events tell each of its states once.
func (b *bed) carriedOn(before api.Action) {
	b.Helper()
	now, err := read[api.Action](b, 1, "actions", before.Name, "-n", before.Namespace)
	if err != nil {
		b.Fatalf("%v", err)
	}
	if len(now.Status.Steps) != len(before.Status.Steps) || !now.Status.Started.Equal(before.Status.Started) {
		b.Fatalf("action %s was begun anew: it was %+v, and is %+v", before.Name, before.Status, now.Status)
	}
	for i, was := range before.Status.Steps {
		is := now.Status.Steps[i]
		if is.State != api.StepDone || was.State != api.StepPending && !is.Started.Equal(was.Started) || was.State == api.StepDone && !is.Finished.Equal(was.Finished) {
			err = errors.Join(err, fmt.Errorf("step %s was %+v, and is %+v", was.Name, was, is))
		}
	}
	if !meta.IsStatusConditionTrue(now.Status.Conditions, api.ActionEffective) {
		err = errors.Join(err, errors.New("it is not effective"))
	}
	if err != nil {
		b.Errorf("action %s: %v", before.Name, err)
	}
	b.await("the end of the action to be told", func() error { return b.endTold(before.Name) })
}

// endTold returns an error unless the end of an action is told. It fails the test if something of it is told twice.
func (b *bed) endTold(name string) error {
	b.Helper()
	ends, told := 0, map[string]bool{}
	for _, e := range b.events() {
		if e.Object != "action/"+name {
			continue
		}
		if text := e.Code + " " + strings.SplitN(e.Message, ";", 2)[0]; told[text] {
			b.Errorf("twice it is told of action %s: %s", name, text)
		} else {
			told[text] = true
		}
		if e.Code == "ACTION_FINISHED" {
			ends++
		}
	}
	if ends != 1 {
		return fmt.Errorf("its end is told %d times", ends)
	}
	return nil
}
