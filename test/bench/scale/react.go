package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph"
)

const (
	// reactionLimit is how long a reaction is waited for.
	reactionLimit = 30 * time.Second
	// between is the pause between two deaths, long enough for the first to be over.
	between = 500 * time.Millisecond
	// profiledReaction is how much of it is profiled.
	profiledReaction = 15 * time.Second
)

// reaction is how long it took from a change on one host until the leader had written something of it, in seconds.
type reaction struct {
	// Event is the end of a process until its ClusterEvent is there, and Decision until the StorageStatus says so.
	Event, Decision []float64
	// Order is a host's mode until the first of its Daemons has another spec: what the leader is asked for is on its way.
	Order []float64
}

// react ends OSDs one after the other on different hosts, and sends hosts into maintenance, and takes the time.
func (b *bench) react(ctx context.Context) error {
	stopProfile := b.startProfile(ctx, ".react", profiledReaction)
	note("%d daemons end, one after the other", b.deaths)
	for n := range b.deaths {
		if err := b.kill(ctx, b.fleet.hosts[n*7919%b.hosts]); err != nil {
			return err
		}
		pause(ctx, between)
	}
	note("%d hosts get a mode", b.clusters)
	// One host of each cluster, one after the other: while one comes back its cluster, and the machine, have other things to do.
	for n := range b.clusters {
		pause(ctx, restartAfter)
		if err := b.awaitReady(ctx); err != nil {
			return err
		}
		if err := b.order(ctx, b.fleet.hosts[b.hosts-1-n]); err != nil {
			return err
		}
	}
	return stopProfile()
}

// kill ends an OSD of a host.
func (b *bench) kill(ctx context.Context, h *host) error {
	d := h.osd()
	if d == nil {
		return fmt.Errorf("%s has no OSD", h.name)
	}
	label := "osd." + d.Spec.ID
	events, err := b.watch1(ctx, &api.ClusterEventList{}, func(o runtime.Object) bool {
		e, ok := o.(*api.ClusterEvent)
		return ok && e.Object == "daemon/"+d.Name && e.Code == "DAEMON_FAILED"
	})
	if err != nil {
		return err
	}
	statuses, err := b.watch1(ctx, &api.StorageStatusList{}, func(o runtime.Object) bool {
		s, ok := o.(*api.StorageStatus)
		return ok && s.Name == d.Spec.Cluster && strings.Contains(strings.Join(s.Status.Reasons, "\n"), label+" on ")
	})
	if err != nil {
		return err
	}
	begun := time.Now()
	h.kill(d.Namespace + "." + d.Name)
	at, err := events(begun)
	if err != nil {
		return fmt.Errorf("while waiting for the event of %s: %w", d.Name, err)
	}
	b.result.Reaction.Event = append(b.result.Reaction.Event, at)
	if at, err = statuses(begun); err != nil {
		return fmt.Errorf("while waiting for the StorageStatus to tell of %s: %w", d.Name, err)
	}
	b.result.Reaction.Decision = append(b.result.Reaction.Decision, at)
	return nil
}

// order sends a host into maintenance, and out of it again.
func (b *bench) order(ctx context.Context, h *host) error {
	daemons, err := b.watch1(ctx, &api.DaemonList{}, func(o runtime.Object) bool {
		d, ok := o.(*api.Daemon)
		return ok && d.Spec.Host == h.name && d.Spec.State == api.WantStopped
	})
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := b.setMode(ctx, h.name, api.HostMaintenance); err != nil {
		return err
	}
	at, err := daemons(begun)
	if err != nil {
		return fmt.Errorf("while waiting for %s to go into maintenance: %w", h.name, err)
	}
	b.result.Reaction.Order = append(b.result.Reaction.Order, at)
	return b.setMode(ctx, h.name, api.HostActive)
}

func (b *bench) setMode(ctx context.Context, name string, mode api.HostMode) error {
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"mode":%q}}`, mode))
	h := &api.Host{}
	h.Name = name
	return b.api.Patch(ctx, h, patch)
}

// watch1 follows a list from now on, until an object is as wanted. The function that it returns waits for that, and says how
// long after a moment it came.
func (b *bench) watch1(ctx context.Context, list client.ObjectList, wanted func(runtime.Object) bool) (func(begun time.Time) (float64, error), error) {
	if err := b.api.List(ctx, list, client.InNamespace("default"), client.Limit(1)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, reactionLimit)
	w, err := b.api.Watch(ctx, list, client.InNamespace("default"), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
	if err != nil {
		cancel()
		return nil, err
	}
	came := make(chan time.Time, 1)
	go func() {
		defer cancel()
		defer w.Stop()
		for e := range w.ResultChan() {
			if wanted(e.Object) {
				came <- time.Now()
				return
			}
		}
	}()
	return func(begun time.Time) (float64, error) {
		select {
		case at := <-came:
			return seconds(at.Sub(begun)), nil
		case <-ctx.Done():
			select {
			case at := <-came:
				return seconds(at.Sub(begun)), nil
			default:
				return 0, fmt.Errorf("nothing came within %s", reactionLimit)
			}
		}
	}, nil
}

// osd is the Daemon of an OSD that runs on the host, or nil.
func (h *host) osd() *api.Daemon {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, s := range h.process {
		if d := h.known[name]; s.Running && d.Spec.Type == ceph.TypeOSD {
			return d
		}
	}
	return nil
}
