package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/engine"
)

const threeNodes = `
cluster c
node n1 host=h1 devices=(d1)
node n2 host=h2 devices=(d2,e2)
node n3 host=h3 devices=(d3)`

// threeHosts is a world in which three hosts wait for threeNodes.
func threeHosts() (*stage, error) {
	s := newStage()
	// Where no run fails there are no long pauses, and there are many bring-ups.
	s.quiet = 5 * agentStep
	return s, errors.Join(
		s.AddHost(s.ctx, "h1", []string{"d1", "e1"}),
		s.AddHost(s.ctx, "h2", []string{"d2", "e2"}),
		s.AddHost(s.ctx, "h3", []string{"d3", "e3"}),
	)
}

// bringUp brings a cluster up, whose first leader meets the gate as it was set, and returns the gate's verdict: false when
// the cluster came up before it closed.
func bringUp(set func(*gate), replace bool) (s *stage, tripped bool, err error) {
	if s, err = threeHosts(); err != nil {
		return nil, false, err
	}
	s.watch = s.checkSafe
	set(s.gate)
	s.lead()
	defer func() { err = errors.Join(err, s.kill()) }()
	if err := s.apply(strings.TrimSpace(threeNodes)); err != nil {
		return s, false, err
	}
	for steps := 0; !s.gate.hasTripped() && !s.online(); steps++ {
		if err := s.tick(agentStep); err != nil {
			return s, false, err
		}
		if steps == 100 {
			return s, false, errors.New("the cluster does not come up in ten seconds")
		}
	}
	tripped = s.gate.hasTripped()
	if !replace { // the leader makes a pause after a failure, in which nobody need be quick
		s.quiet, s.step = quiet, 5*agentStep
	}
	if replace && tripped {
		if err := s.kill(); err != nil {
			return s, true, err
		}
		s.gate.reset()
		s.lead()
	}
	return s, tripped, s.settle()
}

func (s *stage) online() bool {
	v, err := s.View(s.ctx, named("c"))
	return err == nil && v.Status != nil && v.Status.Status.Status == api.StorageOnline
}

// outcome is what a bring-up has made, without the keys themselves.
func (s *stage) outcome() ([]string, error) {
	v, err := s.View(s.ctx, named("c"))
	if err != nil {
		return nil, err
	}
	lines := []string{"status " + string(v.Status.Status.Status)}
	for i := range v.Daemons {
		d := &v.Daemons[i]
		lines = append(lines, fmt.Sprint(daemonText(d), d.Spec.Parameters, d.Spec.Command))
	}
	keys := map[string]string{}
	for _, x := range v.Secrets {
		data, err := s.Secrets(named("c")).Secret(s.ctx, x.Name)
		if err != nil {
			return nil, err
		}
		if other := keys[string(data["key"])]; other != "" {
			return nil, fmt.Errorf("%s and %s hold the same key", other, x.Name)
		}
		keys[string(data["key"])] = x.Name
		lines = append(lines, fmt.Sprint("secret ", x.Name, x.Annotations))
	}
	for id, uuid := range s.cephs.cluster(v.Daemons[0].Spec.Parameters[ceph.ParamFSID]).OSDs() {
		lines = append(lines, fmt.Sprint("Ceph has osd.", id, " ", uuid))
	}
	slices.Sort(lines)
	return lines, nil
}

// wantOutcome brings clusters up with the gate set in all ways that set gives, until it is set too late to matter.
func wantOutcome(t *testing.T, replace bool, set func(g *gate, n int)) {
	t.Helper()
	var want []string
	synctest.Test(t, func(t *testing.T) {
		s, _, err := bringUp(func(*gate) {}, false)
		if err != nil {
			t.Fatal(err)
		}
		if want, err = s.outcome(); err != nil {
			t.Fatal(err)
		}
	})
	if n := len(want); n != 1+9+8+4 { // the status, Daemons, Secrets, OSDs
		t.Fatalf("the bring-up made:\n%s", strings.Join(want, "\n"))
	}
	tripped, n := true, 0
	for ; tripped; n++ {
		synctest.Test(t, func(t *testing.T) {
			var s *stage
			var err error
			if s, tripped, err = bringUp(func(g *gate) { set(g, n) }, replace); err != nil {
				t.Fatalf("write %d: %v", n, err)
			}
			got, err := s.outcome()
			if err != nil {
				t.Fatalf("write %d: %v", n, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("write %d: (-want +got):\n%s", n, diff)
			}
		})
	}
	if n < 60 {
		t.Errorf("only %d writes were tried", n)
	}
	t.Logf("%d writes", n)
}

// Whichever write of the bring-up was the leader's last, the next leader makes the same cluster of it.
func TestBringUp_leaderDiesAfterEachWrite(t *testing.T) {
	wantOutcome(t, true, func(g *gate, n int) { g.set(n, -1) })
}

// Whichever single write of the bring-up fails, the leader itself makes up for it.
func TestBringUp_eachWriteFailsOnce(t *testing.T) {
	wantOutcome(t, false, func(g *gate, n int) { g.set(-1, n) })
}

// Two clusters that are declared at one moment, and want the port of the same host, do not both get it.
func TestSameMoment(t *testing.T) {
	for range 20 { // which of them is first is left to chance
		synctest.Test(t, func(t *testing.T) {
			s := newStage()
			s.watch = s.checkSafe
			s.lead()
			err := errors.Join(
				s.AddHost(s.ctx, "h1", []string{"d1", "e1"}),
				s.apply("cluster red/c mons=1 mgrs=1\nnode red/n host=h1 devices=(d1)\n"+
					"cluster blue/c mons=1 mgrs=1\nnode blue/n host=h1 devices=(e1)"),
				s.settle(), s.kill(),
			)
			if err != nil {
				t.Fatal(err)
			}
			outcomes := map[api.OrchestrationOutcome]int{}
			clusters, err := s.Clusters(s.ctx)
			if err != nil {
				t.Fatal(err)
			}
			for i := range clusters {
				outcomes[clusters[i].Status.Report.Outcome]++
			}
			if diff := cmp.Diff(map[api.OrchestrationOutcome]int{api.OutcomeUnchanged: 1, api.OutcomeRefused: 1}, outcomes); diff != "" {
				t.Fatalf("outcomes (-want +got):\n%s", diff)
			}
		})
	}
}

// Whichever write of a deletion was the leader's last, the next leader brings it to its end. Where data is kept less can go
// wrong, and not each write is tried.
func TestDeletion_leaderDiesAfterEachWrite(t *testing.T) {
	for policy, stride := range map[api.DeletionPolicy]int{api.DeletionRetain: 4, api.DeletionWipe: 1} {
		t.Run(string(policy), func(t *testing.T) {
			tripped, n := true, 0
			for ; tripped; n += stride {
				synctest.Test(t, func(t *testing.T) {
					var err error
					if tripped, err = deleteCutOff(policy, n); err != nil {
						t.Fatalf("write %d: %v", n, err)
					}
				})
			}
			if n < 20 {
				t.Errorf("only %d writes were tried", n)
			}
		})
	}
}

// deleteCutOff brings a cluster up and deletes it; the leader dies after n writes, unless that is too late.
func deleteCutOff(policy api.DeletionPolicy, n int) (tripped bool, err error) {
	s, _, err := bringUp(func(*gate) {}, true)
	if err != nil {
		return false, err
	}
	s.lead()
	defer func() { err = errors.Join(err, s.kill()) }()
	if err := s.apply("cluster c policy=" + string(policy)); err != nil {
		return false, err
	}
	before := s.secretNames()
	s.gate.set(n, -1)
	if err := errors.Join(s.delete(arguments{{Key: "cluster", Vals: []string{"c"}}}), s.settleOrTrip()); err != nil {
		return false, err
	}
	tripped = s.gate.hasTripped()
	s.gate.reset()
	if err := errors.Join(s.replaceLeader(), s.settle()); err != nil {
		return tripped, err
	}
	return tripped, s.checkDeleted(policy, before)
}

func (s *stage) settleOrTrip() error {
	for range 30 {
		if s.gate.hasTripped() {
			return nil
		}
		if err := s.tick(agentStep); err != nil {
			return err
		}
	}
	return nil
}

// checkDeleted: nothing runs any more, and data and keys are both there or both gone.
func (s *stage) checkDeleted(policy api.DeletionPolicy, secrets []string) error {
	if _, err := s.Cluster(s.ctx, named("c")); !errors.Is(err, engine.ErrNotFound) {
		return fmt.Errorf("the cluster is there: %w", err)
	}
	devices, err := s.showDevices("h2")
	if err != nil {
		return err
	}
	if wiped := !strings.Contains(devices, string(api.DeviceUnavailable)); wiped != (policy == api.DeletionWipe) {
		return fmt.Errorf("the devices of h2:\n%s", devices)
	}
	// Secrets and Daemons are seen through a cluster of the name.
	if err := s.Create(s.ctx, &api.StorageCluster{ObjectMeta: arguments{{Key: "c"}}.meta()}); err != nil {
		return err
	}
	v, err := s.View(s.ctx, named("c"))
	if err != nil {
		return err
	}
	want := secrets
	if policy == api.DeletionWipe {
		want = nil
	}
	if diff := cmp.Diff(want, s.secretNames()); diff != "" || len(v.Daemons) > 0 {
		return fmt.Errorf("%d Daemons, Secrets (-want +got):\n%s", len(v.Daemons), diff)
	}
	return nil
}

func (s *stage) secretNames() []string {
	v, err := s.View(s.ctx, named("c"))
	if err != nil {
		return nil
	}
	var names []string
	for _, x := range v.Secrets {
		names = append(names, x.Name)
	}
	return names
}
