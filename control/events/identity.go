package events

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// lookup bounds how long the object of one Event is looked for.
const lookup = 5 * time.Second

// identities are those of objects that were looked up for one request.
type identities map[corev1.ObjectReference]identity

// identity is that of an object; zero where there is none.
type identity struct {
	uid     types.UID
	created metav1.Time
}

// identify gives an Event the UID of its object, which a ClusterEvent does not have. An object that was created
// later is another one of the name. One that is gone has none, and so do those of a lookup that fails: the
// Event is shown all the same, to those who do not ask for a UID.
func (v *View) identify(ctx context.Context, known identities, e *corev1.Event) {
	ref := e.InvolvedObject
	ref.FieldPath = ""
	found, ok := known[ref]
	if !ok {
		found = v.look(ctx, &ref)
		known[ref] = found
	}
	if !found.created.After(e.LastTimestamp.Time) {
		e.InvolvedObject.UID = found.uid
	}
}

func (v *View) look(ctx context.Context, ref *corev1.ObjectReference) identity {
	ctx, cancel := context.WithTimeout(ctx, lookup)
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
