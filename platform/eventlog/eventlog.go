// Package eventlog keeps the ClusterEvents of storage clusters, numbered without a hole, and the
// record of what the leader has told. The events of a run and the record are accepted by one write:
// a leader that dies after it leaves the events to the next one, which writes them under the same
// numbers.
package eventlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

const (
	// parallelEvents is how many events of a cluster are written at once.
	parallelEvents = 16
	trimTimeout    = 30 * time.Second
	// maxPending is how many accepted events may be left for later: they are recorded with each
	// Emit.
	maxPending = 1000
	// flushSlice is how long Emit writes events, and how long what goes on in the background keeps
	// it waiting.
	flushSlice = time.Second
	// flushTimeout bounds that when the API hangs.
	flushTimeout = 5 * time.Second
)

// componentRecord is the label app.kubernetes.io/component of records.
const componentRecord = "record"

// Logs are the logs of all clusters. It is safe for concurrent use. Only the leader may have one.
type Logs struct {
	// Slice is how long Emit writes events before it leaves the rest to the background.
	Slice time.Duration

	api client.Client
	log *slog.Logger
	// life ends what goes on in the background.
	life       context.Context //nolint:containedctx // it is the life of the Logs, not that of a call
	background sync.WaitGroup

	mu   sync.Mutex
	logs map[types.NamespacedName]*clusterLog
}

// New returns Logs that live until ctx ends.
func New(ctx context.Context, c client.Client, log *slog.Logger) *Logs {
	return &Logs{api: c, Slice: flushSlice, log: log, life: ctx, logs: map[types.NamespacedName]*clusterLog{}}
}

// WaitForEvents waits for what goes on in the background, once the context of New has ended.
func (s *Logs) WaitForEvents() { s.background.Wait() }

// clusterLog knows which events of one cluster are stored. Only the leader writes events, so it is
// read from the API once.
type clusterLog struct {
	mu      sync.Mutex
	loaded  bool
	entries []entry
	// record is what is recorded of the events, and told what it comes to, with its base.
	record record
	told   engine.Told
	// recordVersion and baseVersion are the resourceVersions of the two, empty before they are
	// created.
	recordVersion, baseVersion string
	// pending are events that are accepted and not written yet.
	pending []engine.Event
	// trimming is set while the oldest events are being removed, and flushing while pending ones
	// are written in the background.
	trimming, flushing bool
}

type entry struct {
	sequence int64
	time     time.Time
}

func (l *clusterLog) last() int64 {
	if len(l.entries) == 0 {
		return 0
	}
	return l.entries[len(l.entries)-1].sequence
}

func (s *Logs) of(cluster types.NamespacedName) *clusterLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.logs[cluster]
	if l == nil {
		l = &clusterLog{}
		s.logs[cluster] = l
	}
	return l
}

// Emit appends events to the cluster's log, and records what they tell. Once the record is written
// the events are accepted, and this leader, or the next one, writes them sooner or later:
// where they are many, as when a rack loses power, it does not hold up the run until all are
// written, but goes on in the background.
func (s *Logs) Emit(ctx context.Context, cluster *api.StorageCluster, events []engine.Event,
	told map[string]*string,
) (int, error) {
	name := client.ObjectKeyFromObject(cluster)
	l := s.of(name)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(events)+len(told)+len(l.pending) == 0 {
		return 0, nil
	}
	if err := s.load(ctx, l, cluster); err != nil {
		return 0, err
	}
	if len(l.pending) > maxPending {
		if err := s.flush(ctx, cluster, l, flushSlice); err != nil {
			return 0, err
		}
	}
	if len(events)+len(told) > 0 {
		if err := s.accept(ctx, l, cluster, events, told); err != nil {
			return 0, fmt.Errorf("while recording events: %w", err)
		}
	}
	err := s.flush(ctx, cluster, l, s.Slice)
	if err == nil && len(l.pending) > 0 {
		s.flushLater(cluster.DeepCopy(), l)
	}
	return len(events), err
}

// flush writes the events that are accepted, for about as long as given. They are written side by
// side, which may leave a hole when the server dies meanwhile; the next leader closes it (load).
// The caller holds l.mu.
func (s *Logs) flush(ctx context.Context, cluster *api.StorageCluster, l *clusterLog, slice time.Duration) error {
	if len(l.pending) == 0 {
		return nil
	}
	var err error
	for end := time.Now().Add(slice); err == nil && len(l.pending) > 0 && time.Now().Before(end); {
		var written int
		written, err = s.append(ctx, cluster, l.last(), l.pending[:min(len(l.pending), parallelEvents)])
		for _, e := range l.pending[:written] {
			l.entries = append(l.entries, entry{l.last() + 1, e.Time})
		}
		l.pending = l.pending[written:]
	}
	if errors.Is(err, errForeignEvent) {
		l.loaded = false
	}
	s.trim(client.ObjectKeyFromObject(cluster), l)
	return err
}

// flushLater goes on with a flush in the background, and lets Emit in between. What fails is tried
// again with the next Emit. The caller holds l.mu.
func (s *Logs) flushLater(cluster *api.StorageCluster, l *clusterLog) {
	if l.flushing {
		return
	}
	l.flushing = true
	s.background.Go(func() {
		for s.flushMore(cluster, l) {
		}
	})
}

// flushMore says whether there is more to write.
func (s *Logs) flushMore(cluster *api.StorageCluster, l *clusterLog) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(s.life, flushTimeout)
	defer cancel()
	err := s.flush(ctx, cluster, l, flushSlice)
	if err != nil && s.life.Err() == nil {
		s.log.Warn("writing events", "cluster", client.ObjectKeyFromObject(cluster).String(), "error", err)
	}
	l.flushing = err == nil && len(l.pending) > 0
	return l.flushing
}

// errForeignEvent says that a number is taken by an event that these Logs did not write.
var errForeignEvent = errors.New("another writer appended events")

// append writes events under the numbers that follow last, and returns how many, counted from the
// first, are stored.
func (s *Logs) append(ctx context.Context, cluster *api.StorageCluster, last int64, events []engine.Event) (int,
	error,
) {
	errs := make([]error, len(events))
	var group errgroup.Group
	group.SetLimit(parallelEvents)
	for i, e := range events {
		group.Go(func() error {
			errs[i] = s.appendOne(ctx, engine.EventFor(cluster, last+1+int64(i), e))
			return nil
		})
	}
	_ = group.Wait() // The functions return no error; they leave it in errs.
	for i, err := range errs {
		if err != nil {
			return i, fmt.Errorf("while writing event %d: %w", last+1+int64(i), err)
		}
	}
	return len(events), nil
}

// appendOne writes one event. That it is there already is well when it is the same one: it was
// written by a call of which another part failed.
func (s *Logs) appendOne(ctx context.Context, e *api.ClusterEvent) error {
	err := s.api.Create(ctx, e.DeepCopy())
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	var have api.ClusterEvent
	if err := s.api.Get(ctx, client.ObjectKeyFromObject(e), &have); err != nil {
		return err
	}
	if !sameEvent(&have, e) {
		return errForeignEvent
	}
	return nil
}

// load reads which events there are, if that is not known, and writes those that another leader
// accepted. The caller holds l.mu.
func (s *Logs) load(ctx context.Context, l *clusterLog, cluster *api.StorageCluster) error {
	if l.loaded {
		return nil
	}
	var list api.ClusterEventList
	err := s.api.List(ctx, &list, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{api.LabelCluster: cluster.Name})
	if err != nil {
		return fmt.Errorf("while reading the log: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b api.ClusterEvent) int { return int(a.Sequence - b.Sequence) })
	if err := s.readRecord(ctx, l, client.ObjectKeyFromObject(cluster)); err != nil {
		return err
	}
	events, err := s.finishRecord(ctx, l, cluster, list.Items)
	if err != nil {
		return err
	}
	if err := s.closeHoles(ctx, cluster, events); err != nil {
		return err
	}
	l.entries = nil
	for i := range events {
		l.entries = append(l.entries, entry{events[i].Sequence, events[i].Time.Time})
	}
	l.loaded = true
	return nil
}

// closeHoles gives new numbers to events that stand behind a hole, which a writer left that died.
// It works from the oldest on and may be repeated.
func (s *Logs) closeHoles(ctx context.Context, cluster *api.StorageCluster, events []api.ClusterEvent) error {
	for i := 1; i < len(events); i++ {
		want := events[i-1].Sequence + 1
		if events[i].Sequence == want {
			continue
		}
		old := events[i].DeepCopy()
		moved := engine.EventFor(cluster, want, engine.Event{
			Code: engine.Code(old.Code), Object: old.Object, Message: old.Message, Time: old.Time.Time,
			Objects: old.Objects,
		})
		if err := s.appendOne(ctx, moved); err != nil {
			return fmt.Errorf("while closing a hole in the log: %w", err)
		}
		if err := s.api.Delete(ctx, old); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("while closing a hole in the log: %w", err)
		}
		events[i] = *moved
	}
	return nil
}

// trim removes the oldest events in the background, one after the other, so that the log has no
// hole at any moment. The caller holds l.mu.
func (s *Logs) trim(cluster types.NamespacedName, l *clusterLog) {
	n := max(0, len(l.entries)-api.MaxClusterEvents)
	for n < len(l.entries) && time.Since(l.entries[n].time) > api.MaxClusterEventAge {
		n++
	}
	if n == 0 || l.trimming {
		return
	}
	l.trimming = true
	old := slices.Clone(l.entries[:n])
	s.background.Go(func() {
		removed := s.removeEvents(cluster, old)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.trimming = false
		l.entries = slices.DeleteFunc(l.entries, func(e entry) bool { return e.sequence <= removed })
		if removed >= old[len(old)-1].sequence {
			// Events that came meanwhile may have pushed others over the bound.
			s.trim(cluster, l)
		}
	})
}

// removeEvents returns the number of the last event that it removed. What it leaves is tried again
// with the next Emit.
func (s *Logs) removeEvents(cluster types.NamespacedName, old []entry) (removed int64) {
	ctx, cancel := context.WithTimeout(s.life, trimTimeout)
	defer cancel()
	for _, e := range old {
		event := engine.EventFor(&api.StorageCluster{ObjectMeta: objectMeta(cluster)}, e.sequence, engine.Event{})
		if err := client.IgnoreNotFound(s.api.Delete(ctx, event)); err != nil {
			if s.life.Err() != nil {
				return removed
			}
			s.log.Warn("removing old events", "cluster", cluster.String(), "error", err)
			return removed
		}
		removed = e.sequence
	}
	return removed
}

// DropEvents removes the log and the record of a cluster that is gone.
func (s *Logs) DropEvents(ctx context.Context, cluster types.NamespacedName) error {
	l := s.of(cluster)
	l.mu.Lock()
	defer l.mu.Unlock()
	err := s.api.DeleteAllOf(ctx, &api.ClusterEvent{}, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{api.LabelCluster: cluster.Name})
	if err != nil {
		return fmt.Errorf("while removing events: %w", err)
	}
	l.entries, l.loaded, l.pending = nil, false, nil
	return s.dropRecord(ctx, cluster)
}

func objectMeta(name types.NamespacedName) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}
}
