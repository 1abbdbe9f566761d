package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/engine"
)

// testAsk: the agent of a daemon's host gets a command as it was asked, and what it says of it comes back. A command that was
// carried out is asked for anew. Nobody is told of it, and no view has it.
func testAsk(b *bench) {
	b.must(b.World.Create(b.ctx, b.newHost("h1")))
	b.must(b.Store.PutDaemon(b.ctx, b.cluster, b.change("a", "Running")))
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	want := engine.Command{
		Verb: "volume create", Object: "volume/v1", Daemon: b.name + "-a",
		Params: map[string]string{"bricks": strings.Repeat("10.0.0.1:/srv/bricks/v1/brick ", 300), "replica": "3"},
	}
	var carried atomic.Int32
	b.must(b.World.Serve(ctx, b.name+"-h1", func(daemon string, cmd engine.Command) (string, error) {
		n := carried.Add(1)
		if diff := cmp.Diff(want.Params, cmd.Params); daemon != want.Daemon || cmd.Verb != want.Verb || cmd.Object != want.Object || diff != "" {
			return "", fmt.Errorf("daemon %s was asked for %q of %s, %s", daemon, cmd.Verb, cmd.Object, diff)
		}
		if n == 2 {
			return "", errors.New("another transaction is in progress")
		}
		return fmt.Sprintf("made, as number %d", n), nil
	}))
	var told atomic.Int32
	b.Store.Notify(ctx, func(c engine.Change) {
		if c.Kind == engine.KindAction && c.Cluster == b.key {
			told.Add(1)
		}
	})
	d := b.daemon("a")
	for n, wanted := range []string{"made, as number 1", "another transaction is in progress", "made, as number 3"} {
		message, err := b.Store.Ask(b.ctx, d, want)
		switch {
		case n == 1 && (err == nil || !strings.Contains(err.Error(), wanted)), n != 1 && (err != nil || message != wanted):
			b.Errorf("the agent says %q, %v; want %q", message, err, wanted)
		}
	}
	if n := len(b.ownActions()); n != 0 || told.Load() != 0 {
		b.Errorf("the view has %d actions, and the cluster was told %d times", n, told.Load())
	}
}

// testAskNobody: a command that no agent carries out ends with its deadline.
func testAskNobody(b *bench) {
	b.must(b.World.Create(b.ctx, b.newHost("h1")))
	b.must(b.World.Create(b.ctx, b.newHost("h2")))
	b.must(b.Store.PutDaemon(b.ctx, b.cluster, b.change("a", "Running")))
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	b.must(b.World.Serve(ctx, b.name+"-h2", func(string, engine.Command) (string, error) {
		return "", errors.New("the agent of another host was asked")
	}))
	short, end := context.WithTimeout(b.ctx, 500*time.Millisecond)
	defer end()
	_, err := b.Store.Ask(short, b.daemon("a"), engine.Command{Verb: "x", Object: "y", Daemon: b.name + "-a"})
	if err == nil || short.Err() == nil || strings.Contains(err.Error(), "another host") {
		b.Errorf("got %v before the deadline, want an error with it", err)
	}
}

// testReports: what an agent reports of a daemon wakes the cluster and is in its view; a View that is made after a command has what
// the agent reported when it had carried the command out.
func testReports(b *bench) {
	b.must(b.World.Create(b.ctx, b.newHost("h1")))
	b.must(b.Store.PutDaemon(b.ctx, b.cluster, b.change("a", "Running")))
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	var told atomic.Int32
	b.Store.Notify(ctx, func(c engine.Change) {
		if c.Kind == engine.KindDaemon && c.Cluster == b.key && c.Object == "daemon/"+b.name+"-a" {
			told.Add(1)
		}
	})
	report := func(text string) error {
		d := b.daemon("a")
		d.Status.Report = text
		return b.World.UpdateStatus(b.ctx, d)
	}
	b.eventually("the daemon is seen", func() bool { return len(b.view().Daemons) == 1 })
	before := told.Load()
	b.must(report("peers: 3"))
	b.eventually("the report is told", func() bool { return told.Load() > before })
	b.eventually("the report is seen", func() bool { return b.view().Daemons[0].Status.Report == "peers: 3" })
	b.must(b.World.Serve(ctx, b.name+"-h1", func(_ string, cmd engine.Command) (string, error) { return "", report(cmd.Object) }))
	for i := range 10 {
		object := fmt.Sprint("state ", i)
		_, err := b.Store.Ask(b.ctx, b.daemon("a"), engine.Command{Verb: "set", Object: object, Daemon: b.name + "-a"})
		b.must(err)
		if got := b.view().Daemons[0].Status.Report; got != object {
			b.Errorf("after the command the view says %q, want %q", got, object)
		}
	}
}
