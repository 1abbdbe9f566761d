package apiserver

import (
	"context"
	"slices"
	"sync"
)

// fair lets in so many at once, and has others wait for their turn. Whoever has more than one request waiting does not keep
// others waiting for them: after each of his it is the turn of everybody else who waits. Nor does he keep others from waiting. It is
// safe for concurrent use.
type fair struct {
	// most is how many may wait. When they do, whoever has the most requests waiting gives one up for a newcomer who has fewer.
	most int

	mu      sync.Mutex
	free    int
	waiting int
	// lines are who waits, by name, in their order; next are the names, the one whose turn it is first.
	lines map[string][]*ticket
	next  []string
}

// ticket is a place in a line. It is told once whether its turn has come, or its place was given to another one.
type ticket struct{ turn chan bool }

func newFair(seats, most int) *fair {
	return &fair{free: seats, most: most, lines: map[string][]*ticket{}}
}

// enter returns true when it is the caller's turn; he calls leave afterwards. It returns false when too many wait, or when ctx
// ends before.
func (f *fair) enter(ctx context.Context, name string, waits func(bool)) bool {
	f.mu.Lock()
	if f.free > 0 {
		f.free--
		f.mu.Unlock()
		return true
	}
	if f.waiting >= f.most && !f.makeRoom(name) {
		f.mu.Unlock()
		return false
	}
	t := f.line(name)
	f.mu.Unlock()
	waits(true)
	defer waits(false)
	select {
	case mine := <-t.turn:
		return mine
	case <-ctx.Done():
		return !f.quit(name, t) && <-t.turn
	}
}

// makeRoom refuses the last request of the longest line, unless that of name would be as long. The caller holds the mutex.
func (f *fair) makeRoom(name string) bool {
	longest := name
	for n, line := range f.lines {
		if len(line) > len(f.lines[longest]) {
			longest = n
		}
	}
	last := len(f.lines[longest]) - 1
	if last <= len(f.lines[name]) {
		return false
	}
	f.lines[longest][last].turn <- false
	f.drop(longest, last)
	return true
}

// line puts a ticket in line. The caller holds the mutex.
func (f *fair) line(name string) *ticket {
	t := &ticket{make(chan bool, 1)}
	if len(f.lines[name]) == 0 {
		f.next = append(f.next, name)
	}
	f.lines[name] = append(f.lines[name], t)
	f.waiting++
	return t
}

// quit takes a ticket out of its line; false when it was told of meanwhile.
func (f *fair) quit(name string, t *ticket) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.Index(f.lines[name], t)
	if at < 0 {
		return false
	}
	f.drop(name, at)
	if len(f.lines[name]) == 0 {
		delete(f.lines, name)
		f.next = slices.DeleteFunc(f.next, func(n string) bool { return n == name })
	}
	return true
}

// drop takes the ticket at a place out of a line. The caller holds the mutex.
func (f *fair) drop(name string, at int) {
	f.lines[name] = slices.Delete(f.lines[name], at, at+1)
	f.waiting--
}

// leave gives the place to whose turn it is.
func (f *fair) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.next) == 0 {
		f.free++
		return
	}
	name := f.next[0]
	f.next = f.next[1:]
	f.lines[name][0].turn <- true
	f.drop(name, 0)
	if len(f.lines[name]) > 0 {
		f.next = append(f.next, name)
	} else {
		delete(f.lines, name)
	}
}
