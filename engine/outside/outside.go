// Package outside records what was changed in a storage system itself, outside Holdfast. A driver decides on
// each such thing with the reason ChangedOutside: it is put back (Do), waits for a user (Wait), or stays
// (Skip). Statuses, the condition InSync and events are made from these decisions, for all drivers alike. It
// is pure.
package outside

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Bounds of the API's schema; maxCondition keeps a condition readable.
const (
	maxChanges   = 64
	maxObject    = 256
	maxMessage   = 1024
	maxCondition = 2048
)

// asDeclared is the reason of the condition InSync while it is True.
const asDeclared = "AsDeclared"

// Changes are the objects that decisions say were changed in the storage system, sorted, as far as a status
// has room. One that the last orchestration found, too, keeps the time at which it was found first.
func Changes(decisions []api.Decision, was []api.OutsideChange, now time.Time) (all []api.OutsideChange) {
	for _, d := range decisions {
		if d.Reason == api.ReasonChangedOutside {
			object, message := words.Cut(d.Object, maxObject), words.Cut(d.Message, maxMessage)
			since := cmp.Or(Since(was, object), metav1.Time{Time: now.Truncate(time.Second)})
			all = append(all, api.OutsideChange{Object: object, Message: message, Since: &since})
		}
	}
	byObject := func(a, b api.OutsideChange) int { return strings.Compare(a.Object, b.Object) }
	slices.SortStableFunc(all, byObject)
	all = slices.CompactFunc(all, func(a, b api.OutsideChange) bool { return byObject(a, b) == 0 })
	return all[:min(len(all), maxChanges)]
}

// Since is when an object was found changed first; zero where it is not among the changes.
func Since(changes []api.OutsideChange, object string) metav1.Time {
	for _, x := range changes {
		if x.Object == object && x.Since != nil {
			return *x.Since
		}
	}
	return metav1.Time{}
}

// Note writes the condition InSync of an object, by what decisions say of it. While the storage
// system does not answer, and of an object of which nothing was ever changed so, nothing is
// written.
func Note(
	conditions *[]metav1.Condition, generation int64, object string, decisions []api.Decision, answers bool, now time.Time,
) {
	c := metav1.Condition{
		Type: api.ClusterInSync, Status: metav1.ConditionTrue, Reason: asDeclared, ObservedGeneration: generation,
		LastTransitionTime: metav1.Time{Time: now.Truncate(time.Second)},
	}
	for _, d := range decisions {
		if d.Object == object && d.Reason == api.ReasonChangedOutside {
			c.Status, c.Reason = metav1.ConditionFalse, string(api.ReasonChangedOutside)
			c.Message = words.Cut(d.Message, maxMessage)
			break
		}
	}
	if c.Status == metav1.ConditionFalse || answers && meta.FindStatusCondition(*conditions, c.Type) != nil {
		meta.SetStatusCondition(conditions, c)
	}
}

// Conditions is the condition InSync. A cluster in which nothing was ever changed so has none.
func Conditions(was []metav1.Condition, changes []api.OutsideChange) []metav1.Condition {
	c := metav1.Condition{
		Type: api.ClusterInSync, Status: metav1.ConditionTrue, Reason: asDeclared,
		Message: "the storage system has everything as Holdfast set it",
	}
	if len(changes) == 0 {
		if meta.FindStatusCondition(was, api.ClusterInSync) == nil {
			return nil
		}
		return []metav1.Condition{c}
	}
	var said []string
	for _, x := range changes {
		said = append(said, x.Object+": "+x.Message)
	}
	c.Status, c.Reason = metav1.ConditionFalse, string(api.ReasonChangedOutside)
	c.Message = words.Cut(strings.Join(said, "; "), maxCondition)
	return []metav1.Condition{c}
}
