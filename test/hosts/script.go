package hosts

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Script runs f in a program that is no test. What f logs goes to w; Fatalf ends f; what was registered with Cleanup runs
// at the end, the last one first. The error holds what Errorf and Fatalf were told. Fatalf must be called on f's own
// goroutine, as in a test.
func Script(w io.Writer, f func(t T)) error {
	s := &script{w: w}
	s.run(func() { f(s) })
	for {
		s.mu.Lock()
		n := len(s.cleanups)
		if n == 0 {
			s.mu.Unlock()
			break
		}
		last := s.cleanups[n-1]
		s.cleanups = s.cleanups[:n-1]
		s.mu.Unlock()
		s.run(last)
	}
	return s.err
}

type script struct {
	w io.Writer

	mu       sync.Mutex
	err      error
	cleanups []func()
}

// stop is what Fatalf panics with.
type stop struct{}

func (s *script) run(f func()) {
	defer func() {
		if r := recover(); r != nil && r != any(stop{}) {
			panic(r)
		}
	}()
	f()
}

func (s *script) Helper() {}

func (s *script) Logf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.w, strings.TrimRight(fmt.Sprintf(format, args...), "\n"))
}

func (s *script) Errorf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = errors.Join(s.err, fmt.Errorf(format, args...))
}

func (s *script) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	panic(stop{})
}

func (s *script) Failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}

func (s *script) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}
