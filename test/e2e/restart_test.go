package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
)

// rounds is how often something is done again and again: so many times, or as many as 'make soak' says.
func rounds(few int) int {
	if n, err := strconv.Atoi(os.Getenv("HOLDFAST_ROUNDS")); err == nil {
		return n
	}
	return few
}

// TestRestartEverything has an OSD flap, and then restarts everything on all hosts at one moment, again and again: in turns by taking the power, after
// which the disks have other names, and by killing each process of Ceph and of Holdfast. After each round all OSDs are up, a deep scrub finds nothing,
// and what a client has written reads as it was written: a hundred objects, and in the end all.
func TestRestartEverything(t *testing.T) {
	begin(t)
	all := rounds(2)
	b := newBed(t, 3, 1)
	wanted := home.SpecFor(b.Lab, 3, 2, 1)
	wanted.Interval = "2s"
	b.mustApply(wanted.YAML())
	c := b.startClient(1)
	b.await("Ceph to be well with a pool", func() error { return b.health(3, 3) })
	b.ceph("config", "set", "osd", "osd_scrub_backoff_ratio", "0") // else each OSD starts a scrub in one second of three
	b.flaps()                                                      // before the rounds: what falls within half a minute of OSDs of other hosts does not count as flapping
	c.goesOn(t)
	for round := range all {
		start := time.Now()
		power := round%2 == 0
		if power {
			b.powerFails()
		} else {
			b.killEverything()
		}
		b.AwaitHosts(b, 3)
		b.await("Ceph to be well again", func() error { return b.health(3, 3) })
		if power {
			c.start(b) // it was on one of the hosts
		}
		c.goesOn(t)
		b.scrubbed()
		c.verify(t, 100) // all of them at the end: 30 rounds leave thousands
		t.Logf("round %d of %d: %.0f s", round+1, all, time.Since(start).Seconds())
		if t.Failed() {
			return
		}
	}
	c.end(t)
	b.noOrphans()
}

// flaps has Ceph take an OSD for down as often as it comes back, as when its network fails, until it is held back; it says why, and tries again when
// it is told to. (One whose process ends is started later and later, so that the same takes minutes.)
func (b *bed) flaps() {
	const name = "ceph-osd-2"
	downs, before := 0, b.daemon(name).Generation
	b.await("osd.2 to be held back", func() error {
		d := b.daemon(name)
		if d.Spec.State == api.WantStopped {
			return nil
		}
		if out := b.ceph("osd", "info", "2"); strings.HasPrefix(out, "osd.2 up") {
			downs++
			b.ceph("osd", "down", "2")
		}
		return fmt.Errorf("it is %s, was down %d times, %v", d.Status.State, downs, d.Annotations)
	})
	b.Logf("osd.2 was down %d times", downs)
	if d := b.daemon(name); d.Generation != before+1 {
		b.Errorf("the spec of osd.2 changed %d times until it was held back, and once would do; the leader noted %v",
			d.Generation-before, d.Annotations)
	}
	if out := b.run("why", "osd.2"); downs < 5 || !strings.Contains(out, "went down and came back 5 times within 10m0s") || !strings.Contains(out, "holdfast daemon start osd.2") {
		b.Errorf("down %d times; why says:\n%s", downs, out)
	}
	if err := b.reason("held back since"); err != nil {
		b.Error(err)
	}
	b.run("daemon", "start", "osd.2")
	b.await("Ceph to be well again", func() error { return b.health(3, 3) })
}

// powerFails takes the power of all hosts and brings them back, with their disks under other names.
func (b *bed) powerFails() {
	for _, h := range b.Lab.Hosts() {
		h.PowerOff(b)
	}
	for n, h := range b.Lab.Hosts() {
		h.Disk(0).Detach(b)
		h.Disk(0).Attach(b)
		h.PowerOn(b)
		b.StartServer(b, n+1)
	}
}

// killEverything kills all servers and then all daemons, and starts the servers again, which start the daemons.
func (b *bed) killEverything() {
	pids := map[string][]string{}
	for _, d := range b.daemons() {
		pids[d.Spec.Host] = append(pids[d.Spec.Host], fmt.Sprint(d.Status.PID))
	}
	for n := range b.Lab.Hosts() {
		b.Server(n + 1).Kill(b)
	}
	for _, h := range b.Lab.Hosts() {
		h.Run(b, context.Background(), "kill", append([]string{"-9"}, pids[h.Name]...)...)
	}
	for n := range b.Lab.Hosts() {
		b.StartServer(b, n+1)
	}
}

// pgStat is what Ceph says of a placement group.
type pgStat struct {
	ID       string `json:"pgid"`
	State    string `json:"state"`
	Scrubbed string `json:"last_deep_scrub_stamp"`
}

func (b *bed) pgs() ([]pgStat, error) {
	var dump struct {
		Stats []pgStat `json:"pg_stats"`
	}
	out, err := b.Holdfast("ceph", "shell", "--", "ceph", "pg", "dump", "pgs", "-f", "json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &dump)
	}
	return dump.Stats, err
}

// scrubbed has all placement groups compared in depth, and fails the test if Ceph finds a difference, which their states would say. A mgr that has just
// become active knows of no placement group yet.
func (b *bed) scrubbed() {
	b.Helper()
	before := map[string]string{}
	b.await("the placement groups to be known", b.allPGs(func(pg pgStat) bool {
		before[pg.ID] = pg.Scrubbed
		return true
	}))
	asked := time.Time{}
	b.await("all placement groups to be scrubbed", func() error {
		// What is asked of a placement group that is just being scrubbed for another reason may be lost with that.
		if time.Since(asked) > 20*time.Second {
			asked = time.Now()
			b.ceph("osd", "deep-scrub", "all")
		}
		return b.allPGs(func(pg pgStat) bool { return pg.Scrubbed > before[pg.ID] })()
	})
}

// allPGs returns a check of whether all placement groups are active+clean, and something else is true of each.
func (b *bed) allPGs(is func(pgStat) bool) func() error {
	return func() error {
		all, err := b.pgs()
		if err == nil && len(all) == 0 {
			err = fmt.Errorf("there is none")
		}
		for _, pg := range all {
			if pg.State != "active+clean" || !is(pg) {
				return fmt.Errorf("%s is %s, scrubbed last at %s", pg.ID, pg.State, pg.Scrubbed)
			}
		}
		return err
	}
}
