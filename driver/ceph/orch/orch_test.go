package orch_test

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/orch"
	"github.com/holdfast-storage/holdfast/engine"
)

const on, off = api.CephOrchEnabled, api.CephOrchDisabled

func spec(state api.CephOrchState) *api.CephSpec {
	return &api.CephSpec{Orch: &api.CephOrchSpec{State: state}}
}

// mgr is a manager that runs, started at a second.
func mgr(id string, started int64) *api.Daemon {
	d := &api.Daemon{}
	d.Spec.ID, d.Spec.State, d.Spec.Parameters = id, api.WantRunning, map[string]string{}
	at := metav1.NewMicroTime(time.Unix(started, 0))
	d.Status.State, d.Status.Started = api.DaemonRunning, &at
	return d
}

// TestNext: the plan has Ceph call the module when each manager that Holdfast starts has loaded it,
// and what somebody else chose stays.
func TestNext(t *testing.T) {
	foreign := mgr("f", 1)
	foreign.Spec.Parameters[api.ParameterForeign] = "x"
	stopped := mgr("b", 1)
	stopped.Status.State = api.DaemonBackOff
	a, b := mgr("a", 1), mgr("b", 1)
	newborn := mgr("n", 1)
	newborn.Spec.Parameters[api.ParameterOrch] = orch.Parameter(nil)
	both, two := map[string]bool{"a": true, "b": true}, []*api.Daemon{a, b}
	for name, tt := range map[string]struct {
		state     api.CephOrchState
		facts     orch.Facts
		mgrs      []*api.Daemon
		available bool
		verb      string
		reason    api.Reason
	}{
		"a standby lacks it": {
			on, orch.Facts{Loaded: map[string]bool{"a": true}}, two, true, "", api.ReasonRestarting,
		},
		"a standby does not run": {
			on, orch.Facts{Loaded: map[string]bool{"a": true}}, []*api.Daemon{a, stopped}, true, "", api.ReasonStarting,
		},
		"one is somebody else's": {
			on,
			orch.Facts{Loaded: both},
			[]*api.Daemon{a, b, foreign},
			true, orch.VerbModuleEnable,
			api.ReasonDeclared,
		},
		"none is active":               {on, orch.Facts{Loaded: both}, two, false, "", ""},
		"none is active or has loaded": {on, orch.Facts{Enabled: true}, two, false, "", ""},
		"none is active, born with it": {
			on, orch.Facts{Enabled: true}, []*api.Daemon{newborn}, false, orch.VerbBackend, api.ReasonDeclared,
		},
		"none is active, of one that is older": {
			on, orch.Facts{Enabled: true}, []*api.Daemon{newborn, a}, false, "", "",
		},
		"enabled": {
			on, orch.Facts{Loaded: both, Enabled: true}, two, true, orch.VerbBackend, api.ReasonDeclared,
		},
		"as wanted": {
			on, orch.Facts{Loaded: both, Enabled: true, Backend: "holdfast"}, two, true, "", "",
		},
		"cephadm answers": {
			on, orch.Facts{Loaded: both, Backend: "cephadm"}, two, true, "", api.ReasonConflict,
		},
		"turned off": {
			off, orch.Facts{Enabled: true, Backend: "holdfast"}, nil, true, orch.VerbBackend, api.ReasonRemoving,
		},
		"nearly off":     {off, orch.Facts{Enabled: true}, nil, true, orch.VerbModuleDisable, api.ReasonRemoving},
		"off":            {off, orch.Facts{}, nil, true, "", ""},
		"off, another's": {off, orch.Facts{Backend: "cephadm"}, nil, true, "", ""},
	} {
		step := orch.Next(spec(tt.state), &tt.facts, tt.mgrs, tt.available)
		if step == nil {
			step = &orch.Step{}
		}
		if step.Verb != tt.verb || step.Reason != tt.reason || step.Reason != "" && step.Why == "" {
			t.Errorf("%s: %+v", name, step)
		}
	}
}

// TestWithout: what is waited for so that 'ceph orch' is answered does not speak against the storage.
func TestWithout(t *testing.T) {
	p := &engine.Plan{}
	p.Decide(api.VerdictWait, api.ReasonRestarting, orch.Object, "waiting for mgr.b to load the module")
	p.Decide(api.VerdictWait, api.ReasonStarting, "mgrs", "waiting for mgr.b")
	if open := orch.Without(p).Open(); len(open) != 1 || open[0] != "mgrs: waiting for mgr.b" || len(p.Decisions) != 2 {
		t.Errorf("%v, %+v", open, p.Decisions)
	}
}

// TestMisses: a manager is started again once, for the module that its process was started without.
// A process that was started with it and did not load it, as by an agent that is too old, is not
// started again and again.
func TestMisses(t *testing.T) {
	without := &orch.Facts{Loaded: map[string]bool{}}
	d := mgr("a", 1)
	d.Spec.Parameters[api.ParameterOrch] = orch.Parameter(d)
	if !orch.Misses(d, spec(on), without) {
		t.Error("not started again")
	}
	d.Spec.Parameters[api.ParameterOrch] = orch.Parameter(d) // a later plan
	later := metav1.NewMicroTime(time.Unix(2, 0))
	d.Status.Started = &later
	if orch.Parameter(d) != d.Spec.Parameters[api.ParameterOrch] || orch.Misses(d, spec(on), without) {
		t.Error("started again and again")
	}
	born := mgr("b", 1)
	born.Spec.Parameters[api.ParameterOrch] = orch.Parameter(nil)
	for name, misses := range map[string]bool{
		"born with it":  orch.Misses(born, spec(on), without),
		"not wanted":    orch.Misses(d, spec(off), without),
		"Ceph is mute":  orch.Misses(d, spec(on), nil),
		"it has loaded": orch.Misses(d, spec(on), &orch.Facts{Loaded: map[string]bool{"a": true}}),
	} {
		if misses {
			t.Errorf("%s: started again", name)
		}
	}
}

// TestMgrMap reads what Ceph writes, and changes it as commands do.
func TestMgrMap(t *testing.T) {
	var m orch.MgrMap
	text := `{"epoch":7,"active_name":"a","available_modules":[{"name":"iostat"},{"name":"holdfast"}],
		"standbys":[{"name":"b","available_modules":[{"name":"iostat"}]}],"modules":["iostat","holdfast"]}`
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	facts := m.Facts(map[string]string{"mgr mgr/orchestrator/orchestrator": "cephadm"})
	if !facts.Enabled || facts.Backend != "cephadm" || !facts.Loaded["a"] || facts.Loaded["b"] {
		t.Errorf("%+v", facts)
	}
	gone := facts.After(orch.VerbBackend, map[string]string{orch.ParamBackend: ""}).After(orch.VerbModuleDisable, nil)
	if gone.Backend != "" || gone.Enabled || facts.Backend != "cephadm" {
		t.Errorf("%+v", gone)
	}
	none := spec(off)
	if orch.Has(none, gone, nil) || !orch.Has(none, &orch.Facts{Enabled: true}, nil) || !orch.Has(spec(on), nil, nil) {
		t.Error("who has the module")
	}
	had := mgr("a", 1)
	had.Spec.Parameters[api.ParameterOrch] = "born"
	mute := [][]*api.Daemon{{mgr("b", 1), had}, {mgr("b", 1)}}
	if !orch.Has(spec(off), nil, mute[0]) || orch.Has(spec(off), nil, mute[1]) || orch.Has(spec(off), gone, mute[0]) {
		t.Error("who has the module while Ceph is mute")
	}
}
