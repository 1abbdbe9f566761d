package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
)

// patch changes the cluster's spec, as an administrator does with kubectl.
func (b *bed) patch(spec string) {
	b.Helper()
	b.Lab.Host(1).Run(b, context.Background(), kubectl, "--kubeconfig", "/var/lib/holdfast/admin.kubeconfig", "patch", "storagecluster", "ceph",
		"--type", "merge", "-p", `{"spec":{"ceph":`+spec+`}}`)
}

// awaitOption waits until daemons say of themselves that an option has a value.
func (b *bed) awaitOption(option, want string, daemons ...string) {
	b.Helper()
	b.await(option+" to be "+want, func() error {
		for _, d := range daemons {
			out, err := b.Holdfast("ceph", "shell", "--", "ceph", "config", "show", d, option)
			if err != nil {
				return err
			}
			if got := strings.TrimSpace(out); got != want {
				return fmt.Errorf("%s has %q", d, got)
			}
		}
		return nil
	})
}

// awaitCheck waits until the status has a health check with a next step, or has it no more.
func (b *bed) awaitCheck(code string, there bool) {
	b.Helper()
	b.await(fmt.Sprintf("check %s there: %v", code, there), func() error { return b.checkThere(code, there) })
}

// checkThere returns an error unless the StorageStatus has a check with its next step, or has it not.
func (b *bed) checkThere(code string, there bool) error {
	s, err := read[api.StorageStatus](b, 1, "storagestatuses", "ceph")
	if err != nil {
		return err
	}
	i := slices.IndexFunc(s.Status.Checks, func(c api.HealthCheck) bool { return c.Code == code })
	if (i >= 0) != there || there && s.Status.Checks[i].Next == "" {
		return fmt.Errorf("the checks are %+v", s.Status.Checks)
	}
	return nil
}

// TestKeeping keeps a cluster while a client writes: its configuration follows what is declared, a plan that has daemons started again is done as it was shown, and what Ceph finds wrong is told with the next
// step.
func TestKeeping(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 1)
	wanted := home.SpecFor(b.Lab, 3, 2, 1)
	wanted.Interval = "1s"
	b.mustApply(wanted.YAML())
	c := b.startClient(3)
	b.await("Ceph to be well with a pool", func() error { return b.health(3, 3) })
	b.ceph("config", "set", "osd", "debug_osd", "2/5") // by hand: it stays

	b.copiesDiffer(t) // before there is another osd_op_queue: mclock may leave a scrub for minutes where there is little to do it with
	b.toldOnce(t, "PG_DAMAGED")
	b.configFollows(t, wanted)
	b.healthIsTold(t)
	if dump := b.ceph("config", "dump"); !strings.Contains(dump, "debug_osd") {
		t.Errorf("what was set by hand is gone:\n%s", dump)
	}
	c.end(t)
	b.cephHealthy(3, 3)
	b.noOrphans()
}

func (b *bed) configFollows(t *testing.T, wanted home.Spec) {
	all := []string{"osd.0", "osd.1", "osd.2"}
	b.patch(`{"config":{"osd":{"osd_max_backfills":"3"}},"recovery":"Gentle"}`)
	b.await("a policy and an option that contradict each other to be refused", func() error {
		if word, err := b.word("config"); err != nil || !strings.HasPrefix(word, "Refuse: spec.ceph.config.") || !strings.Contains(word, "which spec.ceph.recovery or spec.ceph.scrub also sets") {
			return errors.Join(err, fmt.Errorf("it says %q", word))
		}
		return nil
	})
	b.patch(`{"recovery":null,"scrub":{"beginHour":22,"endHour":6}}`)
	b.awaitOption("osd_max_backfills", "3", all...)
	b.awaitOption("osd_scrub_begin_hour", "22", all...)
	b.patch(`{"config":{"osd":{"osd_max_backfills":"5"}}}`)
	b.awaitOption("osd_max_backfills", "5", all...)
	b.patch(`{"config":{"osd":null},"scrub":null}`)
	b.awaitOption("osd_max_backfills", "1", all...)
	b.awaitOption("osd_scrub_begin_hour", "0", all...)

	b.patch(`{"config":{"osd":{"osd_max_backfill":"5"}}}`)
	b.await("an option that Ceph does not have to be refused", func() error {
		if word, err := b.word("config"); err != nil || !strings.Contains(word, "did you mean osd_max_backfills?") {
			return errors.Join(err, fmt.Errorf("it says %q", word))
		}
		return nil
	})

	b.patch(`{"config":{"osd":{"osd_max_backfill":null}}}`)
	wanted.Mgrs = 3
	b.await("all data to have its copies, without which Ceph has to be asked", func() error { return b.health(3, 3) })
	happened := b.applyPlanned(strings.Replace(wanted.YAML(), "      global:\n", "      osd: {osd_op_queue: mclock_scheduler}\n      global:\n", 1))
	b.awaitOption("osd_op_queue", "mclock_scheduler", all...)
	b.await("Ceph to be well after restarts", func() error { return b.health(3, 3) })
	compare(b, "what happened", happened, []string{
		"ceph-mgr-c comes to h3", "ceph-osd-0 changes", "ceph-osd-0 starts again", "ceph-osd-1 changes", "ceph-osd-1 starts again", "ceph-osd-2 changes", "ceph-osd-2 starts again",
	})
}

// word is what the last report says of an object, as "Verdict: message".
func (b *bed) word(object string) (string, error) {
	clusters := list[api.StorageCluster](b, "storageclusters")
	if len(clusters) != 1 || clusters[0].Status.Report == nil {
		return "", errors.New("there is no report yet")
	}
	for _, d := range clusters[0].Status.Report.Decisions {
		if d.Object == object {
			return string(d.Verdict) + ": " + d.Message, nil
		}
	}
	return "", nil
}

func (b *bed) healthIsTold(t *testing.T) {
	b.ceph("osd", "set-nearfull-ratio", "0.0001")
	b.awaitCheck("OSD_NEARFULL", true)
	b.ceph("osd", "set-nearfull-ratio", "0.85")
	b.ceph("osd", "set", "noout")
	b.awaitCheck("OSDMAP_FLAGS", true)
	b.awaitCheck("OSD_NEARFULL", false)
	const unset = "when the reason is over, run 'holdfast ceph osd unset noout'"
	if out := b.run("status"); !strings.Contains(out, "check/OSDMAP_FLAGS") || !strings.Contains(out, unset) {
		t.Errorf("the status does not have the next step:\n%s", out)
	}
	if out := b.run("why", "cluster/ceph"); !strings.Contains(out, "OSDMAP_FLAGS: "+unset) {
		t.Errorf("why says:\n%s", out)
	}
	b.ceph("health", "mute", "OSDMAP_FLAGS", "1h")
	b.awaitCheck("OSDMAP_FLAGS", false)
	b.ceph("health", "unmute", "OSDMAP_FLAGS")
	b.ceph("osd", "unset", "noout")

	b.crash()
	b.awaitCheck("RECENT_CRASH", true)
	b.ceph("crash", "archive-all")
	b.awaitCheck("RECENT_CRASH", false)
	b.toldOnce(t, "OSD_NEARFULL", "RECENT_CRASH")
}

// crash posts the report of a daemon that crashed, as ceph-crash does.
func (b *bed) crash() {
	b.Helper()
	const script = `printf '{"crash_id":"%s_7c9e6679-7425-40de-944b-e07fc1f90ae7","timestamp":"%s","entity_name":"osd.0","process_name":"ceph-osd",` +
		`"ceph_version":"16.2.15","utsname_hostname":"h1","backtrace":["a"]}' $(date -u +%Y-%m-%dT%H:%M:%S.000000Z) $(date -u +%Y-%m-%dT%H:%M:%S.000000Z) | ceph crash post -i -`
	b.run("ceph", "shell", "--", "sh", "-c", script)
}

// toldOnce checks that each check was told once when it appeared, and once when it was over.
func (b *bed) toldOnce(t *testing.T, codes ...string) {
	t.Helper()
	told := map[string]int{}
	for _, e := range list[api.ClusterEvent](b, "clusterevents") {
		told[e.Code+" "+e.Object]++
	}
	for _, code := range codes {
		if raised, cleared := told["HEALTH_CHECK_RAISED check/"+code], told["HEALTH_CHECK_CLEARED check/"+code]; raised != 1 || cleared != 1 {
			t.Errorf("%s was told %d times, and %d times that it is over", code, raised, cleared)
		}
	}
}
