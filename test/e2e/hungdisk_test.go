package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// TestHungDisk has the disk hang on which a member of etcd keeps its data: its process is there, answers, and does nothing. It is
// seen, shown with the reason, and replaced by the standby; first a member that follows, then the one that leads. When the disk is
// back, the server is a standby.
func TestHungDisk(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 4, Disks: 1})
	for _, h := range lab.Hosts() {
		onDisk(t, h)
	}
	b := &bed{t, home.StartServers(t, lab, binary, 4, "--etcd-replace-after", "8s")}
	for _, step := range []struct {
		name string
		pick func(q home.Quorum, name string) bool
	}{
		{"a member that follows", func(q home.Quorum, name string) bool { return name != q.Leader }},
		{"the member that leads", func(q home.Quorum, name string) bool { return name == q.Leader }},
	} {
		t.Run(step.name, func(t *testing.T) { (&bed{t, b.Home}).diskHangs(step.pick) })
	}
}

// onDisk puts a host's data directory on its first disk.
func onDisk(t *testing.T, h *hosts.Host) {
	t.Helper()
	disk := h.Disk(0).Path()
	h.Run(t, t.Context(), "mkfs.ext4", "-q", disk)
	h.Run(t, t.Context(), "mkdir", "-p", dataDir)
	h.Run(t, t.Context(), "mount", disk, dataDir)
}

// diskHangs freezes the disk of a member that pick likes, until it is replaced.
func (b *bed) diskHangs(pick func(q home.Quorum, name string) bool) {
	q := b.quorum(1, "three members and a standby", func(q home.Quorum) bool {
		return len(q.Members) == 3 && len(q.Standbys) == 1 && q.Degraded == ""
	})
	i := slices.IndexFunc(q.Members, func(m home.Member) bool { return pick(q, m.Name) })
	name, standby := q.Members[i].Name, q.Standbys[0]
	number := b.number(name)
	other := number%4 + 1
	if b.Lab.Host(other).Name == standby {
		other = other%4 + 1
	}
	h := b.Lab.Host(number)
	h.Run(b, context.Background(), "fsfreeze", "-f", dataDir)
	thaw := func() { _, _ = h.Try(context.Background(), "fsfreeze", "-u", dataDir) } // it may be thawed already
	b.Cleanup(thaw)
	b.quorum(other, "the member to be seen to do nothing", func(q home.Quorum) bool {
		return slices.ContainsFunc(q.Members, func(m home.Member) bool {
			return m.Name == name && !m.Answers && strings.Contains(m.Problem, "its disk hangs")
		})
	})
	if out, err := b.HoldfastOn(other, "get", "hosts"); err != nil {
		b.Errorf("the other two do not serve: %v\n%s", err, out)
	}
	b.quorum(other, "the standby in the place of the one that hangs", func(q home.Quorum) bool {
		return b.votes(q, standby) && !b.sits(q, name) && q.Degraded == ""
	})
	thaw()
	b.quorum(other, "the server whose disk hung as the standby", func(q home.Quorum) bool { return slices.Contains(q.Standbys, name) })
	b.await("its old data to be moved aside", func() error {
		if out, err := h.Try(context.Background(), "ls", dataDir); err != nil || !strings.Contains(out, "etcd.removed") {
			return fmt.Errorf("there is %s: %w", out, err)
		}
		return nil
	})
}
