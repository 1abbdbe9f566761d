package propose

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/sim"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// severalClusters is a home with clusters, and a request that touches all of them.
func severalClusters(names ...string) (Home, Request) {
	o, r := &engine.Objects{}, Request{Operation: api.PlanApply}
	for _, name := range names {
		c := api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "1"}}
		c.Spec.Type = sim.ToyType
		o.Clusters = append(o.Clusters, c)
		after := c.DeepCopy()
		after.Spec.Interval.Duration = time.Minute
		live := plans.Unstructured(engine.KindCluster, &c)
		next := plans.Unstructured(engine.KindCluster, after)
		r.Targets = append(r.Targets, Target{Unstructured: live, Live: live, After: next})
	}
	secrets := func(string) engine.SecretReader { return nil }
	return Home{Objects: o, Drivers: []engine.Driver{sim.NewToy()}, Secrets: secrets, Now: time.Unix(1e9, 0)}, r
}

// TestMake_silentTogether: storage systems that do not answer are waited for together, and each is
// shown a view that says that it is of what is supposed.
func TestMake_silentTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home, r := severalClusters("a", "b", "c")
		home.Observe = func(_ context.Context, _ engine.Driver, v *engine.View, _ engine.SecretReader) (any, error) {
			if !v.Supposed || v.Cluster.Spec.Interval.Duration != time.Minute {
				t.Errorf("it is asked for the view %+v", v)
			}
			time.Sleep(5 * time.Second)
			return nil, errors.New("no answer")
		}
		began := time.Now()
		p, err := Make(t.Context(), home, r)
		if err != nil || len(p.Silent) != 3 {
			t.Errorf("%v, %v", p, err)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("three silent clusters take %s", took)
		}
	})
}

// TestMake_fault: a driver that panics while it asks its storage system ends the plan alone.
func TestMake_fault(t *testing.T) {
	home, r := severalClusters("a", "b")
	home.Observe = func(context.Context, engine.Driver, *engine.View, engine.SecretReader) (any, error) {
		panic("no such mon")
	}
	defer func() {
		if got := fmt.Sprint(recover()); got != "no such mon" {
			t.Errorf("the caller meets %q", got)
		}
	}()
	_, _ = Make(t.Context(), home, r)
}

// TestMake_forgetsNothing: a plan takes no connection away from the cluster's runs.
func TestMake_forgetsNothing(t *testing.T) {
	home, r := severalClusters("a")
	if _, err := Make(t.Context(), home, r); err != nil {
		t.Fatal(err)
	}
	if observed, _, forgotten := home.Drivers[0].(*sim.Toy).Counts(); observed != 1 || forgotten != 0 {
		t.Errorf("it was asked %d times and forgotten %d times", observed, forgotten)
	}
}
