package twins

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/internal/instance"
)

// A host that writes ever new instances has the leader remember a few.
func TestSightings_bounded(t *testing.T) {
	var s Sightings
	for range 100 {
		i, err := instance.New("")
		if err != nil {
			t.Fatal(err)
		}
		s = s.Add(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{instance.Annotation: i.String()},
		}}, time.Now())
	}
	if len(s) > most {
		t.Errorf("%d are remembered", len(s))
	}
}
