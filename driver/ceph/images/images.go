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

// patience is how long the OSDs are waited for, for all pools together: a plan is made without them,
// too, and the rest of the observation has the same deadline.
const patience = time.Second

// Of asks which images the pools hold that are deleted with their data, by the pools' numbers. Where
// the client cannot tell, the pool is missing. OSDs of inactive placement groups do not answer: then
// none is asked, as a question to them takes a thread of the client for half a minute.
func Of(ctx context.Context, client any, pools []*api.Pool, active bool) map[int64]rbd.Contents {
	asker, able := client.(rbd.Asker)
	held := map[int64]rbd.Contents{}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, p := range pools {
		goes := p.DeletionTimestamp != nil && p.Spec.DeletionPolicy == api.DeletionWipe && p.Status.ID != 0
		if !able || !goes {
			continue
		}
		c := rbd.Contents{Unknown: true}
		if active && ctx.Err() == nil {
			if known, err := rbd.In(asker, p.Status.ID).Contents(ctx); err == nil {
				c = known
			}
		}
		held[p.Status.ID] = c
	}
	return held
}

// Text says what is lost with a pool; empty where it holds no image.
func Text(c rbd.Contents) string {
	if c.Unknown {
		return "; whether it holds RBD images is not known"
	}
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
