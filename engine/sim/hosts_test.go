package sim_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/engine/sim"
)

// leader is one server's time of leading: the engine runs, and actions are carried out.
type leader struct {
	ctx      context.Context
	cancel   context.CancelFunc
	work     sync.WaitGroup
	handlers map[string]action.Handler
	err      error
}

// lead lets a server lead, until stand down is called.
func (s *stage) lead() {
	l := &leader{handlers: map[string]action.Handler{}}
	l.ctx, l.cancel = context.WithCancel(s.ctx)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	o := &engine.Orchestrator{Store: s.Memory, Driver: s.toy, Leader: "s1", Log: log}
	for _, h := range hosts.Handlers(hosts.Config{Store: s.Memory, Planners: map[api.StorageType]hosts.Planner{sim.ToyType: o}}) {
		l.handlers[h.Kind().Name] = h
	}
	l.work.Go(func() {
		l.err = engine.Run(l.ctx, engine.Config{Store: s.Memory, Log: log, Managers: []engine.ServiceManager{o}})
	})
	s.leader = l
	for _, name := range s.actionNames {
		s.carry(name)
	}
}

// standDown ends the leader's work, wherever it is.
func (s *stage) standDown() error {
	s.leader.cancel()
	s.leader.work.Wait()
	return s.leader.err
}

// carry has the leader carry an action out, from where its record ends.
func (s *stage) carry(name string) {
	l := s.leader
	l.work.Go(func() {
		for l.ctx.Err() == nil {
			a, err := s.actions.Get(l.ctx, actionNamed(name))
			if err != nil || a.Status.State.Final() {
				return
			}
			turn, err := action.Execute(l.ctx, l.handlers[a.Spec.Kind], recorder{s.actions, s.killed}, a)
			if err != nil && !errors.Is(err, action.ErrConflict) && l.ctx.Err() == nil {
				panic(err) // the store in memory does not fail
			}
			select {
			case <-l.ctx.Done():
			case <-time.After(turn.Next):
			}
		}
	})
}

func actionNamed(name string) *api.Action {
	return &api.Action{ObjectMeta: metav1.ObjectMeta{Namespace: "holdfast-system", Name: name}}
}

// startAction creates the action that 'action NAME KIND host=HOST [PARAMETER=VALUE …]' asks for. It is its turn at once.
func (s *stage) startAction(d *datadriven.TestData) error {
	a := actionNamed(d.CmdArgs[0].Key)
	a.Spec = api.ActionSpec{
		Kind: d.CmdArgs[1].Key, Host: value(d, "host"), Target: "host/" + value(d, "host"), Want: api.WantDone,
		Parameters: map[string]api.ActionParameter{},
	}
	for _, arg := range d.CmdArgs[2:] {
		if arg.Key != "host" {
			a.Spec.Parameters[arg.Key] = api.ActionParameter(strings.Join(arg.Vals, ","))
		}
	}
	a.Status.State = api.ActionNew
	if err := s.actions.Create(s.ctx, a); err != nil {
		return err
	}
	s.actionNames = append(s.actionNames, a.Name)
	s.carry(a.Name)
	return nil
}

func (s *stage) cancelAction(name string) error {
	a, err := s.actions.Get(s.ctx, actionNamed(name))
	if err != nil {
		return err
	}
	a.Spec.Want = api.WantCancelled
	return s.actions.UpdateSpec(s.ctx, a)
}

func (s *stage) showAction(name string) (string, error) {
	a, err := s.actions.Get(s.ctx, actionNamed(name))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s\n", a.Spec.Kind, a.Status.State, a.Status.Message)
	if a.Status.WaitsFor != "" {
		fmt.Fprintf(&b, "waits for %s\n", a.Status.WaitsFor)
	}
	for _, step := range a.Status.Steps {
		fmt.Fprintf(&b, "  %s %s %d/%d\n", step.Name, step.State, step.Done, step.Total)
	}
	return b.String(), nil
}

// showHost prints the host's mode, and the daemons on it.
func (s *stage) showHost(name string) (string, error) {
	v, err := s.Host(s.ctx, name)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %q\n", name, v.Host.ModeOf(), v.Host.Spec.Reason)
	for i := range v.Nodes {
		fmt.Fprintf(&b, "  node %s\n", v.Nodes[i].Name)
	}
	for i := range v.Daemons {
		d := &v.Daemons[i]
		deleted := ""
		if d.DeletionTimestamp != nil {
			deleted = ", being removed"
		}
		fmt.Fprintf(&b, "  %s wanted %s is %s%s\n", d.Name, d.Spec.State, d.Status.State, deleted)
	}
	return b.String(), nil
}

func (s *stage) setMode(host, mode string) error {
	h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: host}}
	if err := s.Get(s.ctx, h); err != nil {
		return err
	}
	h.Spec.Mode = api.HostMode(mode)
	return s.Update(s.ctx, h)
}
