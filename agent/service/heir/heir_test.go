package heir

import (
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// A directory is cleared away only where it is another Daemon's, and the storage system knows
// nothing of this one.
func TestForeign(t *testing.T) {
	for name, test := range map[string]struct {
		owner, newcomer, system string
		want                    bool
	}{
		"its own":                                         {"uid-1", "true", "pool", false},
		"of an earlier daemon":                            {"uid-0", "true", "pool", true},
		"of an earlier daemon, which is awaited":          {"uid-0", "", "pool", false},
		"of a daemon of an earlier Holdfast that is gone": {"", "true", "pool", true},
		"of an earlier Holdfast, which is needed":         {"", "", "pool", false},
		"of another pool":                                 {"uid-0", "", "pool-2", true},
		"not there":                                       {"none", "true", "pool", false},
	} {
		t.Run(name, func(t *testing.T) {
			l := &service.Local{Data: filepath.Join(t.TempDir(), "data"), Daemon: &api.Daemon{}}
			if test.owner != "none" {
				if err := os.Mkdir(l.Data, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if test.owner != "" && test.owner != "none" {
				l.Daemon.UID = types.UID(test.owner)
				if err := Inherit(l, "pool"); err != nil {
					t.Fatal(err)
				}
			}
			l.Daemon.UID, l.Daemon.Spec.Parameters = "uid-1", map[string]string{api.ParameterNewcomer: test.newcomer}
			if foreign, err := Foreign(l, test.system); foreign != test.want || err != nil {
				t.Errorf("%v %v", foreign, err)
			}
		})
	}
}

// TestForeign_ran: the directory of a Daemon that ran is its own, also where an earlier Holdfast
// prepared it and noted no owner. What was found once is found again, whatever the agent told of
// the daemon meanwhile.
func TestForeign_ran(t *testing.T) {
	started := metav1.NowMicro()
	for name, test := range map[string]struct {
		status api.DaemonStatus
		want   bool
	}{
		"running":                   {api.DaemonStatus{State: api.DaemonRunning}, false},
		"backing off":               {api.DaemonStatus{State: api.DaemonBackOff}, false},
		"stopped":                   {api.DaemonStatus{State: api.DaemonStopped}, false},
		"prepared":                  {api.DaemonStatus{State: api.DaemonPrepared}, false},
		"failed after it reported":  {api.DaemonStatus{State: api.DaemonFailed, Report: "{}"}, false},
		"failed after it ended":     {api.DaemonStatus{State: api.DaemonFailed, LastExit: &api.DaemonExit{}}, false},
		"prepared anew":             {api.DaemonStatus{State: api.DaemonPreparing, Version: "1.0"}, false},
		"started":                   {api.DaemonStatus{Started: &started}, false},
		"never seen":                {api.DaemonStatus{}, true},
		"waits":                     {api.DaemonStatus{State: api.DaemonPending, ObservedGeneration: 1}, true},
		"failed before it was made": {api.DaemonStatus{State: api.DaemonFailed, ObservedGeneration: 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := &service.Local{Data: t.TempDir(), Daemon: &api.Daemon{Status: test.status}}
			l.Daemon.UID, l.Daemon.Spec.Parameters = "uid-1", map[string]string{api.ParameterNewcomer: "true"}
			for _, now := range []api.DaemonStatus{test.status, {State: api.DaemonStopping, PID: 7}, {}} {
				l.Daemon.Status = now
				if foreign, err := Foreign(l, "pool"); foreign != test.want || err != nil {
					t.Errorf("%+v: foreign %v, %v", now, foreign, err)
				}
			}
			owner, err := os.ReadFile(filepath.Join(l.Data, ownerFile))
			if err != nil || (string(owner) == "uid-1 pool\n") == test.want {
				t.Errorf("the owner is %q, %v", owner, err)
			}
		})
	}
}

// TestForeign_retry: what an attempt to prepare the daemon leaves is its own, though the attempt
// did not come to Inherit.
func TestForeign_retry(t *testing.T) {
	l := &service.Local{Data: filepath.Join(t.TempDir(), "daemon", "data"), Daemon: &api.Daemon{}}
	l.Daemon.UID, l.Daemon.Spec.Parameters = "uid-1", map[string]string{api.ParameterNewcomer: "true"}
	for _, attempt := range []string{"first", "second"} {
		if foreign, err := Foreign(l, "pool"); foreign || err != nil {
			t.Errorf("the %s attempt: foreign %v, %v", attempt, foreign, err)
		}
		if err := os.WriteFile(filepath.Join(l.Data, attempt), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l.Daemon.UID = "uid-2"
	if foreign, err := Foreign(l, "pool"); !foreign || err != nil {
		t.Errorf("another Daemon: foreign %v, %v", foreign, err)
	}
}
