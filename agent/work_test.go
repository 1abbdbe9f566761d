package agent

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// A process goes on with the names of its devices that it was prepared on, also under another agent: one that ends on the name from before a loss
// of power is made ready on what its devices are called now, and one that just crashed is not.
func TestNoteReady(t *testing.T) {
	key := types.NamespacedName{}
	at := func(path string) *service.Local {
		return &service.Local{Daemon: &api.Daemon{}, Devices: map[string]api.Device{"block": {Path: path}}}
	}
	data := t.TempDir()
	file := filepath.Join(paths{data: data}.daemon(key), filePaths)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	var a *agent
	for _, step := range []struct {
		name, ready, now      string
		anew, ran, lost, want bool
	}{
		{name: "found running, and nothing is known", anew: true, ready: "/dev/a", ran: true, now: "/dev/a", want: true},
		{name: "prepared", ready: "/dev/a", now: "/dev/a"},
		{name: "renamed since", ready: "/dev/a", now: "/dev/b", want: true},
		{name: "another agent finds it running", anew: true, ready: "/dev/a", ran: true, now: "/dev/a"},
		{name: "another agent finds it running, and the device has another name", anew: true, ready: "/dev/b", ran: true, now: "/dev/b", want: true},
		{name: "its files changed while it ran", ready: "/dev/b", ran: true, now: "/dev/b", want: true},
		{name: "prepared again", ready: "/dev/b", now: "/dev/b"},
		{name: "the file is damaged", anew: true, lost: true, ready: "/dev/b", ran: true, now: "/dev/b", want: true},
	} {
		if step.anew {
			a = &agent{paths: paths{data: data}, work: &work{ready: map[types.NamespacedName]readiness{}}}
		}
		if step.lost {
			if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.noteReady(at(step.ready), step.ran); err != nil {
			t.Fatal(err)
		}
		if got := a.work.isElsewhere(key, at(step.now)); got != step.want {
			t.Errorf("%s: elsewhere is %v", step.name, got)
		}
	}
}
