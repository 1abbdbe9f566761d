package events

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/coreevent"
)

// following shows what a watch of ClusterEvents tells. It ends when nobody reads it any more:
// watch.Filter would wait for ever for somebody who does.
type following struct {
	from    watch.Interface
	results chan watch.Event
	stop    func()
	stopped <-chan struct{}
}

// follow shows those changes that show says, until the watch or ctx ends, or the result is stopped.
func follow(ctx context.Context, from watch.Interface, show func(watch.Event) (watch.Event, bool)) watch.Interface {
	ctx, cancel := context.WithCancel(ctx)
	f := &following{from: from, results: make(chan watch.Event), stopped: ctx.Done()}
	f.stop = sync.OnceFunc(func() { cancel(); from.Stop() })
	go f.run(show)
	return f
}

// ResultChan is where the changes come. It is closed at the end.
func (f *following) ResultChan() <-chan watch.Event { return f.results }

// Stop ends the watch.
func (f *following) Stop() { f.stop() }

func (f *following) run(show func(watch.Event) (watch.Event, bool)) {
	defer f.stop()
	defer close(f.results)
	for change := range f.from.ResultChan() {
		shown, ok := show(change)
		if !ok {
			continue
		}
		select {
		case f.results <- shown:
		case <-f.stopped:
			return
		}
	}
}

// show is what a change of a ClusterEvent is to those who watch Events.
func (v *View) show(ctx context.Context, selects selection, change watch.Event) (watch.Event, bool) {
	e, ok := change.Object.(*api.ClusterEvent)
	switch {
	case !ok: // an error
		return change, true
	case change.Type == watch.Bookmark:
		change.Object = &corev1.Event{ObjectMeta: e.ObjectMeta}
		return change, true
	}
	shown := coreevent.From(e)
	change.Object = shown
	return change, v.selected(ctx, newIdentities(), selects, shown)
}
