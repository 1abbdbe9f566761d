package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/driver/gluster"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// TestWaits_bad: waits that cannot be read end the program before it does anything, whatever it is to do.
func TestWaits_bad(t *testing.T) {
	t.Setenv(waits.Variable, "agentSilent=10s,hostDaed=30s")
	dir := t.TempDir()
	for _, args := range []string{"server --init", "agent --join x", "plan -f x", "apply -f x", "ceph adopt c", "version"} {
		var text bytes.Buffer
		args := append(strings.Fields(args), "--data-dir", dir+"/none")
		code := run(t.Context(), args, streams{in: strings.NewReader(""), out: &text, err: &text})
		if want := `holdfast: $HOLDFAST_WAITS: "hostDaed=30s" sets no wait`; code != exitUsage || !strings.HasPrefix(text.String(), want) {
			t.Errorf("%v: %d, %s", args, code, text.String())
		}
	}
}

// TestWaits_read: a command has the waits of the environment, and the drivers have those of the command.
func TestWaits_read(t *testing.T) {
	t.Setenv(waits.Variable, "replicaLost=5s,brickLost=6s")
	g := &globals{}
	if err := g.prepare(&cobra.Command{}, nil); err != nil {
		t.Fatal(err)
	}
	if g.waits.ReplicaLost != 5*time.Second || g.waits.HostDead != waits.Default().HostDead {
		t.Errorf("%+v", g.waits)
	}
	for _, d := range drivers(answerIn, g.waits) {
		switch d := d.(type) {
		case *ceph.Driver:
			if d.Waits != g.waits {
				t.Errorf("Ceph: %+v", d.Waits)
			}
		case gluster.Driver:
			if d.Waits != g.waits {
				t.Errorf("GlusterFS: %+v", d.Waits)
			}
		}
	}
}
