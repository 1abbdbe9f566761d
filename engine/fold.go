package engine

import (
	"fmt"
	"slices"

	"github.com/holdfast-storage/holdfast/internal/words"
)

const (
	// foldAbove is how many objects may change in the same way in one run until that is one event instead of one for each. A host with
	// ten disks is told disk by disk; of a rack nobody reads four lines for each disk, and they would push all else out of the log.
	foldAbove = 10
	// foldMost is how many objects one event names at most, by the API's schema.
	foldMost = 64
)

// alike is what events have in common that become one: nodes that are accepted are not told together with one that is refused.
type alike struct {
	code Code
	form string
}

// fold makes one event of many that are alike, in the place of the first of them. It names all their objects, and is of the
// cluster.
func fold(cluster string, events []Event) []Event {
	many := map[alike][]Event{}
	for _, e := range events {
		many[alike{e.Code, e.form}] = append(many[alike{e.Code, e.form}], e)
	}
	var told []Event
	for _, e := range events {
		key := alike{e.Code, e.form}
		switch same := many[key]; {
		case len(same) == 0: // they were told with the first of them
		case len(same) <= foldAbove:
			told = append(told, e)
		default:
			for part := range slices.Chunk(same, foldMost) {
				told = append(told, foldedEvent(cluster, part))
			}
			many[key] = nil
		}
	}
	return told
}

// foldedEvent tells of all that a part of the events tell of. What differs from one message to the next, such as the host, is of
// the first alone.
func foldedEvent(cluster string, part []Event) Event {
	first := part[0]
	if len(part) == 1 {
		return first
	}
	folded := Event{
		Code: first.Code, Object: "cluster/" + cluster, Time: first.Time,
		Message: words.Cut(fmt.Sprintf("%d at once; the first, %s: %s", len(part), first.Object, first.Message), maxDecisionMessage),
	}
	for _, e := range part {
		folded.Objects = append(folded.Objects, words.Cut(e.Object, maxDecisionObject))
	}
	return folded
}
