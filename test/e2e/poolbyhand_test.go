package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// poolByHand renames a pool without Holdfast, back, and deletes it: it is not made anew before a person says so.
func (b *bed) poolByHand() {
	b.Helper()
	b.mustApply(poolYAML("vms", "replicated: {size: 2}"))
	b.holdfast(0, "ceph", "shell", "--", "bash", "-c", "echo mine | rados -p vms put o -")
	id := strconv.FormatInt(b.pool("vms").Status.ID, 10)

	b.ceph("osd", "pool", "rename", "vms", "vms-old")
	b.poolLost("vms", api.ReasonRenamedOutside, id, "was renamed to vms-old outside Holdfast")
	b.holdfast(0, "orchestrate", "ceph", "--wait") // one more run makes nothing, either
	if out := b.ceph("osd", "pool", "ls"); slices.Contains(strings.Fields(out), "vms") {
		b.Errorf("a new pool was made: %s", out)
	}
	b.ceph("osd", "pool", "rename", "vms-old", "vms")
	b.poolFound("vms", id)
	if out := b.holdfast(0, "ceph", "shell", "--", "rados", "-p", "vms", "get", "o", "-"); !strings.Contains(out, "mine") {
		b.Errorf("read back %q", out)
	}

	b.ceph("config", "set", "mon", "mon_allow_pool_delete", "true")
	b.ceph("osd", "pool", "rm", "vms", "vms", "--yes-i-really-really-mean-it")
	b.ceph("config", "rm", "mon", "mon_allow_pool_delete")
	b.poolLost("vms", api.ReasonDeletedOutside, id, "'holdfast recreate pool vms --lost "+id+"' creates a new, empty one")
	if out, code := b.holdfastSays("recreate", "pool", "vms", "--lost", "99"); code != 3 || !strings.Contains(out, "the id of the loss is "+id) {
		b.Errorf("the loss of another pool: %d, %s", code, out)
	}
	b.holdfast(0, "recreate", "pool", "vms", "--lost", id)
	b.await("the pool to be made anew", func() error {
		if s := b.pool("vms").Status; s.State != api.ResourceOnline || s.Lost != "" || strconv.FormatInt(s.ID, 10) == id {
			return fmt.Errorf("%s, id %d: %s", s.State, s.ID, s.Message)
		}
		return nil
	})
}

// poolLost waits until a pool is told to be gone.
func (b *bed) poolLost(name, reason, id, says string) {
	b.Helper()
	b.await("pool "+name+" to be "+reason, func() error {
		s := b.pool(name).Status
		c := meta.FindStatusCondition(s.Conditions, api.ResourcePresent)
		if c == nil || c.Reason != reason || s.State != api.ResourceOffline || s.Lost != id || !strings.Contains(s.Message, says) {
			return fmt.Errorf("%s, %+v: %s", s.State, c, s.Message)
		}
		return nil
	})
}

func (b *bed) poolFound(name, id string) {
	b.Helper()
	b.await("pool "+name+" to be found", func() error {
		s := b.pool(name).Status
		if s.State != api.ResourceOnline || s.Lost != "" || strconv.FormatInt(s.ID, 10) != id {
			return fmt.Errorf("%s, id %d: %s", s.State, s.ID, s.Message)
		}
		return nil
	})
}
