package images

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// silent is a client whose OSDs do not answer. It counts what it is asked.
type silent struct{ asked int }

func (s *silent) RBD(ctx context.Context, _ any) ([]byte, error) {
	s.asked++
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestOf_silent: the OSDs are waited for once for all pools, and not asked where placement groups
// are inactive.
func TestOf_silent(t *testing.T) {
	var pools []*api.Pool
	for id := range int64(4) {
		now := metav1.Now()
		pools = append(pools, &api.Pool{
			ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}, Spec: api.PoolSpec{DeletionPolicy: api.DeletionWipe},
			Status: api.PoolStatus{ID: id + 1},
		})
	}
	for active, most := range map[bool]int{true: 1, false: 0} {
		client := &silent{}
		held := Of(t.Context(), client, pools, active)
		if client.asked != most {
			t.Errorf("active %v: the OSDs are asked %d times, not %d", active, client.asked, most)
		}
		for id := int64(1); id <= 4; id++ {
			if !held[id].Unknown {
				t.Errorf("active %v: of pool %d is held %+v", active, id, held[id])
			}
		}
	}
}
