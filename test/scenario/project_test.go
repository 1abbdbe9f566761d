package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/driver/ceph/orch"
	"github.com/holdfast-storage/holdfast/engine"
)

const wipedCluster = `cluster c policy=Wipe
node n1 host=h1 devices=(d1)
node n2 host=h2 devices=(d2)
node n3 host=h3 devices=(d3)`

const fourNodes = wipedCluster + "\nnode n4 host=h4 devices=(d4)"

// TestProject_isWhatHappens: what is shown before a change is what a leader then does.
func TestProject_isWhatHappens(t *testing.T) {
	deleted := func(s *stage) error { return s.delete(arguments{{Key: "cluster", Vals: []string{"c"}}}) }
	apply := func(text string) func(*stage) error {
		return func(s *stage) error { return s.apply(text) }
	}
	mode := func(host string, mode api.HostMode) func(*stage) error {
		return func(s *stage) error { return s.SetMode(s.ctx, host, mode) }
	}
	dead := func(host string) func(*stage) error {
		return func(s *stage) error { return errors.Join(s.FailHost(s.ctx, host), s.tick(11*time.Minute)) }
	}
	gone := func(host string) func(*stage) error {
		return func(s *stage) error {
			s.gone = host
			return s.hostMode(host, api.HostDrain, true)
		}
	}
	install := func(release string) func(*stage) error {
		return func(s *stage) (err error) {
			for _, host := range []string{"h1", "h2", "h3", "h4"} {
				for _, daemonType := range []string{ceph.TypeMon, ceph.TypeMgr, ceph.TypeOSD} {
					err = errors.Join(err, s.Install(s.ctx, host, daemonType, release))
				}
			}
			return err
		}
	}
	all := func(changes ...func(*stage) error) func(*stage) error {
		return func(s *stage) (err error) {
			for _, change := range changes {
				err = errors.Join(err, change(s))
			}
			return err
		}
	}
	tests := []struct {
		name   string
		before string
		change func(*stage) error
		steps  int
		risk   api.Risk
		open   string
	}{
		{"bring-up", "", apply(wipedCluster), 4, api.RiskNone, ""},
		{"another disk", wipedCluster, apply("node n1 host=h1 devices=(d1,spare1)"), 3, api.RiskNone, ""},
		{"another node and mgr", wipedCluster, apply("cluster c policy=Wipe mgrs=3\nnode n4 host=h4 devices=(d4)"), 3, api.RiskNone, ""},
		{"fewer mgrs", wipedCluster, apply("cluster c policy=Wipe mgrs=1"), 2, api.RiskRedundancy, ""},
		{"a setting that changes nothing", wipedCluster, apply("cluster c"), 0, api.RiskNone, ""},
		{"fewer mons", fourNodes, apply("cluster c policy=Wipe mons=1"), 5, api.RiskRedundancy, ""},
		{"a host is drained", fourNodes, mode("h4", api.HostDrain), 9, api.RiskData, ""},
		{"the host of a mon is drained", fourNodes, mode("h1", api.HostDrain), 12, api.RiskData, ""},
		{"a node is deleted and its host drained", fourNodes, all(mode("h4", api.HostDrain), func(s *stage) error {
			return s.delete(arguments{{Key: "node", Vals: []string{"n4"}}})
		}), 9, api.RiskData, ""},
		{"a drain is refused", wipedCluster, mode("h1", api.HostDrain), 0, api.RiskNone, ""},
		{"a host goes into maintenance", fourNodes, mode("h1", api.HostMaintenance), 2, api.RiskRedundancy, ""},
		{"two hosts enter maintenance", fourNodes, all(mode("h1", api.HostMaintenance), mode("h2", api.HostMaintenance)), 2, api.RiskRedundancy, ""},
		{"a host comes back from maintenance", fourNodes, all(mode("h1", api.HostMaintenance), func(s *stage) error {
			s.lead()
			return errors.Join(s.settle(), s.kill())
		}, mode("h1", api.HostActive)), 2, api.RiskNone, ""},
		{"a dead host is drained", fourNodes, all(dead("h4"), mode("h4", api.HostDrain)), 7, api.RiskData, "h4"},
		{"a dead host is drained, and somebody says that it is gone", fourNodes, all(dead("h4"), gone("h4")), 8, api.RiskRedundancy, "h4"},
		{"a mon is lost, and nobody saw it before", fourNodes, dead("h2"), 1, api.RiskNone, "mon.b: not replaced yet"},
		{"a mon is lost", fourNodes, all(dead("h2"), func(s *stage) error {
			s.lead()
			return errors.Join(s.settle(), s.kill(), s.tick(11*time.Minute))
		}), 4, api.RiskRedundancy, "h2"},
		{"a configuration that counts from the start of OSDs", wipedCluster, apply("cluster c policy=Wipe osd-queue=wpq"), 7, api.RiskRedundancy, ""},
		{"the same, and a disk more", wipedCluster, apply("cluster c policy=Wipe osd-queue=wpq\nnode n1 host=h1 devices=(d1,spare1)"), 7, api.RiskRedundancy, ""},
		{"a newer release", wipedCluster, install("17.2.7"), 18, api.RiskRedundancy, ""},
		{"deleted with its data", wipedCluster, deleted, 4, api.RiskData, ""},
		{"deleted, the data kept", strings.Replace(wipedCluster, " policy=Wipe", "", 1), deleted, 3, api.RiskRedundancy, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage()
				for i := 1; i <= 4; i++ {
					if err := s.AddHost(s.ctx, fmt.Sprintf("h%d", i), []string{fmt.Sprintf("d%d", i), fmt.Sprintf("spare%d", i)}); err != nil {
						t.Fatal(err)
					}
				}
				s.lead()
				// The change is planned and made while nobody leads.
				if err := errors.Join(s.apply(tt.before), s.settle(), s.kill(), tt.change(s)); err != nil {
					t.Fatal(err)
				}
				before, asked, since := s.world(t), s.asked(), s.started(t)
				p := s.project(t)
				s.lead()
				if err := errors.Join(s.settle(), s.letGo(), s.settle(), s.kill()); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(s.world(t), foretold(before, p)); diff != "" {
					t.Errorf("what happened (-) is not what was foretold (+):\n%s", diff)
				}
				if diff := cmp.Diff(askedSince(asked, s.asked()), foretoldToAsk(p)); diff != "" {
					t.Errorf("what Ceph was asked for (-) is not what was foretold (+):\n%s", diff)
				}
				if diff := cmp.Diff(startedAgain(since, s.started(t)), foretoldAgain(p)); diff != "" {
					t.Errorf("what was started again (-) is not what was foretold (+):\n%s", diff)
				}
				if open := strings.Join(p.Open, "; "); len(p.Steps) != tt.steps || p.Risk() != tt.risk || (open == "") != (tt.open == "") || !strings.Contains(open, tt.open) {
					t.Errorf("%d steps, risk %s, open %q; want %d, %s, %q", len(p.Steps), p.Risk(), p.Open, tt.steps, tt.risk, tt.open)
				}
			})
		})
	}
}

// project is the projection that a person is shown now.
func (s *stage) project(t *testing.T) *engine.Projection {
	t.Helper()
	view, _, err := s.plan(named("c"))
	if err != nil {
		t.Fatal(err)
	}
	view.Gone = map[string]bool{s.gone: s.gone != ""}
	return engine.Project(&ceph.Driver{}, view, time.Now().Add(time.Minute))
}

// letGo lets the daemons of a host that is said to be gone go without the word of its agent, as the action does that said so.
func (s *stage) letGo() error {
	if s.gone == "" {
		return nil
	}
	view, err := s.View(s.ctx, named("c"))
	if err != nil {
		return err
	}
	for i := range view.Daemons {
		if d := &view.Daemons[i]; d.Spec.Host == s.gone {
			err = errors.Join(err, s.ReleaseDaemon(s.ctx, named(d.Name)))
		}
	}
	return err
}

// world is what there is of a cluster, in words. A cluster that is gone leaves nothing.
func (s *stage) world(t *testing.T) []string {
	t.Helper()
	view, err := s.View(s.ctx, named("c"))
	if errors.Is(err, engine.ErrNotFound) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for i := range view.Daemons {
		if d := &view.Daemons[i]; d.DeletionTimestamp == nil { // a dead host never lets go of what was removed from it
			words = append(words, wantedText(d))
		}
	}
	for _, x := range view.Secrets {
		words = append(words, "secret "+x.Name)
	}
	slices.Sort(words)
	return words
}

func wantedText(d *api.Daemon) string {
	return fmt.Sprintf("daemon %s on %s: %s, devices %v, files %d", d.Name, d.Spec.Host, d.Spec.State, d.Spec.Devices, len(d.Spec.Files))
}

// foretold is what there is when all steps of a projection are done.
func foretold(before []string, p *engine.Projection) []string {
	if p.Last.Finished {
		return nil
	}
	words := map[string]string{} // by object
	for _, w := range before {
		words[strings.Fields(w)[1]] = w
	}
	for _, step := range p.Steps {
		for _, c := range step.Plan.Daemons {
			words[c.Daemon.Name] = wantedText(&c.Daemon)
		}
		for _, r := range step.Plan.Remove {
			delete(words, r.Name)
		}
		for _, x := range step.Plan.Secrets {
			if words[x.Name] = "secret " + x.Name; x.Gone {
				delete(words, x.Name)
			}
		}
	}
	return slices.Sorted(maps.Values(words))
}

// started is when the processes of the daemons were started, as far as they run.
func (s *stage) started(t *testing.T) map[types.UID]api.Daemon {
	t.Helper()
	view, err := s.View(s.ctx, named("c"))
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		t.Fatal(err)
	}
	all := map[types.UID]api.Daemon{}
	if err == nil {
		for _, d := range view.Daemons {
			all[d.UID] = d
		}
	}
	return all
}

// startedAgain are the daemons whose processes ran before and were started since.
func startedAgain(before, after map[types.UID]api.Daemon) []string {
	var again []string
	for uid, was := range before {
		if is, left := after[uid]; left && was.Status.State == api.DaemonRunning && is.Status.State == api.DaemonRunning && !was.Status.Started.Equal(is.Status.Started) {
			again = append(again, is.Name)
		}
	}
	slices.Sort(again)
	return again
}

// foretoldAgain are those that a projection has stopped and started.
func foretoldAgain(p *engine.Projection) []string {
	var again []string
	stopped := map[string]bool{}
	for _, step := range p.Steps {
		for _, c := range step.Plan.Daemons {
			switch c.Daemon.Spec.State {
			case api.WantStopped:
				stopped[c.Daemon.Name] = true
			case api.WantRunning:
				if stopped[c.Daemon.Name] {
					again = append(again, c.Daemon.Name)
				}
				delete(stopped, c.Daemon.Name)
			}
		}
	}
	slices.Sort(again)
	return again
}

// asked counts what Ceph was asked to change, by the command.
func (s *stage) asked() map[string]int {
	counts := map[string]int{}
	for _, command := range []string{
		"osd new", "auth import", "auth rm", "osd set-group", "osd unset-group", "osd crush reweight", "osd out", "osd in", "osd purge", "osd crush rm", "osd crush move", "mon remove", "mgr fail", "config set", "config rm",
	} {
		for _, c := range s.cephs.clusters {
			counts[command] += c.Calls(command)
		}
	}
	return counts
}

// askedSince are the commands that were asked since.
func askedSince(before, after map[string]int) []string {
	var commands []string
	for command, n := range after {
		if n > before[command] {
			commands = append(commands, command)
		}
	}
	slices.Sort(commands)
	return commands
}

// foretoldToAsk are the commands that a projection tells, which tells each only once.
func foretoldToAsk(p *engine.Projection) []string {
	var commands []string
	seen := map[string]bool{}
	for _, step := range p.Steps {
		for _, c := range step.Plan.Commands {
			if told := c.Verb + " " + c.Object; seen[told] {
				commands = append(commands, "once more: "+told)
			} else {
				seen[told] = true
			}
			verb := strings.TrimSuffix(c.Verb, " noout")
			if verb == orch.VerbBackend {
				verb = fmt.Sprint(orch.Command(c.Verb, c.Params)["prefix"]) // an option, for Ceph
			}
			commands = append(commands, verb)
		}
	}
	slices.Sort(commands)
	return slices.Compact(commands)
}
