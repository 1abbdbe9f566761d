package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
)

// point is a moment in the bring-up of a cluster, told by its daemons.
type point struct {
	name    string
	reached func([]api.Daemon) bool
}

func anyDaemon(match func(api.Daemon) bool) func([]api.Daemon) bool {
	return func(daemons []api.Daemon) bool {
		for _, d := range daemons {
			if match(d) {
				return true
			}
		}
		return false
	}
}

// points are the moments at which the leader is killed: the first Daemon is written; a monitor runs, there is no quorum
// yet; the first OSD is known to Ceph and wanted running.
var points = []point{
	{"first daemon written", anyDaemon(func(api.Daemon) bool { return true })},
	{"first monitor runs", anyDaemon(func(d api.Daemon) bool {
		return d.Spec.Type == "ceph-mon" && d.Status.State == api.DaemonRunning
	})},
	{"first OSD known", anyDaemon(func(d api.Daemon) bool {
		return d.Spec.Type == "ceph-osd" && d.Spec.State == api.WantRunning
	})},
}

// TestLeaderKilled kills the leading server with SIGKILL at three points of the bring-up. Another one leads; the cluster gets
// well; nothing is there twice or left over.
func TestLeaderKilled(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 1)
	spec := home.SpecFor(b.Lab, 3, 2, 1).YAML()
	for _, p := range points {
		t.Run(p.name, func(t *testing.T) {
			b := &bed{t, b.Home}
			leader := b.leader()
			other := leader%3 + 1
			if out, code := b.apply(other, spec); code != 0 {
				t.Fatalf("holdfast apply ended with %d:\n%s", code, out)
			}
			b.await(p.name, b.reached(other, p))
			b.Server(leader).Kill(t)
			b.await("another leader", func() error {
				if now, err := b.leaderFrom(other); err != nil || now == leader {
					return fmt.Errorf("host %d leads: %w", now, err)
				}
				return nil
			})
			b.StartServer(t, leader)
			if out, code := b.apply(other, spec, "--wait", "--timeout", "100s"); code != 0 {
				t.Fatalf("holdfast apply --wait ended with %d:\n%s", code, out)
			}
			b.cephHealthy(3, 3)
			b.noOrphans()
			b.teardown(t, spec)
		})
	}
}

// leader is the number of the host whose server leads.
func (b *bed) leader() int {
	b.Helper()
	var number int
	b.await("a leader", func() (err error) {
		number, err = b.leaderFrom(1)
		return err
	})
	return number
}

// leaderFrom asks the server of a host who leads.
func (b *bed) leaderFrom(host int) (int, error) {
	out, err := b.HoldfastOn(host, "get", "leases", "leader", "-n", "holdfast-system", "-o", "json")
	if err != nil {
		return 0, err
	}
	for i, h := range b.Lab.Hosts() {
		if strings.Contains(out, `"holderIdentity": "`+h.Name+"_") {
			return i + 1, nil
		}
	}
	return 0, errors.New("no host holds the lease of the leader")
}

// reached returns a check of whether the bring-up has come to a point, asked on a host that will not be killed.
func (b *bed) reached(host int, p point) func() error {
	return func() error {
		daemons, err := b.daemonsFrom(host)
		if err == nil && !p.reached(daemons) {
			err = fmt.Errorf("%d daemons, the point is not reached", len(daemons))
		}
		return err
	}
}

// TestAgentKilled kills an agent with SIGKILL while it prepares an OSD; started again it goes on, and the cluster gets well.
func TestAgentKilled(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 1)
	spec := home.SpecFor(b.Lab, 3, 2, 1).YAML()
	victim := b.leader()%3 + 1
	other := victim%3 + 1
	if out, code := b.apply(other, spec); code != 0 {
		t.Fatalf("holdfast apply ended with %d:\n%s", code, out)
	}
	b.awaitMkfs(victim)
	b.Server(victim).Kill(t)
	b.StartServer(t, victim)
	b.mustApply(spec)
	b.cephHealthy(3, 3)
	b.noOrphans()

	t.Run("daemons outlive every server", func(t *testing.T) {
		b := &bed{t, b.Home}
		before := b.pids()
		for n := range b.Lab.Hosts() {
			b.Server(n + 1).Kill(t)
		}
		if got := len(b.cephProcesses()); got != len(before) {
			t.Errorf("%d daemons run after all servers were killed, want %d", got, len(before))
		}
		for n := range b.Lab.Hosts() {
			b.StartServer(t, n+1)
		}
		b.AwaitHosts(t, 3)
		b.mustApply(spec)
		if after := b.pids(); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("daemons were restarted:\n got %v\nwant %v", after, before)
		}
	})
	t.Run("a killed daemon is started again", func(t *testing.T) { (&bed{t, b.Home}).daemonRestarts(t) })
	t.Run("power", func(t *testing.T) { (&bed{t, b.Home}).powerReturns(t, spec) })
}

// awaitMkfs waits until the agent of a host makes the store of an OSD. That takes some tenths of a second, less than the agent tells of.
func (b *bed) awaitMkfs(host int) {
	b.Helper()
	for end := time.Now().Add(limit); !strings.Contains(b.Lab.Host(host).Run(b, context.Background(), "ps", "-e", "-o", "args="), "--mkfs"); {
		if time.Now().After(end) {
			b.Fatalf("no OSD was prepared on %s for %s", b.Lab.Host(host).Name, limit)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// daemonRestarts kills an OSD: its agent starts it again and counts.
func (b *bed) daemonRestarts(t *testing.T) {
	osd := b.daemon("ceph-osd-0")
	h := b.hostNamed(osd.Spec.Host)
	h.Run(t, t.Context(), "kill", "-9", fmt.Sprint(osd.Status.PID))
	b.await("osd.0 to be started again", func() error {
		d := b.daemon("ceph-osd-0")
		if d.Status.State != api.DaemonRunning || d.Status.Restarts != osd.Status.Restarts+1 || d.Status.PID == osd.Status.PID {
			return fmt.Errorf("it is %s, %d restarts, pid %d: %s", d.Status.State, d.Status.Restarts, d.Status.PID, d.Status.Message)
		}
		return nil
	})
}

// powerReturns takes the power of a host away, brings it back with its disk under another name, and starts the server: the
// host's daemons come back by themselves.
func (b *bed) powerReturns(t *testing.T, spec string) {
	number := b.leader()
	h := b.Lab.Host(number)
	h.PowerOff(t)
	h.Disk(0).Detach(t)
	h.Disk(0).Attach(t)
	h.PowerOn(t)
	b.StartServer(t, number)
	b.AwaitHosts(t, 3)
	b.await("Ceph to be well again", func() error { return b.health(3, 3) })
	b.mustApply(spec)
	b.cephHealthy(3, 3)
	b.noOrphans()
}
