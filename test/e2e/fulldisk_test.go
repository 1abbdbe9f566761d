package e2e

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// TestFullDisk has the disk of a server be full while it joins, and get full while it holds a member of etcd. It is given no seat before
// there is room; its member ends with a sentence that says what to do, the others go on, and it is back when there is room again.
func TestFullDisk(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 3, Disks: 1, DiskSize: 2 << 30})
	full := lab.Host(3)
	onDisk(t, full)
	fill(t, full, 300)
	b := &bed{t, home.StartServers(t, lab, binary, 2)}
	b.JoinServer(t, 3, b.Token(t, "server"))
	b.AwaitHosts(t, 3)
	b.await("the server to say that it has no room", func() error { return logged(full, "512 MiB are needed: free some space there") })
	other := func(q home.Quorum) bool { return b.sits(q, lab.Host(2).Name) }
	q := b.quorum(1, "the other server to be a member of etcd", other)
	if b.sits(q, full.Name) {
		t.Errorf("the server without room is a member of etcd, too: %+v", q)
	}
	b.await("the leader to name the server without room", func() error {
		if text := b.run("quorum"); !strings.Contains(text, full.Name+": it cannot hold a member of etcd: ") {
			return errors.New(text)
		}
		return nil
	})
	full.Run(t, t.Context(), "rm", dataDir+"/filler")
	three := func(q home.Quorum) bool { return len(q.Members) == 3 && b.votes(q, full.Name) && q.Degraded == "" }
	b.quorum(1, "three members when there is room", three)

	// While it takes its seat it does not end, but goes on trying.
	b.await("the server to hold its seat", func() error { return logged(full, "this server holds a member of etcd now") })
	fill(t, full, 0)
	b.await("the server to end", func() error {
		b.run("host", "label", full.Name, "disk=full") // Something is written.
		b.run("host", "label", full.Name, "disk-")
		select {
		case <-b.Server(3).Done():
			return nil
		default:
			return errors.New("it runs")
		}
	})
	if err := logged(full, "its disk is full; free some space, then start the server again"); err != nil {
		t.Error(err)
	}
	b.quorum(1, "the other two", func(q home.Quorum) bool {
		return slices.ContainsFunc(q.Members, func(m home.Member) bool { return m.Name == full.Name && !m.Answers }) && q.Degraded != ""
	})
	full.Run(t, t.Context(), "rm", dataDir+"/filler")
	b.StartServer(t, 3)
	b.quorum(1, "three members again", three)
}

// fill leaves so many MiB free on the disk of a host's data directory.
func fill(t *testing.T, h *hosts.Host, leave int) {
	t.Helper()
	script := fmt.Sprintf("free=$(df --output=avail -m %[1]s | tail -1); fallocate -l $((free - %[2]d))M %[1]s/filler", dataDir, leave)
	if leave == 0 {
		script = fmt.Sprintf("cat /dev/zero >%s/filler 2>/dev/null; true", dataDir) // also what is kept for root
	}
	h.Run(t, t.Context(), "sh", "-c", script)
}

// logged says whether a host's server has logged something.
func logged(h *hosts.Host, want string) error {
	text, err := os.ReadFile(h.Dir() + "/logs/holdfast.log")
	if err == nil && !strings.Contains(string(text), want) {
		err = fmt.Errorf("the log of %s does not hold %q", h.Name, want)
	}
	return err
}
