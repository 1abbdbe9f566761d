package heir

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// A directory is cleared away only where it is another Daemon's, and the storage system knows nothing of this one.
func TestForeign(t *testing.T) {
	for name, test := range map[string]struct {
		owner, newcomer, system string
		want                    bool
	}{
		"its own":                                 {"uid-1", "true", "pool", false},
		"of an earlier daemon":                    {"uid-0", "true", "pool", true},
		"of an earlier daemon, which is awaited":  {"uid-0", "", "pool", false},
		"of an earlier Holdfast":                  {"", "true", "pool", true},
		"of an earlier Holdfast, which is needed": {"", "", "pool", false},
		"of another pool":                         {"uid-0", "", "pool-2", true},
		"not there":                               {"none", "true", "pool", false},
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

// TestForeign_ran: the directory of a Daemon that ran is its own, also where an earlier Holdfast prepared it and noted no owner.
func TestForeign_ran(t *testing.T) {
	l := &service.Local{Data: t.TempDir(), Daemon: &api.Daemon{}}
	l.Daemon.UID, l.Daemon.Spec.Parameters = "uid-1", map[string]string{api.ParameterNewcomer: "true"}
	for state, want := range map[api.DaemonState]bool{
		api.DaemonRunning: false, api.DaemonBackOff: false, api.DaemonStopped: false, api.DaemonPending: true, api.DaemonFailed: true,
	} {
		l.Daemon.Status = api.DaemonStatus{State: state}
		if foreign, err := Foreign(l, "pool"); foreign != want || err != nil {
			t.Errorf("%s: foreign %v, %v", state, foreign, err)
		}
	}
}
