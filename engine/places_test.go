package engine

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func hostSet(hosts ...string) map[string]bool {
	set := map[string]bool{}
	for _, h := range hosts {
		set[h] = true
	}
	return set
}

func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Places
		give, err := p.take(t.Context(), hostSet("h1", "h2"))
		if err != nil {
			t.Fatal(err)
		}
		if other, err := p.take(t.Context(), hostSet("h3")); err != nil {
			t.Errorf("other hosts cannot be had: %v", err)
		} else {
			other()
		}
		got := make(chan error, 1)
		go func() {
			give, err := p.take(t.Context(), hostSet("h2", "h4"))
			if err == nil {
				defer give()
			}
			got <- err
		}()
		synctest.Wait()
		if len(got) != 0 {
			t.Error("h2 was given to two")
		}
		give()
		give()
		if err := <-got; err != nil {
			t.Errorf("after it was given back: %v", err)
		}
	})
}

// TestPlaces_waitsAreBounded: who waits for hosts ends with its context (leadership was lost), and in any case after a while.
func TestPlaces_waitsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Places
		give, err := p.take(t.Context(), hostSet("h1"))
		if err != nil {
			t.Fatal(err)
		}
		defer give()
		started := time.Now()
		if _, err := p.take(t.Context(), hostSet("h1")); err == nil || !strings.Contains(err.Error(), "h1") || time.Since(started) != placeTimeout {
			t.Errorf("after %s: %v", time.Since(started), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.take(ctx, hostSet("h1")); err == nil || time.Since(started) != placeTimeout+time.Second {
			t.Errorf("the context's end: after %s: %v", time.Since(started), err)
		}
	})
}
