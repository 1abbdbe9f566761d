// Package ends counts how often the process of a daemon ended of itself of late: one that runs between its ends looks
// well at nearly every moment. It is pure.
package ends

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

const (
	// Window is how long an end counts, and many how often a daemon ends within it that keeps ending.
	Window = 10 * time.Minute
	many   = 4
	// most is how many ends a status has.
	most = 8
)

// Next are the ends of a daemon when its status becomes next. A daemon that is started anew has none.
func Next(have, next *api.DaemonStatus) []metav1.MicroTime {
	running := next.State == api.DaemonRunning
	if next.State == api.DaemonStopped || next.State == api.DaemonPrepared || running && next.Restarts == 0 {
		return nil
	}
	all, last := slices.Clone(have.Ends), time.Time{}
	switch {
	case len(all) > 0:
		last = all[len(all)-1].Time
	case have.LastExit != nil:
		last = have.LastExit.Time.Time
	}
	if next.LastExit == nil || next.Restarts == 0 {
		return all
	}
	at := next.LastExit.Time.Truncate(time.Microsecond) // as the API stores it
	if !at.After(last) {
		return all
	}
	all = slices.DeleteFunc(append(all, metav1.NewMicroTime(at)), func(t metav1.MicroTime) bool {
		return at.Sub(t.Time) >= Window
	})
	return all[max(0, len(all)-most):]
}

// Keeps says how often a daemon ended within Window, and whether that is so often that it does not do its work.
func Keeps(d *api.Daemon, now time.Time) (n int, keeps bool) {
	for _, at := range d.Status.Ends {
		if now.Sub(at.Time) < Window {
			n++
		}
	}
	return n, n >= many && d.DeletionTimestamp == nil && d.Spec.State == api.WantRunning
}
