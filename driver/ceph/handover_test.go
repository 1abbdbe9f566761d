package ceph

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// adoptedView is the cluster of byHand as it was adopted: all its daemons run, and are watched.
func adoptedView() (*engine.View, *Observation) {
	r := byHand()
	x := Adopt(r)
	view := &engine.View{Cluster: &x.Cluster, Nodes: x.Nodes, Hosts: r.Hosts, Daemons: x.Daemons}
	started := metav1.NewMicroTime(time.Now().Add(-time.Hour))
	for i := range view.Daemons {
		view.Daemons[i].Status = api.DaemonStatus{State: api.DaemonRunning, PID: 7, Started: &started}
	}
	o := &Observation{
		Reachable: true, FSID: adoptedFSID, Quorum: []string{"h1", "h2", "h3"}, Monmap: []string{"h1", "h2", "h3"}, MgrAvailable: true, ActiveMgr: "h2", Standbys: 2,
		PGs: 9, PGsWanted: 9, PGsClean: 9, OSDs: map[int]OSD{},
	}
	for i := 1; i <= 3; i++ {
		o.OSDs[i] = OSD{UUID: r.daemonOf("osd." + string(rune('0'+i))).UUID, Up: true, In: true}
	}
	return view, o
}

func TestHandOver_inTurn(t *testing.T) {
	view, o := adoptedView()
	var names []string
	for _, d := range newHandOver(view, api.ActionSpec{}).inTurn(o, TypeMgr) {
		names = append(names, label(d))
	}
	if got := strings.Join(names, " "); got != "mgr.h1 mgr.h3 mgr.h2" {
		t.Errorf("the active one is not last: %s", got)
	}
	one := newHandOver(view, api.ActionSpec{Parameters: map[string]api.ActionParameter{HandOverHosts: "h1,h3"}})
	if n := len(one.inTurn(o, TypeOSD)); n != 2 {
		t.Errorf("%d OSDs of two hosts", n)
	}
}

// TestHandOver_notYet holds a mon back for each thing that is not as it should be.
func TestHandOver_notYet(t *testing.T) {
	for want, change := range map[string]func(*Observation, *api.Daemon){
		"":                               func(*Observation, *api.Daemon) {},
		"all 3 mons to be in the quorum": func(o *Observation, _ *api.Daemon) { o.Quorum = o.Quorum[:2] },
		"all 3 managers to run":          func(o *Observation, _ *api.Daemon) { o.Standbys = 1 },
		"active+clean: 8 of 9":           func(o *Observation, _ *api.Daemon) { o.PGsClean = 8 },
		"active+clean: 9 of 9":           func(o *Observation, _ *api.Daemon) { o.PGsOld = true },
		"the agent of host h1 to report mon.h1 as running": func(_ *Observation, d *api.Daemon) { d.Status.State = api.DaemonStopped },
		"all placement groups to be active+cl":             func(o *Observation, _ *api.Daemon) { o.PGs, o.PGsClean = 3, 3 },
	} {
		view, o := adoptedView()
		d := &view.Daemons[0]
		change(o, d)
		if got := newHandOver(view, api.ActionSpec{}).notYet(t.Context(), o, d); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestHandOver_unwell(t *testing.T) {
	for want, change := range map[string]func(*Observation, *api.Daemon){
		"":                           func(*Observation, *api.Daemon) {},
		"the agent of host h1":       func(_ *Observation, d *api.Daemon) { d.Generation++ },
		"to go back":                 func(_ *Observation, d *api.Daemon) { d.Status.State = api.DaemonBackOff },
		"to run for":                 func(_ *Observation, d *api.Daemon) { d.Status.Started = new(metav1.NowMicro()) },
		"mon.h1 to be in the quorum": func(o *Observation, _ *api.Daemon) { o.Quorum = o.Quorum[1:] },
	} {
		view, o := adoptedView()
		d := &view.Daemons[0]
		change(o, d)
		if got := newHandOver(view, api.ActionSpec{}).unwell(o, d); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	view, o := adoptedView()
	o.OSDs[1] = OSD{UUID: o.OSDs[1].UUID}
	h := newHandOver(view, api.ActionSpec{})
	for _, d := range h.inTurn(o, TypeOSD) {
		if got := h.unwell(o, d); (got == "") != (d.Spec.ID != "1") {
			t.Errorf("%s: %q", label(d), got)
		}
	}
}

func TestHandOver_strangers(t *testing.T) {
	view, o := adoptedView()
	h := newHandOver(view, api.ActionSpec{})
	if got := h.strangers(o); len(got) > 0 {
		t.Errorf("%q", got)
	}
	o.Monmap, o.OSDs[1], o.OSDs[9] = append(o.Monmap, "x"), OSD{UUID: "another"}, OSD{}
	if got := strings.Join(h.strangers(o), " "); got != "mon.x osd.1 osd.9" {
		t.Error(got)
	}
}

func TestHandOver_refused(t *testing.T) {
	for want, change := range map[string]func(*engine.View, *api.ActionSpec){
		"":                 func(*engine.View, *api.ActionSpec) {},
		"was not adopted":  func(v *engine.View, _ *api.ActionSpec) { v.Cluster.Annotations = nil },
		"is being deleted": func(v *engine.View, _ *api.ActionSpec) { v.Cluster.DeletionTimestamp = new(metav1.Now()) },
		"set it to Active": func(v *engine.View, _ *api.ActionSpec) { v.Cluster.Spec.Mode = api.ClusterObserved },
		"no daemon on host h9": func(_ *engine.View, s *api.ActionSpec) {
			s.Parameters = map[string]api.ActionParameter{HandOverHosts: "h1,h9"}
		},
		"host h2 is in mode Maintenance": func(v *engine.View, _ *api.ActionSpec) { v.Hosts[1].Spec.Mode = api.HostMaintenance },
		"all daemons are handed over": func(v *engine.View, _ *api.ActionSpec) {
			for i := range v.Daemons {
				v.Daemons[i].Spec.State = api.WantRunning
			}
		},
	} {
		view, _ := adoptedView()
		var spec api.ActionSpec
		change(view, &spec)
		lines, err := HandOverWords(view, spec, map[string]string{})
		if (want == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), action.ErrRefused.Error())) {
			t.Errorf("%q: %v, %q", want, err, lines)
		}
	}
}

// TestRecover_watched leaves mons alone that are not Holdfast's: nobody could say that they are stopped.
func TestRecover_watched(t *testing.T) {
	view, _ := adoptedView()
	if _, err := newRecovery(view, api.ActionSpec{}); err == nil || !strings.Contains(err.Error(), "not handed over") {
		t.Errorf("%v", err)
	}
	for i := range view.Daemons {
		view.Daemons[i].Spec.State = api.WantRunning
	}
	if _, err := newRecovery(view, api.ActionSpec{}); err != nil {
		t.Errorf("when all is handed over: %v", err)
	}
}

// shelf is a store with one view, and the names of the Daemons that were written.
type shelf struct {
	engine.Store
	view *engine.View
	put  []string
}

func (s *shelf) View(context.Context, types.NamespacedName) (*engine.View, error) { return s.view, nil }

func (s *shelf) PutDaemon(_ context.Context, _ *api.StorageCluster, change engine.DaemonChange) error {
	s.put = append(s.put, label(&change.Daemon)+" "+string(change.Daemon.Spec.State))
	return nil
}

// TestHandOver_changedMeanwhile has somebody delete the cluster, or a Daemon, while Ceph was asked: nothing is handed over.
func TestHandOver_changedMeanwhile(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*engine.View)
		want   string
	}{
		"nothing":              {func(*engine.View) {}, "mon.h1 Running"},
		"cluster deleted":      {func(v *engine.View) { v.Cluster.DeletionTimestamp = new(metav1.Now()) }, ""},
		"only observed":        {func(v *engine.View) { v.Cluster.Spec.Mode = api.ClusterObserved }, ""},
		"Daemon deleted":       {func(v *engine.View) { v.Daemons[0].DeletionTimestamp = new(metav1.Now()) }, ""},
		"Daemon gone":          {func(v *engine.View) { v.Daemons = v.Daemons[1:] }, ""},
		"Daemon made anew":     {func(v *engine.View) { v.Daemons[0].UID = "another" }, ""},
		"handed over already ": {func(v *engine.View) { v.Daemons[0].Spec.State = api.WantRunning }, ""},
	} {
		before, o := adoptedView()
		now, _ := adoptedView()
		tt.change(now)
		s := &shelf{view: now}
		h := newHandOver(before, api.ActionSpec{})
		h.Store = s
		if _, err := h.next(t.Context(), o, TypeMon); strings.Join(s.put, " ") != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v", name, s.put, err)
		}
	}
}
