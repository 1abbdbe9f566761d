package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/test/home"
)

// TestGrow begins with one disk on one host, and then adds two hosts. Ceph's own pool, and a pool that is
// made by hand, then have three copies on three hosts; one that was made before is told of, and left alone.
func TestGrow(t *testing.T) {
	begin(t)
	b := newStorageBed(t, 3, 1)
	small, large := home.SpecFor(b.Lab, 1, 1, 1), home.SpecFor(b.Lab, 3, 2, 1)
	small.Devices = map[string][]string{b.Lab.Host(1).Name: small.Devices[b.Lab.Host(1).Name]}
	b.mustApply(small.YAML())
	b.cephHealthy(1, 1)
	b.ceph("osd", "pool", "create", "old", "8")
	b.poolIs("old", 1, "replicated_rule")
	b.poolIs("device_health_metrics", 1, "replicated_rule")

	b.apply(1, large.YAML())
	b.await("Ceph's own pool to grow", func() error { return b.poolDiffers("device_health_metrics", 3, "holdfast-host") })
	b.ceph("osd", "pool", "create", "x", "8")
	b.poolIs("x", 3, "holdfast-host")
	b.poolIs("old", 1, "replicated_rule")
	b.await("the old pool to be told of", func() error { return b.tellsOf("OneCopy", "pool old keeps 1 copy") })

	// What the condition says to do.
	b.ceph("osd", "pool", "set", "old", "size", "3")
	b.await("its copies to be told of", func() error { return b.tellsOf("OneHost", "ceph osd pool set old crush_rule holdfast-host") })
	b.ceph("osd", "pool", "set", "old", "crush_rule", "holdfast-host")
	b.await("nothing to be told of", func() error {
		return b.tellsOf("AsRoomAllows", "every pool keeps as many copies as there is room for")
	})
	// Ceph splits placement groups when it has the time.
	b.await("Ceph to be well", func() error { return b.health(3, 3) })
	b.noOrphans()
}

func (b *bed) poolIs(name string, size int, rule string) {
	b.Helper()
	if err := b.poolDiffers(name, size, rule); err != nil {
		b.Error(err)
	}
}

// poolDiffers says how a pool is otherwise than it should be.
func (b *bed) poolDiffers(name string, size int, rule string) error {
	got := fmt.Sprintln(b.ceph("osd", "pool", "get", name, "size"), b.ceph("osd", "pool", "get", name, "crush_rule"))
	want := fmt.Sprintf("size: %d crush_rule: %s", size, rule)
	if got = strings.Join(strings.Fields(got), " "); got != want {
		return fmt.Errorf("pool %s has %q, and not %q", name, got, want)
	}
	return nil
}

// tellsOf looks for a reason and a text in the condition Redundant.
func (b *bed) tellsOf(reason, text string) error {
	for _, c := range b.clusterNow(1).Status.Conditions {
		if c.Type == "Redundant" && c.Reason == reason && strings.Contains(c.Message, text) {
			return nil
		}
	}
	return fmt.Errorf("the condition Redundant is not %s with %q: %+v", reason, text, b.clusterNow(1).Status.Conditions)
}
