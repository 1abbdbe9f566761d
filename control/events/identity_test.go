package events

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// objects stand in for the API: each has the UID "u", found after some time.
type objects struct {
	metadata.ResourceInterface
	takes time.Duration
	asked int
}

func (o *objects) Resource(schema.GroupVersionResource) metadata.Getter { return o }
func (o *objects) Namespace(string) metadata.ResourceInterface          { return o }
func (o *objects) Get(
	ctx context.Context, _ string, _ metav1.GetOptions, _ ...string,
) (*metav1.PartialObjectMetadata, error) {
	o.asked++
	select {
	case <-time.After(o.takes):
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u"}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestIdentify_bounds: the events of one request have their objects looked up a bounded number of
// times, and for a bounded time. The rest have no UID, and who selects by UID is told so.
func TestIdentify_bounds(t *testing.T) {
	for name, tt := range map[string]struct {
		takes, most  time.Duration
		asked, found int
		is           func(error) bool
	}{
		"many objects":   {0, 0, lookups, lookups, apierrors.IsBadRequest},
		"a slow server":  {1500 * time.Millisecond, allLookups, 7, 6, apierrors.IsTimeout},
		"a server hangs": {time.Hour, allLookups, 2, 0, apierrors.IsTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &objects{takes: tt.takes}
				v, known, began := &View{objects: api}, newIdentities(), time.Now()
				if err := known.incomplete(); err != nil {
					t.Errorf("before: %v", err)
				}
				for i := range 2 * lookups {
					e := &corev1.Event{LastTimestamp: metav1.NewTime(began)}
					e.InvolvedObject = corev1.ObjectReference{APIVersion: "v1", Kind: "Pool", Name: fmt.Sprint(i)}
					v.identify(t.Context(), known, e)
					if found := e.InvolvedObject.UID == "u"; found != (i < tt.found) {
						t.Fatalf("event %d has the UID %q", i, e.InvolvedObject.UID)
					}
				}
				if took := time.Since(began); api.asked != tt.asked || took != tt.most {
					t.Errorf("%d objects were looked up in %s", api.asked, took)
				}
				if err := known.incomplete(); !tt.is(err) {
					t.Errorf("who selects by UID gets %v", err)
				}
			})
		})
	}
}
