package eventlog

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// foldAt is how many entries a record may have beside its base before the base is written anew.
// Most changes write the small record alone, however large the cluster is.
const foldAt = 256

// record is the word of the leader on what it tells. That it is written is the moment at which its
// events are accepted: the events follow, under the numbers after Sequence, and a leader that dies
// before leaves them to the next one.
type record struct {
	Sequence int64          `json:"sequence"`
	Events   []engine.Event `json:"events,omitempty"`
	// Changes are the entries that differ from the base.
	Changes map[string]*string `json:"changes,omitempty"`
}

// The records lie in ConfigMaps of api.SystemNamespace. As with locks, the dot keeps the clusters
// apart.
func recordName(cluster types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: api.SystemNamespace, Name: "told-" + cluster.Namespace + "." + cluster.Name}
}

func baseName(cluster types.NamespacedName) types.NamespacedName {
	name := "told-base-" + cluster.Namespace + "." + cluster.Name
	return types.NamespacedName{Namespace: api.SystemNamespace, Name: name}
}

// recordKey is the key in a ConfigMap, which holds compressed JSON.
const recordKey = "record.json.gz"

// Told reads what was recorded, after the events that go with it have been written.
func (s *Logs) Told(ctx context.Context, cluster types.NamespacedName) (engine.Told, error) {
	l := s.of(cluster)
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &api.StorageCluster{ObjectMeta: objectMeta(cluster)}
	if err := s.load(ctx, l, c); err != nil {
		return nil, err
	}
	return maps.Clone(l.told), s.flush(ctx, c, l, trimTimeout)
}

// readRecord reads the record and its base. The caller holds l.mu.
func (s *Logs) readRecord(ctx context.Context, l *clusterLog, cluster types.NamespacedName) error {
	l.told, l.record = engine.Told{}, record{}
	var err error
	if l.baseVersion, err = s.getJSON(ctx, baseName(cluster), &l.told); err != nil {
		return err
	}
	if l.recordVersion, err = s.getJSON(ctx, recordName(cluster), &l.record); err != nil {
		return err
	}
	l.told.Apply(l.record.Changes)
	return nil
}

// accept records events and what they tell, after those that are accepted and not written yet. The
// caller holds l.mu.
func (s *Logs) accept(
	ctx context.Context, l *clusterLog, cluster *api.StorageCluster, events []engine.Event, told map[string]*string,
) error {
	name, labels := client.ObjectKeyFromObject(cluster), engine.LabelsFor(cluster, componentRecord)
	next := record{Sequence: l.last(), Events: slices.Concat(l.pending, events), Changes: maps.Clone(l.record.Changes)}
	if next.Changes == nil {
		next.Changes = map[string]*string{}
	}
	maps.Copy(next.Changes, told)
	if len(next.Changes) > foldAt {
		// What is in the base and in the record, too, does no harm, so the two need not be written
		// at once.
		if err := s.putRecord(ctx, l, baseName(name), labels, &l.baseVersion, l.told); err != nil {
			return err
		}
		next.Changes = told
	}
	if err := s.putRecord(ctx, l, recordName(name), labels, &l.recordVersion, next); err != nil {
		return err
	}
	l.record, l.pending = next, slices.Clone(next.Events)
	l.told.Apply(told)
	return nil
}

// finishRecord writes those events of the record that are missing in have, the log sorted by
// number, under the numbers that they were given. What cannot have its number, because another
// writer took it, is appended later.
func (s *Logs) finishRecord(ctx context.Context, l *clusterLog, cluster *api.StorageCluster,
	have []api.ClusterEvent,
) ([]api.ClusterEvent, error) {
	l.pending = nil
	var missing []*api.ClusterEvent
	for i, e := range l.record.Events {
		want := engine.EventFor(cluster, l.record.Sequence+1+int64(i), e)
		at, found := slices.BinarySearchFunc(have, want.Sequence, func(e api.ClusterEvent,
			n int64,
		) int {
			return int(e.Sequence - n)
		})
		trimmed := at == 0 && len(have) >= api.MaxClusterEvents
		switch {
		case found && sameEvent(&have[at], want), trimmed:
		case found:
			if !slices.ContainsFunc(have[at:], func(later api.ClusterEvent) bool { return sameEvent(&later, want) }) {
				l.pending = append(l.pending, e)
			}
		default:
			missing = append(missing, want)
		}
	}
	if err := s.appendAll(ctx, missing); err != nil {
		return nil, err
	}
	for _, e := range missing {
		have = append(have, *e)
	}
	slices.SortFunc(have, func(a, b api.ClusterEvent) int { return int(a.Sequence - b.Sequence) })
	return have, nil
}

// appendAll writes events that have their numbers, side by side. What fails is done again by the
// caller that tries again.
func (s *Logs) appendAll(ctx context.Context, events []*api.ClusterEvent) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelEvents)
	for _, e := range events {
		group.Go(func() error {
			if err := s.appendOne(ctx, e); err != nil {
				return fmt.Errorf("while writing event %d: %w", e.Sequence, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func sameEvent(a, b *api.ClusterEvent) bool {
	return a.Code == b.Code && a.Object == b.Object && a.Message == b.Message && slices.Equal(a.Objects, b.Objects)
}

// getJSON returns the resourceVersion of what it read. It is empty when there is nothing.
func (s *Logs) getJSON(ctx context.Context, name types.NamespacedName, into any) (version string, err error) {
	var o corev1.ConfigMap
	err = s.api.Get(ctx, name, &o)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("while reading %s: %w", name.Name, err)
	}
	unzip, err := gzip.NewReader(bytes.NewReader(o.BinaryData[recordKey]))
	if err != nil {
		return "", fmt.Errorf("while reading %s: %w", name.Name, err)
	}
	text, err := io.ReadAll(unzip)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return "", fmt.Errorf("while reading %s: %w", name.Name, err)
	}
	return o.ResourceVersion, nil
}

// putRecord writes a record in the place of the version that was read. When somebody else wrote it,
// or a write was done that seemed to fail, the next call reads all of the log again.
func (s *Logs) putRecord(
	ctx context.Context, l *clusterLog, name types.NamespacedName, labels map[string]string, version *string, value any,
) error {
	written, err := s.putJSON(ctx, name, labels, *version, value)
	switch {
	case err == nil:
		*version = written
		return nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		l.loaded = false
	}
	return fmt.Errorf("while writing %s: %w", name.Name, err)
}

// putJSON creates a ConfigMap, or writes it in the place of a version. It returns the version that
// it has then.
func (s *Logs) putJSON(
	ctx context.Context, name types.NamespacedName, labels map[string]string, version string, value any,
) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	// Writing to a buffer does not fail.
	_, _ = zip.Write(text)
	_ = zip.Close()
	o := &corev1.ConfigMap{ObjectMeta: objectMeta(name), BinaryData: map[string][]byte{recordKey: zipped.Bytes()}}
	o.Labels = labels
	if version == "" {
		err = s.api.Create(ctx, o)
	} else {
		o.ResourceVersion = version
		err = s.api.Update(ctx, o)
	}
	return o.ResourceVersion, err
}

func (s *Logs) dropRecord(ctx context.Context, cluster types.NamespacedName) error {
	for _, name := range []types.NamespacedName{recordName(cluster), baseName(cluster)} {
		if err := s.api.Delete(ctx, &corev1.ConfigMap{ObjectMeta: objectMeta(name)}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("while removing %s: %w", name.Name, err)
		}
	}
	return nil
}
