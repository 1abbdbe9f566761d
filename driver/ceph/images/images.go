// Package images says which block images a pool holds, for users who are about to delete the pool.
package images

import (
	"context"
	"fmt"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados/rbd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// patience is how long the OSDs are waited for: a plan is made without them, too.
const patience = time.Second

// Of asks which images the pools hold that are deleted with their data, by the pools' numbers.
// Where the client cannot tell, or the OSDs do not answer, the pool is missing.
func Of(ctx context.Context, client any, pools []*api.Pool) map[int64]rbd.Contents {
	asker, able := client.(rbd.Asker)
	held := map[int64]rbd.Contents{}
	for _, p := range pools {
		goes := p.DeletionTimestamp != nil && p.Spec.DeletionPolicy == api.DeletionWipe && p.Status.ID != 0
		if !able || !goes {
			continue
		}
		short, cancel := context.WithTimeout(ctx, patience)
		if c, err := rbd.In(asker, p.Status.ID).Contents(short); err == nil {
			held[p.Status.ID] = c
		}
		cancel()
	}
	return held
}

// Text says what is lost with a pool; empty where it holds no image.
func Text(c rbd.Contents) string {
	text := list("; it destroys ", c.Images, "RBD image", c.Names)
	if c.Images == 0 {
		return list("; it destroys ", c.Trashed, "RBD image", c.TrashedNames) + inTrash(c.Trashed, "")
	}
	return text + inTrash(c.Trashed, list(", and ", c.Trashed, "image", c.TrashedNames))
}

func inTrash(n int, text string) string {
	if n == 0 {
		return ""
	}
	return text + " in the trash"
}

// list counts images, and names the first of them.
func list(before string, n int, noun string, names []string) string {
	if n == 0 {
		return ""
	}
	more := ""
	if len(names) < n {
		more = fmt.Sprintf(" and %d more", n-len(names))
	}
	return before + words.Plural(n, noun) + " (" + strings.Join(names, ", ") + more + ")"
}
