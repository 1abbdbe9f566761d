// Package serving says which daemons do not serve although their processes run: by what the storage system says of
// them, and by how often their processes ended. It is pure.
package serving

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/ends"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Said is what a storage system says of daemons, by their names. Of those that serve it says nothing. It is nil where
// the storage system does not answer.
type Said map[string]*api.DaemonService

// Change is what the status of a daemon has from now on; nil for one that serves.
type Change struct {
	Name    string
	Service *api.DaemonService
}

// maxText is the bound of the texts of a DaemonService.
const maxText = 1024

// Changes are the daemons of which something else is said than their statuses have.
func Changes(daemons []api.Daemon, said Said, now time.Time) (all []Change) {
	for i := range daemons {
		d := &daemons[i]
		if next := of(d, said, now); !same(d.Status.Service, next) {
			all = append(all, Change{d.Name, next})
		}
	}
	return all
}

func same(a, b *api.DaemonService) bool {
	return a == b || a != nil && b != nil && a.State == b.State && a.Reason == b.Reason && a.Message == b.Message &&
		a.Next == b.Next && a.Since.Equal(&b.Since)
}

// Alone says whether two versions of a daemon differ in nothing but what is said of it.
func Alone(was, is *api.Daemon) bool {
	if same(was.Status.Service, is.Status.Service) {
		return false
	}
	next := is.DeepCopy()
	next.Status.Service = was.Status.Service
	next.ResourceVersion, next.ManagedFields = was.ResourceVersion, was.ManagedFields
	return equality.Semantic.DeepEqual(was, next)
}

// of is what is said of a daemon now. While the storage system does not answer, it is what it said last.
func of(d *api.Daemon, said Said, now time.Time) *api.DaemonService {
	is, was := said[d.Name], d.Status.Service
	switch _, keeps := ends.Keeps(d, now); {
	case keeps:
		is = keepsEnding(d, now)
	case d.Status.State != api.DaemonRunning || d.DeletionTimestamp != nil:
		return nil
	case said == nil && was != nil && was.Reason != api.ReasonKeepsEnding:
		return was
	case is == nil:
		return nil
	}
	next := *is
	next.Message, next.Next = words.Line(next.Message, maxText), words.Line(next.Next, maxText)
	next.Since = metav1.NewTime(now.Truncate(time.Second)) // as the API stores it
	if was != nil && was.State == next.State && was.Reason == next.Reason {
		next.Since = was.Since
	}
	return &next
}

// keepsEnding says of a daemon that its process ended often, and why it did the last time.
func keepsEnding(d *api.Daemon, now time.Time) *api.DaemonService {
	n, _ := ends.Keeps(d, now)
	text := fmt.Sprintf("its process ended %d times within %.0f minutes", n, ends.Window.Minutes())
	next := fmt.Sprintf("read the end of its log with 'holdfast logs %s'", d.Name)
	if e := d.Status.LastExit; e != nil {
		text += fmt.Sprintf("; the last time by %s%s", e.Reason, words.Colon(e.Message))
		next = cmp.Or(e.Next, next)
	}
	return &api.DaemonService{State: api.OutOfService, Reason: api.ReasonKeepsEnding, Message: text, Next: next}
}

// Worsen adds to the state of a cluster that daemons keep ending: at the moment when the
// driver looks, they run.
func Worsen(s *api.StorageStatusStatus, daemons []api.Daemon, now time.Time) {
	for i := range daemons {
		d := &daemons[i]
		if _, keeps := ends.Keeps(d, now); !keeps || d.Status.State != api.DaemonRunning {
			continue
		}
		text := fmt.Sprintf("daemon/%s on %s keeps ending: %s", d.Name, d.Spec.Host, keepsEnding(d, now).Message)
		if s.Status == api.StorageOnline {
			s.Status, s.Message = api.StorageDegraded, words.Cut(text, maxText)
		}
		if len(s.Reasons) < maxReasons {
			s.Reasons = append(s.Reasons, words.Cut(text, maxText))
		}
	}
}

// maxReasons is the bound of the reasons of a status.
const maxReasons = 64
