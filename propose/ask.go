package propose

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/engine"
)

// askedAtOnce is how many storage systems are asked at one time. Those that do not answer are
// waited for together.
const askedAtOnce = 32

// question is what the storage system of a cluster is asked, and its answer.
type question struct {
	driver  engine.Driver
	view    *engine.View // of what is supposed; with the answer, where there is one
	secrets engine.SecretReader
	// failed is why the answer is not all there. That is no reason to show no plan; the plan itself
	// says that it waits for the storage system.
	failed error
	fault  *fault
}

// fault is a panic of a driver. Only the log has its stack.
type fault struct {
	value any
	stack []byte
}

// String is what the driver said.
func (f *fault) String() string { return fmt.Sprint(f.value) }

// LogValue is what the log has.
func (f *fault) LogValue() slog.Value { return slog.StringValue(f.String() + "\n" + string(f.stack)) }

// questions are those to the storage systems of all clusters that a request touches.
func (p *Proposal) questions(before, after *engine.Objects, targets []Target) (all []*question, err error) {
	for i := range after.Clusters {
		cluster := nameOf(&after.Clusters[i])
		if !touches(before, targets, cluster) && !touches(after, targets, cluster) {
			continue
		}
		q, err := p.question(after, cluster)
		if err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	return all, nil
}

func (p *Proposal) question(after *engine.Objects, cluster types.NamespacedName) (*question, error) {
	view, err := after.View(cluster)
	if err != nil {
		return nil, err
	}
	view.Supposed = true
	driver := p.home.driver(view.Cluster.Spec.Type)
	if driver == nil {
		return nil, fmt.Errorf("storagecluster/%s: this program does not know the storage system %q",
			cluster.Name, view.Cluster.Spec.Type)
	}
	secrets := &secretsAfter{p.home.Secrets(cluster.Namespace), cluster.Namespace, p.Targets}
	return &question{driver: driver, view: view, secrets: secrets}, nil
}

// ask asks all storage systems at one time. A fault of a driver is one of whoever called.
func (h Home) ask(ctx context.Context, all []*question) {
	slots := make(chan struct{}, askedAtOnce)
	var work sync.WaitGroup
	for _, q := range all {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			h.askOne(ctx, q)
		})
	}
	work.Wait()
	for _, q := range all {
		if q.fault != nil {
			panic(q.fault)
		}
	}
}

func (h Home) askOne(ctx context.Context, q *question) {
	defer func() {
		if value := recover(); value != nil {
			q.fault = &fault{value, debug.Stack()}
		}
	}()
	observe := q.driver.Observe
	if h.Observe != nil {
		observe = func(ctx context.Context, v *engine.View, s engine.SecretReader) (any, error) {
			return h.Observe(ctx, q.driver, v, s)
		}
	}
	q.view.System, q.failed = observe(ctx, q.view, q.secrets)
}
