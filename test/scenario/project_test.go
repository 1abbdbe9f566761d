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

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/engine"
)

const wipedCluster = `cluster c policy=Wipe
node n1 host=h1 devices=(d1)
node n2 host=h2 devices=(d2)
node n3 host=h3 devices=(d3)`

// TestProject_isWhatHappens: what is shown before a change is what a leader then does.
func TestProject_isWhatHappens(t *testing.T) {
	deleted := func(s *stage) error { return s.delete(arguments{{Key: "cluster", Vals: []string{"c"}}}) }
	apply := func(text string) func(*stage) error {
		return func(s *stage) error { return s.apply(text) }
	}
	tests := []struct {
		name   string
		before string
		change func(*stage) error
		steps  int
		risk   api.Risk
	}{
		{"bring-up", "", apply(wipedCluster), 3, api.RiskNone},
		{"another disk", wipedCluster, apply("node n1 host=h1 devices=(d1,spare1)"), 2, api.RiskNone},
		{"another node and mgr", wipedCluster, apply("cluster c policy=Wipe mgrs=3\nnode n4 host=h4 devices=(d4)"), 2, api.RiskNone},
		{"fewer mgrs", wipedCluster, apply("cluster c policy=Wipe mgrs=1"), 2, api.RiskRedundancy},
		{"a setting that changes nothing", wipedCluster, apply("cluster c"), 0, api.RiskNone},
		{"deleted with its data", wipedCluster, deleted, 4, api.RiskData},
		{"deleted, the data kept", strings.Replace(wipedCluster, " policy=Wipe", "", 1), deleted, 3, api.RiskRedundancy},
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
				before := s.world(t)
				p := s.project(t)
				s.lead()
				if err := errors.Join(s.settle(), s.kill()); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(s.world(t), foretold(before, p)); diff != "" {
					t.Errorf("what happened (-) is not what was foretold (+):\n%s", diff)
				}
				if len(p.Steps) != tt.steps || p.Risk() != tt.risk || len(p.Open) > 0 {
					t.Errorf("%d steps, risk %s, open %q; want %d, %s, none", len(p.Steps), p.Risk(), p.Open, tt.steps, tt.risk)
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
	return engine.Project(&ceph.Driver{}, view, time.Now().Add(time.Minute))
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
		words = append(words, wantedText(&view.Daemons[i]))
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
			words[x.Name] = "secret " + x.Name
		}
	}
	return slices.Sorted(maps.Values(words))
}
