package events

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Bounds of the look-ups of one request: how long the object of one Event is looked for, how many
// objects are, and for how long in all.
const (
	lookup     = 5 * time.Second
	lookups    = 1000
	allLookups = 10 * time.Second
)

// identities are those of objects that were looked up for one request.
type identities struct {
	known map[corev1.ObjectReference]identity
	left  int
	until time.Time
	// cut is set when an object was not looked up because of a bound.
	cut bool
}

func newIdentities() *identities {
	return &identities{known: map[corev1.ObjectReference]identity{}, left: lookups, until: time.Now().Add(allLookups)}
}

// take says whether one more object may be looked up.
func (i *identities) take() bool {
	if i.left == 0 || !time.Now().Before(i.until) {
		i.cut = true
		return false
	}
	i.left--
	return true
}

// incomplete is the error of a request that selects by UID, and for which not all objects were
// looked up.
func (i *identities) incomplete() error {
	switch {
	case !i.cut:
		return nil
	case i.left == 0:
		return apierrors.NewBadRequest(fmt.Sprintf("cannot select by "+fieldUID+" alone: "+
			"the events are of more than %d objects; select involvedObject.kind and involvedObject.name, too", lookups))
	}
	return apierrors.NewTimeoutError(fmt.Sprintf("cannot select by "+fieldUID+": "+
		"the API server did not find the objects of all events within %s; retry", allLookups), 1)
}

// identity is that of an object; zero where there is none.
type identity struct {
	uid     types.UID
	created metav1.Time
}

// identify gives an Event the UID of its object, which a ClusterEvent does not have. An object that
// was created later is another one of the name. One that is gone has none, and so do those of a
// lookup that fails: the Event is shown all the same, to those who do not ask for a UID.
func (v *View) identify(ctx context.Context, known *identities, e *corev1.Event) {
	ref := e.InvolvedObject
	ref.FieldPath = ""
	found, ok := known.known[ref]
	if !ok {
		if !known.take() {
			return
		}
		found = v.look(ctx, &ref, known.until)
		known.known[ref] = found
	}
	if !found.created.After(e.LastTimestamp.Time) {
		e.InvolvedObject.UID = found.uid
	}
}

func (v *View) look(ctx context.Context, ref *corev1.ObjectReference, until time.Time) identity {
	ctx, cancel := context.WithTimeout(ctx, min(lookup, time.Until(until)))
	defer cancel()
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return identity{}
	}
	object, err := v.objects.Resource(gv.WithResource(strings.ToLower(ref.Kind)+"s")).Namespace(ref.Namespace).
		Get(ctx, ref.Name, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return identity{}
	}
	return identity{object.UID, object.CreationTimestamp}
}
