package main

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"time"
)

// stamped writes to standard error what a command says, with the seconds since its start.
type stamped struct {
	start time.Time
	quiet bool

	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *stamped) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.quiet {
		fmt.Fprintf(os.Stderr, "%7.2f %s", time.Since(s.start).Seconds(), p)
	}
	return s.text.Write(p)
}
