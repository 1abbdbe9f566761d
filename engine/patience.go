package engine

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// offlinePatience is how long a resource that was served is out of reach before its status says Offline. The placement groups of a Ceph
// pool peer for a second or two after each restart of an OSD, in which clients wait and nothing fails.
const offlinePatience = 10 * time.Second

// outages are since when resources that were served are seen out of reach, by their names in decisions. A new leader has none, and begins
// anew.
type outages map[string]time.Time

// patient keeps what is told of each resource that has been out of reach for less than offlinePatience as it was, and has the plan looked
// at again when that is over. What the storage system lost is told at once.
func (o outages) patient(v *View, p *Plan, now time.Time) {
	for _, was := range v.Resources {
		object, next := ResourceObject(was), p.Planned(was)
		if !outOfReach(was, next) {
			delete(o, object)
			continue
		}
		if _, seen := o[object]; !seen {
			o[object] = now
		}
		left := offlinePatience - now.Sub(o[object])
		if left <= 0 {
			continue
		}
		is, had := next.Common(), was.Common()
		is.State, is.Reason, is.Message, is.Next = had.State, had.Reason, had.Message, had.Next
		p.Recheck = cmp.Or(min(p.Recheck, left), left)
	}
	for object := range o {
		if v.resource(object) == nil {
			delete(o, object)
		}
	}
}

// outOfReach says whether a plan tells for the first time that a resource cannot be used which could be.
func outOfReach(was, next api.Resource) bool {
	before := was.Common().State
	if was.Common().ObservedGeneration != next.Common().ObservedGeneration || next.Common().Reason.NeedsPerson() {
		return false // the state under an earlier spec says nothing of this one; what waits for a person does not pass
	}
	return next.Common().State == api.ResourceOffline && (before == api.ResourceOnline || before == api.ResourceDegraded) &&
		!meta.IsStatusConditionPresentAndEqual(next.Common().Conditions, api.ResourcePresent, metav1.ConditionFalse)
}
