package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/stats"
	"github.com/holdfast-storage/holdfast/internal/backoff"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// defaultParallel is how many clusters are orchestrated at once, where Config does not say otherwise.
const defaultParallel = 8

// slowAfter is how long a run holds one of the places of Config.Parallel. Whoever takes longer waits for something, such as
// a storage system that does not answer, and must not keep other clusters waiting with it.
const slowAfter = 2 * time.Second

// defaultInterval is used for a cluster that names no interval; the API's schema has the same default.
const defaultInterval = 10 * time.Second

// Config says what Run works with.
type Config struct {
	Store Store
	// Managers are the service managers. A StorageCluster goes to the one whose Name is its type.
	Managers []ServiceManager
	Log      *slog.Logger
	// Parallel bounds how many runs are at work at once; zero means 8. A run that takes more than two seconds counts no more.
	Parallel int
	// Stats, when set, is counted up.
	Stats *stats.Stats
}

// Run orchestrates all clusters until ctx ends, and returns when the last run has ended. Only the leader may run it.
//
// A cluster is orchestrated when Run starts, when something that concerns it changes, when its plan asked for it, and when
// its expected next orchestration has come (status.nextOrchestration; it is moved to now + interval before the work starts,
// whatever becomes of the work). Runs of one cluster follow each other; different clusters run side by side.
func Run(ctx context.Context, c Config) error {
	if c.Stats == nil {
		c.Stats = &stats.Stats{}
	}
	if c.Parallel <= 0 {
		c.Parallel = defaultParallel
	}
	s := &scheduler{
		Config: c, managers: map[string]ServiceManager{}, clusters: map[types.NamespacedName]*schedule{},
		wake: make(chan struct{}, 1),
	}
	for _, m := range c.Managers {
		s.managers[m.Name()] = m
	}
	ctx, cancel := context.WithCancel(ctx)
	defer s.end(cancel)
	c.Store.Notify(ctx, func(change Change) { s.notice(ctx, change) })
	if err := s.readAll(ctx); err != nil {
		return err
	}
	s.loop(ctx)
	return nil
}

// scheduler holds the schedules of all clusters.
type scheduler struct {
	Config
	managers map[string]ServiceManager
	// wake has a place for one signal: something changed in clusters.
	wake chan struct{}
	runs sync.WaitGroup

	mu       sync.Mutex
	clusters map[types.NamespacedName]*schedule
	running  int
}

// end cancels what runs, waits for it, and closes the managers: they may hold connections.
func (s *scheduler) end(cancel context.CancelFunc) {
	cancel()
	s.runs.Wait()
	for _, m := range s.Managers {
		if closer, ok := m.(io.Closer); ok {
			if err := closer.Close(); err != nil {
				s.Log.Warn("closing a service manager", "service", m.Name(), "error", err)
			}
		}
	}
}

// readAll makes a schedule for each cluster that there is, and for those that resources alone name. Without the lists nothing can be
// done, so it tries until ctx ends.
func (s *scheduler) readAll(ctx context.Context) error {
	for failures := 1; ; failures++ {
		clusters, err := s.Store.Clusters(ctx)
		resources, errResources := s.Store.Resources(ctx)
		if err = errors.Join(err, errResources); err == nil {
			s.adoptAll(clusters, resources)
			return nil
		}
		s.Log.Warn("listing the clusters and resources", "error", err)
		select {
		case <-ctx.Done():
			return fmt.Errorf("while listing the clusters: %w", context.Cause(ctx))
		case <-time.After(backoff.Pause("readAll", failures)):
		}
	}
}

func (s *scheduler) adoptAll(clusters []api.StorageCluster, resources []api.Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range clusters {
		s.schedule(clusterKey(&clusters[i])).adopt(&clusters[i], time.Now())
	}
	for _, r := range resources {
		cluster := ClusterOfResource(r)
		if s.clusters[cluster] == nil {
			s.schedule(cluster).trigger(Change{Cluster: cluster, Kind: r.ResourceKind(), Object: ResourceObject(r)}, time.Now())
		}
	}
}

// notice takes word of a change. It is called from the store's watches and never blocks for long.
func (s *scheduler) notice(ctx context.Context, c Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.schedule(c.Cluster)
	if x.manager != nil && !wantsKind(x.manager, c.Kind) {
		return
	}
	x.trigger(c, time.Now())
	if x.running && c.Kind == KindCluster {
		s.runs.Go(func() { s.stopByMode(ctx, c.Cluster) })
	}
	s.signal()
}

func wantsKind(m ServiceManager, kind string) bool {
	for _, k := range m.RefreshKeys() {
		if k.Kind == kind {
			return true
		}
	}
	return false
}

func (s *scheduler) schedule(cluster types.NamespacedName) *schedule {
	x := s.clusters[cluster]
	if x == nil {
		x = &schedule{cluster: cluster}
		s.clusters[cluster] = x
	}
	return x
}

func (s *scheduler) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *scheduler) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-timer.C:
		}
		if next := s.startDue(ctx, time.Now()); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// startDue starts a run of each cluster whose time has come, and returns when the next one's comes. Where all places are
// taken the end of a run gives the signal.
func (s *scheduler) startDue(ctx context.Context, now time.Time) (next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := int64(0)
	defer func() { s.Stats.Waiting.Store(waiting) }()
	for cluster, x := range s.clusters {
		at := x.next()
		switch {
		case at.IsZero():
		case !at.After(now) && (x.slow || s.running < s.Parallel):
			due, reason := x.start(now), x.reason
			ctx, stop := context.WithCancelCause(ctx)
			x.stop = stop
			end := s.place(x)
			s.runs.Go(func() {
				defer stop(nil)
				defer end()
				s.run(ctx, cluster, due, reason)
			})
		case at.After(now):
			next = earliest(next, at)
		default:
			waiting++
		}
	}
	return next
}

// place takes a place for a run. What it returns gives it back; a slow run's is given back before that. A cluster whose last
// run was slow gets none. The caller holds the mutex.
func (s *scheduler) place(x *schedule) (end func()) {
	give := func() {}
	if !x.slow {
		s.running++
		give = sync.OnceFunc(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.running--
			s.signal()
		})
	}
	slow := false
	// The next run may start before the end of this one is noted here, so the schedule says already while it runs that it is slow.
	late := time.AfterFunc(slowAfter, func() {
		s.mu.Lock()
		slow, x.slow = true, true
		s.mu.Unlock()
		give()
	})
	return func() {
		late.Stop()
		give()
		s.mu.Lock()
		defer s.mu.Unlock()
		x.slow = x.slow && slow
	}
}

// run does one orchestration and notes in the schedule how it ended.
func (s *scheduler) run(ctx context.Context, cluster types.NamespacedName, due bool, reason string) {
	s.Stats.Runs.Add(1)
	s.Stats.Running.Add(1)
	e := &RefreshEvent{Cluster: cluster, Reason: reason, Outcome: string(api.OutcomeUnchanged)}
	began := time.Now()
	defer func() {
		s.Stats.Running.Add(-1)
		s.Stats.Events.Add(int64(e.Events))
		s.Stats.End(e.Outcome, time.Since(began))
	}()
	c, err := s.Store.Cluster(ctx, cluster)
	if err == nil && s.begin(c) == api.ClusterPaused {
		e.Outcome = stats.Paused
		s.rest(ctx, c)
		return
	}
	if err == nil {
		e.Request = words.Cut(c.Annotations[api.AnnotationOrchestrate], maxRequest)
	}
	if err == nil && due {
		s.postpone(ctx, c)
	}
	manager := s.managerOf(cluster, c)
	if manager != nil {
		// Also for a cluster that is gone: its manager has to forget it.
		err = s.refresh(ctx, manager, e)
	} else if err == nil {
		err = fmt.Errorf("no service manager for type %q: this release does not know it", c.Spec.Type)
	}
	if errors.Is(err, ErrNotFound) && ctx.Err() == nil {
		if orphans := tellOrphans(ctx, s.Store, cluster); orphans != nil {
			err = orphans
		}
	}
	e.Outcome = outcomeOf(ctx, e, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if cause := context.Cause(ctx); errors.Is(cause, errModeChanged) {
		s.Log.Info("orchestration was stopped", "cluster", cluster.String(), "reason", cause)
		s.schedule(cluster).interrupted(time.Now())
	} else {
		s.note(ctx, cluster, c, e, err)
	}
	s.signal()
}

// outcomeOf says how a run ended, for the statistics.
func outcomeOf(ctx context.Context, e *RefreshEvent, err error) string {
	switch {
	case ctx.Err() != nil:
		return stats.Stopped
	case errors.Is(err, ErrNotFound):
		return stats.Gone
	case errors.Is(err, ErrLocked):
		return stats.Discarded
	case err != nil:
		return string(api.OutcomeFailed)
	}
	return e.Outcome
}

// refresh turns a panic into an error: a fault in the handling of one cluster must not stop the leader, which looks after all
// the others.
func (s *scheduler) refresh(ctx context.Context, m ServiceManager, e *RefreshEvent) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.Error("panic in a service manager", "service", m.Name(), "cluster", e.Cluster.String(), "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("orchestration ended: fault in the %s manager (see the log): %v", m.Name(), p)
		}
	}()
	return m.HandleRefresh(ctx, e)
}

func (s *scheduler) managerOf(cluster types.NamespacedName, c *api.StorageCluster) ServiceManager {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.schedule(cluster)
	if c != nil {
		x.manager = s.managers[string(c.Spec.Type)]
	}
	return x.manager
}

// postpone moves the expected next orchestration, before the work starts. That it could not be written is no reason not to
// do the work.
func (s *scheduler) postpone(ctx context.Context, c *api.StorageCluster) {
	next := time.Now().Add(intervalOf(c))
	s.mu.Lock()
	s.schedule(clusterKey(c)).due = next
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := s.Store.PutClusterStatus(ctx, clusterKey(c), func(status *api.StorageClusterStatus) {
		status.NextOrchestration = toSecond(next)
	})
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("writing the time of the next orchestration", "cluster", clusterKey(c).String(), "error", err)
	}
}

// note keeps what follows from the end of a run. The caller holds the mutex.
func (s *scheduler) note(ctx context.Context, cluster types.NamespacedName, c *api.StorageCluster, e *RefreshEvent, err error) {
	x, now := s.schedule(cluster), time.Now()
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, ErrNotFound):
		if x.gone() {
			delete(s.clusters, cluster)
		}
		return
	case errors.Is(err, ErrLocked):
		s.Stats.Discarded.Add(1)
		s.Log.Info("orchestration was discarded", "cluster", cluster.String(), "reason", err)
		x.discarded(now)
	case err != nil:
		x.failed(now)
		x.story.End(s.Log.With("cluster", cluster.String(), "trigger", e.Reason), e.Outcome, err)
	default:
		x.succeeded(now, e)
		x.story.End(s.Log.With("cluster", cluster.String(), "trigger", e.Reason), e.Outcome, e.Failure)
	}
	// Also when the cluster could not be read: its expected orchestration was taken from the schedule when the run started.
	interval := defaultInterval
	if c != nil {
		interval = intervalOf(c)
	}
	x.limitDue(now.Add(interval))
}
