package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// copiesDiffer changes one copy of an object behind Ceph's back: a deep scrub finds it, the status says what to do, and what it says mends it. Nothing is
// repaired before that.
func (b *bed) copiesDiffer(t *testing.T) {
	const object, good = "rotten", "what was written"
	h := b.Lab.Host(2)
	for name, text := range map[string]string{"good": good, "bad": "what has rotten."} {
		if err := os.WriteFile(h.Path("/var/tmp/"+name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rados := func(args ...string) string {
		out, err := b.HoldfastOn(2, append([]string{"ceph", "shell", "--", "rados", "-p", "client"}, args...)...)
		if err != nil {
			t.Error(err)
		}
		return out
	}
	rados("put", object, "/var/tmp/good")
	var at struct {
		PG string `json:"pgid"`
	}
	if err := json.Unmarshal([]byte(b.ceph("osd", "map", "client", object, "-f", "json")), &at); err != nil {
		t.Fatal(err)
	}
	b.changeCopy(h.Name, at.PG, object)

	b.ceph("config", "set", "osd", "osd_scrub_backoff_ratio", "0") // else each OSD starts a scrub in one second of three
	asked := time.Time{}
	b.await("the changed copy to be found", func() error {
		// What is asked of a placement group that is just being scrubbed for another reason may be lost with that.
		if time.Since(asked) > 20*time.Second {
			asked = time.Now()
			b.ceph("pg", "deep-scrub", at.PG)
		}
		return b.checkThere("PG_DAMAGED", true)
	})
	if out := b.run("status"); !strings.Contains(out, at.PG) || !strings.Contains(out, "ceph pg repair PG") {
		t.Errorf("the status does not have the placement group %s and the next step:\n%s", at.PG, out)
	}
	if out := b.run("ceph", "shell", "--", "rados", "list-inconsistent-obj", at.PG); !strings.Contains(out, object) {
		t.Errorf("what differs: %s", out)
	}
	b.ceph("pg", "repair", at.PG)
	b.awaitCheck("PG_DAMAGED", false)
	if got := rados("get", object, "-"); got != good {
		t.Errorf("%q is read", got)
	}
	b.ceph("config", "rm", "osd", "osd_scrub_backoff_ratio")
}

// changeCopy changes the copy that the OSD of a host has, while the host is in maintenance.
func (b *bed) changeCopy(host, pg, object string) {
	b.Helper()
	b.setMode(2, api.HostMaintenance)
	var osd api.Daemon
	b.await("the OSD to have stopped", func() error {
		for _, d := range b.daemons() {
			if d.Spec.Host == host && d.Spec.Type == "ceph-osd" {
				osd = d
			}
		}
		if osd.Status.State != api.DaemonStopped {
			return fmt.Errorf("%s is %s", osd.Name, osd.Status.State)
		}
		return nil
	})
	b.Lab.Host(2).Run(b, context.Background(), "ceph-objectstore-tool", "--no-mon-config", "--data-path",
		"/var/lib/holdfast/agent/daemons/default."+osd.Name+"/data/store", "--pgid", pg, object, "set-bytes", "/var/tmp/bad")
	b.setMode(2, api.HostActive)
	b.await("Ceph to be well", func() error { return b.health(3, 3) })
}
