// Package figures decides which figures of a storage system are worth a write to its StorageStatus:
// they change all the time, and a status that is written every second costs each server, each watch
// and each backup. It is pure.
package figures

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// pause is how long what is published stays at least, but for the begin and the end of a recovery.
const pause = 10 * time.Second

// Source is a driver of a storage system that says at any moment what it holds and does.
type Source interface {
	// Figures asks the storage system; nil where the driver has no connection to the cluster.
	Figures(ctx context.Context, namespace, name string) (*api.StorageFigures, error)
}

// Settle gives a status the figures that it is written with; see Publish. had is the one that there
// is, or nil. Figures without a time are those of now.
func Settle(had *api.StorageStatus, s *api.StorageStatusStatus, now time.Time) {
	if s.Figures != nil && s.Figures.Time.IsZero() {
		s.Figures = s.Figures.DeepCopy()
		s.Figures.Time = metav1.Time{Time: now.Truncate(time.Second)}
	}
	switch {
	case s.StaleSince != nil: // it has what was said last
	case had == nil:
		s.Figures = Publish(nil, s.Figures)
	default:
		s.Figures = Publish(had.Status.Figures, s.Figures)
	}
}

// Publish is what the StorageStatus has next: the figures that it had, unless those of now differ
// in what matters. What clients do at the moment is never published.
func Publish(had, now *api.StorageFigures) *api.StorageFigures {
	if now == nil {
		return nil
	}
	fresh := now.DeepCopy()
	fresh.ClientIO, fresh.PlacementGroups = nil, withoutScrubs(now.PlacementGroups)
	if had == nil || had.RawBytes != fresh.RawBytes || (had.Recovery == nil) != (fresh.Recovery == nil) {
		return fresh
	}
	past := fresh.Time.Sub(had.Time.Time) // negative where a clock was set back, or another server leads
	if past >= 0 && past < pause || same(had, fresh) {
		return had
	}
	return fresh
}

func same(a, b *api.StorageFigures) bool {
	hundredth, objects := a.RawBytes/100, a.Objects/20
	return near(a.UsedBytes, b.UsedBytes, hundredth) && near(a.AvailableBytes, b.AvailableBytes, hundredth) &&
		near(a.DataBytes, b.DataBytes, hundredth) && near(a.Objects, b.Objects, objects) &&
		slices.Equal(a.PlacementGroups, b.PlacementGroups) && sameRecovery(a.Recovery, b.Recovery)
}

func near(a, b, most int64) bool { return a-b <= most && b-a <= most }

// sameRecovery says whether nothing was copied and nothing was added.
func sameRecovery(a, b *api.RecoveryFigures) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// withoutScrubs counts placement groups that are read to check them as those that are not.
func withoutScrubs(groups []api.PlacementGroupCount) (all []api.PlacementGroupCount) {
	for _, g := range groups {
		words := slices.DeleteFunc(strings.Split(g.State, "+"), func(word string) bool {
			return word == "scrubbing" || word == "deep"
		})
		state := strings.Join(words, "+")
		i := slices.IndexFunc(all, func(x api.PlacementGroupCount) bool { return x.State == state })
		if i < 0 {
			all = append(all, api.PlacementGroupCount{State: state, Count: g.Count})
			continue
		}
		all[i].Count += g.Count
	}
	slices.SortFunc(all, func(a, b api.PlacementGroupCount) int {
		if a.Count != b.Count {
			return int(b.Count - a.Count)
		}
		return strings.Compare(a.State, b.State)
	})
	return all
}

// Of are the figures of a storage system that says how much space it has and uses, without a time:
// plans do not depend on it. They are nil where it has none.
func Of(raw, used int64) *api.StorageFigures {
	if raw <= 0 {
		return nil
	}
	return &api.StorageFigures{
		RawBytes: raw, UsedBytes: used, AvailableBytes: raw - used,
		UsedPercent: int32(math.Round(100 * float64(used) / float64(raw))),
	}
}

// Capacity is the raw space as a StorageStatus has it.
func Capacity(f *api.StorageFigures) *resource.Quantity {
	if f == nil {
		return nil
	}
	return resource.NewQuantity(f.RawBytes, resource.BinarySI)
}
