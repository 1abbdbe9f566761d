package deaf

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func TestMgr(t *testing.T) {
	const after = 5 * time.Minute
	now := time.Now()
	for name, tt := range map[string]struct {
		state    api.DaemonState
		runs     time.Duration
		active   string
		standbys int
		want     bool
	}{
		"it hangs":               {api.DaemonRunning, after + time.Second, "", 0, true},
		"it has just started":    {api.DaemonRunning, time.Minute, "", 0, false},
		"Ceph has an active one": {api.DaemonRunning, time.Hour, "b", 0, false},
		"Ceph has a standby":     {api.DaemonRunning, time.Hour, "", 1, false},
		"it does not run":        {api.DaemonBackOff, time.Hour, "", 0, false},
	} {
		d := &api.Daemon{Status: api.DaemonStatus{State: tt.state, Started: &metav1.MicroTime{Time: now.Add(-tt.runs)}}}
		if got := Mgr(d, tt.active, tt.standbys, now, after); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
