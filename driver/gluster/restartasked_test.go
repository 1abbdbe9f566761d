package gluster

import (
	"cmp"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// againstRestart is what is said when somebody asks for the restart of a daemon; nothing when it may be.
func (w *world) againstRestart(daemon string, change func(*engine.View)) (word string) {
	v := w.view()
	v.Restart = daemon
	if change != nil {
		change(v)
	}
	for _, d := range (Driver{}).Plan(v, w.now).AgainstRestart(daemon) {
		word += string(d.Verdict) + ": " + d.Message
	}
	return word
}

// A glusterd may be started again while its bricks go on, also while others are down or copies are not alike; but not where that
// has the bricks of other nodes stop, nor where nobody can say so.
func TestRestart_asked(t *testing.T) {
	unspoken := func(v *engine.View) {
		for i := range v.Daemons {
			v.Daemons[i].Generation++
		}
	}
	for name, tt := range map[string]struct {
		daemon string // that of n1 unless it says another one
		quorum bool
		off    []int
		change func(*engine.View)
		want   string
	}{
		"all is well":                                   {},
		"all is well, with a quorum":                    {quorum: true},
		"another node is off":                           {off: []int{3}},
		"another node is off, with a quorum":            {"", true, []int{3}, nil, "Refuse: volume v has cluster.server-quorum-type server, and 1 of the pool's 3 nodes would be left"},
		"it is off itself, as another one":              {daemon: "c-glusterd-n3", quorum: true, off: []int{2, 3}},
		"nobody answers":                                {change: func(v *engine.View) { v.System = nil }, want: "Refuse: the pool does not answer, and only the pool can say"},
		"the one that speaks for the pool says nothing": {change: unspoken, want: "Refuse: the pool does not answer, and only the pool can say"},
		"another one is about to speak for it":          {daemon: "c-glusterd-n2", change: unspoken, want: "Wait: the pool does not answer, and only the pool can say"},
	} {
		t.Run(name, func(t *testing.T) {
			w := poolOf(t, 3)
			v := w.volume("v", "10Gi", replica3())
			if tt.quorum {
				v.Spec.Options = api.VolumeOptions{"cluster.server-quorum-type": "server"}
			}
			w.settle()
			for _, i := range tt.off {
				w.power(i, false)
			}
			w.settle()
			if got := w.againstRestart(cmp.Or(tt.daemon, "c-glusterd-n1"), tt.change); (got == "") != (tt.want == "") || !strings.HasPrefix(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// In a pod the bricks of a glusterd end with it: its restart is asked for as the stop of its node
// is. It may speak for the pool, as it comes back.
func TestRestart_asked_pod(t *testing.T) {
	for name, tt := range map[string]struct {
		durability *api.VolumeDurability
		runtime    api.RuntimeKind
		off        []int
		stale      bool // the brick of n2 lacks something
		want       string
	}{
		"all is well": {durability: replica3(), runtime: api.RuntimePod},
		"another node is off": {
			durability: replica3(), runtime: api.RuntimePod, off: []int{3},
			want: "Refuse: volume v needs it: brick ",
		},
		"another node is off, on a machine": {durability: replica3(), runtime: api.RuntimeSystemd, off: []int{3}},
		"copies are not alike": {
			durability: replica3(), runtime: api.RuntimePod, stale: true,
			want: "Wait: volume v needs it: 10 entries of brick ",
		},
		"copies are not alike, on a machine": {
			durability: replica3(), runtime: api.RuntimeDetached, stale: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := poolOf(t, 3)
			for i := range w.hosts {
				w.hosts[i].Status.Runtime = tt.runtime
			}
			w.volume("v", "10Gi", tt.durability)
			w.settle()
			for _, i := range tt.off {
				w.power(i, false)
			}
			w.settle()
			if tt.stale {
				v := w.gluster.volumes["v"]
				v.lazy, v.bricks[1].stale = true, true
				w.agents()
			}
			for _, daemon := range []string{"c-glusterd-n1", "c-glusterd-n2"} {
				if got := w.againstRestart(daemon, nil); (got == "") != (tt.want == "") || !strings.HasPrefix(got, tt.want) {
					t.Errorf("%s: %q, want %q", daemon, got, tt.want)
				}
			}
		})
	}
}
