package storetest

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/engine"
)

func (b *bench) wantTold(want engine.Told) {
	b.Helper()
	have, err := b.Store.Told(b.ctx, b.key)
	b.must(err)
	if diff := cmp.Diff(want, have); diff != "" {
		b.Errorf("told (-want +have):\n%s", diff)
	}
}

// testTold: what is told is recorded with the events, entry by entry, and belongs to one cluster alone.
func testTold(b *bench) {
	b.wantTold(engine.Told{})
	record := func(events []engine.Event, told map[string]*string) {
		b.Helper()
		n, err := b.Store.Emit(b.ctx, b.cluster, events, told)
		b.must(err)
		if n != len(events) {
			b.Errorf("%d of %d events were accepted", n, len(events))
		}
	}
	record(nil, map[string]*string{"a": new("1"), "b": new("\t2\n")})
	b.wantTold(engine.Told{"a": "1", "b": "\t2\n"})
	event := engine.Event{Code: engine.DaemonNew, Object: "daemon/1", Message: "m", Time: time.Now()}
	record([]engine.Event{event}, map[string]*string{"a": nil, "c": new("")})
	b.wantTold(engine.Told{"b": "\t2\n", "c": ""})
	if events := b.log(); len(events) != 1 {
		b.Errorf("%d events", len(events))
	}
	many, want := map[string]*string{}, engine.Told{"b": "\t2\n", "c": ""}
	for i := range 1000 {
		many[fmt.Sprint(i)], want[fmt.Sprint(i)] = new("x"), "x"
	}
	record(nil, many)
	record(nil, map[string]*string{"7": new("y"), "8": nil})
	want["7"] = "y"
	delete(want, "8")
	b.wantTold(want)
}
