package agent

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/backoff"
)

const (
	// againMax bounds the pause before a status is written again that somebody else wrote.
	againMax = time.Minute
	// calm is how long nobody else has to write a status until the pauses begin with the shortest
	// again. An agent that writes over this one pauses for againMax.
	calm = 3 * againMax
)

// told remembers what was written of each daemon: the watch brings it back only later.
type told struct {
	clock atomicString
	// locks have one goroutine at a time tell of a daemon.
	locks sync.Map // types.NamespacedName -> *sync.Mutex

	// mu is held for a moment only: the watch waits for no write.
	mu    sync.Mutex
	byKey map[types.NamespacedName]*tellings
}

type tellings struct {
	uid    types.UID
	status api.DaemonStatus
	// there is what the server has, which is status until somebody else writes it. version is the
	// resource version of that.
	there   api.DaemonStatus
	version string
	// service is what the leader wrote last: it is none of the agent's.
	service *api.DaemonService
	// writing is set while a write is under way, to the version that it is made on. What the watch
	// brings then may be that write.
	writing string
	// again counts how often the status was to be written again, and due is when, the last time.
	// pending is set until then.
	again   int
	due     time.Time
	pending bool
}

// learn notes what the server has, unless something newer is known.
func (w *tellings) learn(there api.DaemonStatus, version string) {
	if newer, err := resourceversion.CompareResourceVersion(version, w.version); err == nil && newer > 0 {
		w.there, w.service, w.version = own(there), there.Service, version
	}
}

// own is a status without what the leader alone writes.
func own(s api.DaemonStatus) api.DaemonStatus {
	s.Service = nil
	return s
}

// overwritten says whether the server has another status than was told, and no write is under way
// that may change that.
func (w *tellings) overwritten() bool {
	return w.writing == "" && !equality.Semantic.DeepEqual(w.there, w.status)
}

// last is the status of a daemon that was told last.
func (t *told) last(d *api.Daemon) api.DaemonStatus { return t.of(d).status }

// of is what was told of a daemon. Before anything was, it is what the server has.
func (t *told) of(d *api.Daemon) tellings {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.known(d); w != nil {
		return *w
	}
	return begun(d)
}

// begun is what is known of a daemon before the agent has written its status.
func begun(d *api.Daemon) tellings {
	there := own(d.Status)
	return tellings{uid: d.UID, status: there, there: there, service: d.Status.Service, version: d.ResourceVersion}
}

// known is what was told of a daemon; nil where nothing was. The caller holds mu.
func (t *told) known(d *api.Daemon) *tellings {
	if w := t.byKey[client.ObjectKeyFromObject(d)]; w != nil && w.uid == d.UID {
		return w
	}
	return nil
}

// seen notes what the watch brought, and says whether somebody else wrote the status after it was
// told, and whether the leader says something else of the daemon.
func (t *told) seen(d *api.Daemon) (overwritten, said bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.known(d)
	if w == nil {
		return false, false
	}
	was := w.service
	w.learn(d.Status, d.ResourceVersion)
	return w.overwritten(), !equality.Semantic.DeepEqual(was, w.service)
}

// open is what was told of a daemon, with what d has of newer things. It is remembered from now on.
func (t *told) open(d *api.Daemon) tellings {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.known(d)
	if w == nil {
		w = new(begun(d))
		if t.byKey == nil {
			t.byKey = map[types.NamespacedName]*tellings{}
		}
		t.byKey[client.ObjectKeyFromObject(d)] = w
	}
	w.learn(d.Status, d.ResourceVersion)
	return *w
}

// begin notes that a status is about to be written, and returns what it is written over. There is
// nothing to write where that is the same.
func (t *told) begin(d *api.Daemon, status api.DaemonStatus) (have api.DaemonStatus, write bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.known(d)
	if w == nil {
		return have, false // it is gone
	}
	w.pending = false
	if equality.Semantic.DeepEqual(w.there, status) {
		w.status = status
		return have, false
	}
	w.writing = w.version
	return w.there, true
}

// end notes the outcome of a write, and says whether somebody else has written, too: the watch may
// have brought that before the answer came, or the answer has it. answer is nil where none came.
func (t *told) end(d *api.Daemon, status api.DaemonStatus, answer *api.Daemon) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.known(d)
	if w == nil {
		return false // it is gone
	}
	before := w.writing
	w.writing = ""
	if answer != nil {
		w.status = status
		if answer.ResourceVersion == before && w.version == before {
			w.there = status // the server is of an earlier version and drops a field: to write it again changes nothing
		}
		w.learn(answer.Status, answer.ResourceVersion)
	}
	return w.overwritten()
}

// forget has nothing known of a daemon.
func (t *told) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byKey, key)
}

// lock has one goroutine at a time tell of a daemon.
func (t *told) lock(key types.NamespacedName) (unlock func()) {
	v, _ := t.locks.LoadOrStore(key, &sync.Mutex{})
	mu := v.(*sync.Mutex)
	mu.Lock()
	return mu.Unlock
}

// pause is how long to wait before the status of a daemon is written again that somebody else
// wrote. It grows: an agent of the same name on another machine writes again, too.
func (t *told) pause(d *api.Daemon, now time.Time, most time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.known(d)
	if w == nil {
		return 0
	}
	if !w.pending {
		if now.Sub(w.due) > calm {
			w.again = 0
		}
		w.again++
		w.due = now.Add(min(backoff.Pause(client.ObjectKeyFromObject(d).String(), w.again), most))
		w.pending = true
	}
	return w.due.Sub(now)
}
