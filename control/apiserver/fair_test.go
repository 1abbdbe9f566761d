package apiserver

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// TestFairTurns: who asks for much waits for itself, and nobody else for him.
func TestFairTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFair(1, 100)
		f.enter(t.Context(), "first", ignore)
		var mu sync.Mutex
		var order []string
		var all sync.WaitGroup
		for _, name := range []string{"greedy", "greedy", "greedy", "greedy", "modest", "shy"} {
			all.Go(func() {
				if !f.enter(t.Context(), name, ignore) {
					t.Errorf("%s was refused", name)
					return
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				f.leave()
			})
			synctest.Wait()
		}
		f.leave()
		all.Wait()
		if want := []string{"greedy", "modest", "shy", "greedy", "greedy", "greedy"}; !slices.Equal(order, want) {
			t.Errorf("the turns are %v, want %v", order, want)
		}
	})
}

// TestFairBound: when too many wait the next is refused, and one that gives up makes room.
func TestFairBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFair(1, 1)
		f.enter(t.Context(), "a", ignore)
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan bool)
		go func() { gaveUp <- !f.enter(ctx, "b", ignore) }()
		synctest.Wait()
		if f.enter(t.Context(), "c", ignore) {
			t.Error("more wait than may")
		}
		cancel()
		if !<-gaveUp {
			t.Error("who gave up was let in")
		}
		go func() { gaveUp <- !f.enter(t.Context(), "d", ignore) }()
		synctest.Wait()
		f.leave()
		if <-gaveUp {
			t.Error("there was room, and d was refused")
		}
	})
}

// TestFairRoom: who has many waiting gives up the last of them for whoever has fewer, and for nobody who has as many.
func TestFairRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFair(1, 4)
		f.enter(t.Context(), "first", ignore)
		var mu sync.Mutex
		answers := map[string][]bool{}
		var all sync.WaitGroup
		for _, name := range []string{"greedy", "greedy", "greedy", "greedy", "greedy", "modest", "modest", "modest"} {
			all.Go(func() {
				had := f.enter(t.Context(), name, ignore)
				mu.Lock()
				answers[name] = append(answers[name], had)
				mu.Unlock()
				if had {
					f.leave()
				}
			})
			synctest.Wait()
		}
		f.leave()
		all.Wait()
		had := func(name string) (n int) {
			for _, yes := range answers[name] {
				if yes {
					n++
				}
			}
			return n
		}
		if had("greedy") != 2 || had("modest") != 2 {
			t.Errorf("the answers are %v", answers)
		}
		if f.free != 1 || f.waiting != 0 || len(f.lines) != 0 || len(f.next) != 0 {
			t.Errorf("in the end: %+v", f)
		}
	})
}

// TestFairKeepsCount: whatever comes, goes and gives up, no more are inside than may, and in the end all places are free.
func TestFairKeepsCount(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		seats := rapid.IntRange(1, 3).Draw(r, "seats")
		f := newFair(seats, 4)
		var all sync.WaitGroup
		var mu sync.Mutex
		inside, most := 0, 0
		for range rapid.IntRange(1, 30).Draw(r, "callers") {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "name")
			ctx, cancel := context.WithCancel(t.Context())
			if rapid.Bool().Draw(r, "gives up") {
				go cancel()
			}
			all.Go(func() {
				defer cancel()
				if !f.enter(ctx, name, ignore) {
					return
				}
				mu.Lock()
				inside++
				most = max(most, inside)
				mu.Unlock()
				mu.Lock()
				inside--
				mu.Unlock()
				f.leave()
			})
		}
		all.Wait()
		if most > seats || f.free != seats || f.waiting != 0 || len(f.lines) != 0 || len(f.next) != 0 {
			r.Fatalf("%d were inside of %d seats; in the end: %+v", most, seats, f)
		}
	})
}

func ignore(bool) {}
