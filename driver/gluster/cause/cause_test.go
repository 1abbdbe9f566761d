package cause

import (
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

const online, offline, unknown = glusterd.BrickOnline, glusterd.BrickOffline, glusterd.BrickUnknown

// three is a volume of three copies on n1, n2 and n3.
func three(states ...glusterd.BrickState) *Volume {
	v := &Volume{
		Pool:    &glusterd.Volume{Name: "v", State: glusterd.VolumeStarted, Replica: 3, Options: map[string]string{}},
		Node:    func(address string) string { return "n" + address[len(address)-1:] },
		Resolve: "holdfast volume resolve v FILE --keep NODE",
	}
	for i, s := range states {
		b := glusterd.Brick{Address: "10.0.0." + string(rune('1'+i)), Path: "/b", State: s}
		if s == online {
			b.Heal = &glusterd.Heal{}
		}
		v.Pool.Bricks = append(v.Pool.Bricks, b)
	}
	return v
}

// TestOf: the worst that is known of a volume is its cause, and has a next step.
func TestOf(t *testing.T) {
	for name, tt := range map[string]struct {
		v      *Volume
		change func(*Volume)
		reason api.Reason
		next   string
	}{
		"all is well": {three(online, online, online), func(*Volume) {}, "", ""},
		"a brick is down": {
			three(online, offline, online), func(*Volume) {}, api.ReasonBricksOffline,
			"holdfast why glusterd.n2",
		},
		"a node is away": {
			three(online, online, unknown), func(*Volume) {}, api.ReasonBricksOffline,
			"holdfast why glusterd.n3",
		},
		"too few bricks": {
			three(online, offline, unknown), func(*Volume) {}, api.ReasonDataUnavailable,
			"holdfast why glusterd.n2",
		},
		"the pool has no quorum": {three(offline, unknown, unknown), func(v *Volume) {
			v.Pool.Options["cluster.server-quorum-type"] = "server"
			v.Peers = []glusterd.Peer{{Address: "10.0.0.2"}, {Address: "10.0.0.3"}}
		}, api.ReasonQuorumLost, "holdfast why glusterd.n2"},
		"the pool has a quorum": {three(online, offline, unknown), func(v *Volume) {
			v.Pool.Options["cluster.server-quorum-type"] = "server"
			v.Peers = []glusterd.Peer{{Address: "10.0.0.2", Connected: true}, {Address: "10.0.0.3"}}
		}, api.ReasonDataUnavailable, "holdfast why glusterd.n2"},
		"split-brain": {
			three(online, online, online), func(v *Volume) { v.Splits = []string{"/f"} },
			api.ReasonSplitBrain, "holdfast volume resolve v FILE --keep NODE",
		},
		"a brick hangs": {
			three(online, online, online), func(v *Volume) { v.Pool.Bricks[1].Heal = nil },
			api.ReasonDaemonHangs, "10.0.0.2:/b",
		},
		"no self-heal daemon": {three(online, online, online), func(v *Volume) {
			v.Pool.HealersDown, v.Pool.Bricks[0].Heal.Pending = []string{"10.0.0.2"}, 3
		}, api.ReasonNotHealing, "gluster volume start v force"},
		"healing": {
			three(online, online, online), func(v *Volume) { v.Pool.Bricks[0].Heal.Pending = 3 },
			api.ReasonDataNotClean, "holdfast get volumes",
		},
		"nothing can be asked": {
			three(unknown, unknown, unknown), func(v *Volume) { v.Pool.Silent = true },
			api.ReasonNotAnswering, "holdfast status",
		},
	} {
		tt.change(tt.v)
		if reason, next := Of(tt.v); reason != tt.reason || !strings.Contains(next, tt.next) {
			t.Errorf("%s: %s: %s", name, reason, next)
		}
	}
}
