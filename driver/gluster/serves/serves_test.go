package serves

import (
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// TestOf: a glusterd that runs, and that the pool does not reach, rejects, or has offline bricks of.
func TestOf(t *testing.T) {
	d := &api.Daemon{Spec: api.DaemonSpec{Host: "h2"}}
	d.Name = "glusterd-h2"
	for name, tt := range map[string]struct {
		peer    *glusterd.Peer
		offline []string
		volume  string
		reason  api.Reason
		next    string
	}{
		"it speaks for the pool": {nil, nil, "", "", ""},
		"it serves":              {&glusterd.Peer{Connected: true, State: glusterd.PeerInCluster}, nil, "", "", ""},
		"it hangs": {
			&glusterd.Peer{State: glusterd.PeerInCluster}, nil, "",
			api.ReasonDaemonHangs, "'holdfast daemon restart glusterd-h2'",
		},
		"it is rejected": {
			&glusterd.Peer{Connected: true, State: "Peer Rejected"}, nil, "",
			api.ReasonPeerRejected, "'holdfast daemon restart glusterd-h2'",
		},
		"nothing heals": {nil, nil, "v", api.ReasonNotHealing, "gluster volume start v force"},
		"a brick is offline": {
			nil,
			[]string{"10.0.0.2:/b/v"},
			"",
			api.ReasonBricksOffline, "/var/log/glusterfs/bricks on host h2",
		},
	} {
		s := Of(d, tt.peer, tt.offline, tt.volume)
		if s == nil {
			s = &api.DaemonService{}
		}
		if s.Reason != tt.reason || !strings.Contains(s.Next, tt.next) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestUnhealed(t *testing.T) {
	volumes := []glusterd.Volume{
		{Name: "a", State: glusterd.VolumeStopped, HealersDown: []string{"10.0.0.2"}},
		{Name: "b", State: glusterd.VolumeStarted, HealersDown: []string{"10.0.0.2", "localhost"}},
	}
	for address, want := range map[string]string{"10.0.0.2": "b", "10.0.0.3": ""} {
		if got := Unhealed(volumes, address, false); got != want {
			t.Errorf("%s: %q", address, got)
		}
	}
	if got := Unhealed(volumes, "10.0.0.1", true); got != "b" {
		t.Errorf("the node that reports: %q", got)
	}
}
