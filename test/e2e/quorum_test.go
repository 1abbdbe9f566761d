package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

const dataDir = "/var/lib/holdfast"

// TestQuorum has members of etcd die while Ceph runs and a client writes: one of them is replaced by the standby, and then more
// than half of them are lost with their data, and the control plane is restored with one command; at last all of them are, and it is
// restored from a file. No daemon is started anew, and the client loses nothing.
func TestQuorum(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 4, Disks: 1})
	b := &bed{t, home.StartServers(t, lab, binary, 4, "--etcd-replace-after", "5s")}
	wanted := home.SpecFor(lab, 3, 1, 1)
	b.mustApply(wanted.YAML())
	client := b.startClient(4)
	b.await("Ceph to be well with a pool", func() error { return b.health(3, 4) })
	before := b.pids()

	for _, step := range []struct {
		name string
		do   func(*bed)
	}{
		{"a dead member is replaced by the standby", (*bed).memberReplaced},
		{"the majority is lost, and restored", func(b *bed) { b.majorityLost(client) }},
		{"the control plane works", func(b *bed) {
			wanted.Mgrs = 2
			b.mustApply(wanted.YAML())
		}},
		{"every copy is lost, and restored from a file", func(b *bed) { b.allLost(client) }},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			start := time.Now()
			step.do(&bed{t, b.Home})
			t.Logf("took %.0f s", time.Since(start).Seconds())
			client.goesOn(t)
		}) {
			t.FailNow()
		}
	}
	b.await("Ceph to be well", func() error { return b.health(3, 4) })
	after := b.pids()
	maps.DeleteFunc(after, func(name string, _ int32) bool { _, was := before[name]; return !was })
	if !maps.Equal(before, after) {
		t.Errorf("daemons were started anew:\n got %v\nwant %v", after, before)
	}
	client.end(t)
	b.noOrphans()
}

// memberReplaced kills the server of a member that does not lead, and starts it again when the standby has its seat.
func (b *bed) memberReplaced() {
	q := b.quorum(1, "three members and a standby", func(q home.Quorum) bool { return len(q.Standbys) == 1 })
	dead := slices.IndexFunc(q.Members, func(m home.Member) bool { return m.Name != q.Leader && m.Name != b.Lab.Host(1).Name })
	name, standby := q.Members[dead].Name, q.Standbys[0]
	number := b.number(name)
	b.Server(number).Kill(b)
	b.await("'holdfast doctor' to name the server that is down", func() error {
		out, _ := b.holdfastSays("doctor")
		return doctorFinds(out, "the server "+name, "'systemctl start holdfast' there")
	})
	b.quorum(1, "the standby in the place of the dead member", func(q home.Quorum) bool {
		return b.votes(q, standby) && !b.sits(q, name) && q.Degraded == ""
	})
	b.StartServer(b, number)
	b.quorum(1, "the server that was dead as the standby", func(q home.Quorum) bool { return slices.Contains(q.Standbys, name) })
	b.noEtcd(number)
}

// majorityLost kills two of three members of etcd and destroys their data. The third one goes on with what it has.
func (b *bed) majorityLost(c *client) {
	q, err := b.Quorum(1)
	if err != nil {
		b.Fatalf("%v", err)
	}
	for _, m := range q.Members {
		if n := b.number(m.Name); n != 1 {
			b.Server(n).Kill(b)
			if err := os.RemoveAll(b.Lab.Host(n).Path(dataDir + "/etcd")); err != nil {
				b.Fatalf("%v", err)
			}
		}
	}
	b.await("the control plane to stand still", func() error {
		if _, err := b.HoldfastOn(1, "get", "hosts"); err == nil {
			return errors.New("it still answers")
		}
		return nil
	})
	c.goesOn(b.T)
	told := b.holdfast(1, "doctor")
	err = doctorFinds(told, "the API cannot be reached", "if more than half of the members of etcd are lost for good, run 'holdfast restore --from-data'")
	for _, m := range q.Members {
		if m.Name != b.Lab.Host(1).Name {
			err = errors.Join(err, doctorFinds(told, "the server at "+b.hostNamed(m.Name).IP+":7440 is not ready", "'systemctl start holdfast' there"))
		}
	}
	if err != nil {
		b.Error(err)
	}

	start := time.Now()
	b.Server(1).Stop(b, limit)
	b.Logf("%s", b.run("restore", "--from-data"))
	b.StartServer(b, 1)
	b.await("the control plane to work again", func() error {
		_, err := b.HoldfastOn(1, "get", "hosts")
		return err
	})
	b.Logf("restored %.1f s after the last server was stopped", time.Since(start).Seconds())
	for _, m := range q.Members {
		if n := b.number(m.Name); n != 1 {
			b.StartServer(b, n)
		}
	}
	b.quorum(1, "three members and a standby again", func(q home.Quorum) bool {
		return len(q.Members) == 3 && len(q.Standbys) == 1 && q.Degraded == ""
	})
	b.AwaitHosts(b, 4)
}

// allLost kills all servers, destroys the data of all members of etcd, and restores the control plane from a file.
func (b *bed) allLost(c *client) {
	const file = dataDir + "/before-all-was-lost"
	b.Logf("%s", b.run("backup", file))
	for n := range b.Lab.Hosts() {
		b.Server(n + 1).Kill(b)
		if err := os.RemoveAll(b.Lab.Host(n + 1).Path(dataDir + "/etcd")); err != nil {
			b.Fatalf("%v", err)
		}
	}
	c.goesOn(b.T)
	b.Logf("%s", b.run("restore", file))
	for n := range b.Lab.Hosts() {
		b.StartServer(b, n+1)
	}
	b.quorum(1, "three members and a standby once more", func(q home.Quorum) bool {
		return len(q.Members) == 3 && len(q.Standbys) == 1 && q.Degraded == ""
	})
	b.AwaitHosts(b, 4)
}

// quorum waits until a server says this of the members of etcd.
func (b *bed) quorum(server int, what string, want func(home.Quorum) bool) (q home.Quorum) {
	b.Helper()
	b.await(what, func() (err error) {
		if q, err = b.Quorum(server); err == nil && !want(q) {
			err = fmt.Errorf("the quorum is %+v", q)
		}
		return err
	})
	return q
}

func (b *bed) sits(q home.Quorum, name string) bool {
	for _, m := range q.Members {
		if m.Name == name {
			return true
		}
	}
	return false
}

func (b *bed) votes(q home.Quorum, name string) bool {
	for _, m := range q.Members {
		if m.Name == name {
			return m.Voter && m.Answers
		}
	}
	return false
}

func (b *bed) number(name string) int {
	return slices.Index(b.Lab.Hosts(), b.hostNamed(name)) + 1
}

// noEtcd fails the test if a standby serves etcd or the API, or has not moved its old data aside.
func (b *bed) noEtcd(number int) {
	b.Helper()
	h := b.Lab.Host(number)
	listening := h.Run(b, context.Background(), "ss", "-Hltn")
	for _, port := range []string{":7440", ":7441", ":7442"} {
		if strings.Contains(listening, port+" ") {
			b.Errorf("%s is a standby, and still serves port %s", h.Name, port)
		}
	}
	if _, err := os.Stat(h.Path(dataDir + "/etcd.removed")); err != nil {
		b.Errorf("%s did not move its old data aside: %v", h.Name, err)
	}
}
