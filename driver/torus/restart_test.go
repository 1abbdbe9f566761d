package torus

import (
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

// A torusd may be started again while no other peer that blocks may lie on is away, and an etcd while the others are a majority.
func TestRestart_asked(t *testing.T) {
	silent := func(v *engine.View) { v.System = nil }
	for name, tt := range map[string]struct {
		daemon string
		off    bool // h1 is in maintenance
		change func(*engine.View)
		want   string
	}{
		"a torusd, and all is well":       {daemon: "c-torusd-n2"},
		"an etcd, and all is well":        {daemon: "c-etcd-n2"},
		"a torusd while another is away":  {"c-torusd-n2", true, nil, "Refuse: each block is on 2 peers, but with it 2 peers would be away"},
		"the torusd that is away":         {"c-torusd-n1", true, nil, ""},
		"an etcd while another is away":   {"c-etcd-n2", true, nil, "Refuse: it holds a member of the cluster's etcd, and without it no majority of the members would run"},
		"a torusd while nobody answers":   {"c-torusd-n2", false, silent, "Refuse: Torus does not answer"},
		"an etcd while no torusd answers": {"c-etcd-n2", false, silent, ""},
		"a torusd while the speaker is about to say": {"c-torusd-n2", false, func(v *engine.View) {
			for i := range v.Daemons {
				v.Daemons[i].Generation++
			}
		}, "Wait: Torus does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3)
			w.settle()
			if tt.off {
				w.setMode(1, api.HostMaintenance)
			}
			w.settle()
			if got := w.againstRestart(tt.daemon, tt.change); (got == "") != (tt.want == "") || !strings.HasPrefix(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
