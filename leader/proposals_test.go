package leader_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/sim"
	"github.com/holdfast-storage/holdfast/leader"
	"github.com/holdfast-storage/holdfast/propose"
)

// shelf holds Plans in memory. The manifest of one says what the API server makes of it: it is the
// name of an answer.
type shelf struct {
	leader.Plans
	mu       sync.Mutex
	plans    map[string]*api.Plan
	notify   []func()
	failures int // of the next reads of all objects
}

func (s *shelf) put(name, manifest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plans[name] = &api.Plan{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: api.PlanSpec{Manifest: manifest, Requester: "jo"},
	}
	for _, f := range s.notify {
		f()
	}
}

func (s *shelf) status(name string) api.PlanStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plans[name].Status
}

func (s *shelf) Asked() (all []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.plans)) {
		if s.plans[name].Status.State == "" {
			all = append(all, types.NamespacedName{Namespace: "default", Name: name})
		}
	}
	return all
}

func (s *shelf) Notify(_ context.Context, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify = append(s.notify, f)
}

func (s *shelf) Get(_ context.Context, name types.NamespacedName) (*api.Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plans[name.Name].DeepCopy(), nil
}

func (s *shelf) Answer(_ context.Context, p *api.Plan) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Name == "large" && p.Status.Proposal != nil {
		return errors.New("etcdserver: request is too large")
	}
	s.plans[p.Name] = p.DeepCopy()
	return nil
}

func (s *shelf) Objects(context.Context) (*engine.Objects, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures > 0 {
		s.failures--
		return nil, errors.New("no quorum")
	}
	return &engine.Objects{}, nil
}

func (*shelf) Secrets(string) engine.SecretReader { return nil }

func (*shelf) Check(ctx context.Context, p *api.Plan) (propose.Request, error) {
	switch p.Spec.Manifest {
	case "forbidden":
		return propose.Request{}, propose.Refuse("jo may not create storageclusters")
	case "slow":
		<-ctx.Done()
		return propose.Request{}, ctx.Err()
	}
	kind := api.StorageType(p.Spec.Manifest)
	cluster := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": api.GroupVersion.String(), "kind": "StorageCluster",
		"metadata": map[string]any{"namespace": "default", "name": p.Name},
		"spec":     map[string]any{"type": string(kind)},
	}}
	return propose.Request{Operation: api.PlanApply, Targets: []propose.Target{{Unstructured: cluster, After: cluster}}}, nil
}

// broken is a storage system whose driver has a fault.
type broken struct{ *sim.Toy }

func (broken) Plan(*engine.View, time.Time) *engine.Plan { panic("no such host") }

// TestPropose: each Plan gets an answer: what would come of it, or why the leader does not say
// that. One that takes long or meets a fault in a driver holds up no other, and what fails by
// itself is tried again.
func TestPropose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{plans: map[string]*api.Plan{}, failures: 1}
		toy, fault := sim.NewToy(), sim.NewToy()
		fault.As = "broken"
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		s.put("early", "toy")
		go func() {
			ended <- leader.Propose(ctx, leader.ProposeConfig{
				Plans: s, Drivers: []engine.Driver{toy, broken{fault}}, Name: "s1", Log: slog.New(slog.DiscardHandler),
			})
		}()
		synctest.Wait()
		if got := s.status("early"); got.State != "" {
			t.Errorf("while the objects cannot be read: %+v", got)
		}
		time.Sleep(10 * time.Second) // it is tried again
		synctest.Wait()
		for name, manifest := range map[string]string{
			"forbidden": "forbidden", "slow": "slow", "fault": "broken", "fine": "toy", "large": "toy",
		} {
			s.put(name, manifest)
		}
		synctest.Wait()
		for _, name := range []string{"early", "fine"} {
			got := s.status(name)
			if got.State != api.PlanProposed || got.Proposal == nil || got.Proposal.Leader != "s1" || got.Proposal.Count != 1 {
				t.Errorf("%s: %+v", name, got)
			} else if !strings.Contains(got.Proposal.Report, "storagecluster/default/"+name+"  new") {
				t.Errorf("%s: the report is\n%s", name, got.Proposal.Report)
			}
		}
		fails(t, s, "forbidden", "jo may not create storageclusters")
		fails(t, s, "fault", "planning failed: fault in Holdfast")
		if got := s.status("slow"); got.State != "" {
			t.Errorf("before its time is over: %+v", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		fails(t, s, "slow", "the plan was not ready within 45s")
		fails(t, s, "large", "the leader tried 3 times: etcdserver: request is too large")
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func fails(t *testing.T, s *shelf, name, why string) {
	t.Helper()
	if got := s.status(name); got.State != api.PlanFailed || got.Proposal != nil || !strings.Contains(got.Message, why) {
		t.Errorf("%s: %+v, want %q", name, got, why)
	}
}
