package rados

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// childName is argv[0] of the child. It is how the binary knows that it was started as one: an argument or a variable of the
// environment might reach other programs by accident.
const childName = "holdfast-rados"

// MaybeServe returns at once in a program that was started in the usual way. In a process that Dial started it serves its
// parent, and never returns.
func MaybeServe() {
	if len(os.Args) == 0 || os.Args[0] != childName {
		return
	}
	// The parent decides when the child ends, by closing the pipe; a Ctrl-C at the terminal is meant for the parent.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Not rados_shutdown: it may hang, and the mons notice the closed connection all the same.
	os.Exit(0)
}

// serve answers requests until in ends.
func serve(in io.Reader, out io.Writer) error {
	in = bufio.NewReader(in)
	var cfg Config
	if err := readFrame(in, &cfg); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	lib, err := loadLibrary()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := newSession(lib, cfg)
	go s.connect(ctx)

	var mu sync.Mutex // guards out
	for {
		var r request
		if err := readFrame(in, &r); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		go func() {
			answer := s.do(&r)
			mu.Lock()
			defer mu.Unlock()
			if err := writeFrame(out, answer); err != nil {
				// The parent is gone or has given up: there is nobody left to tell.
				os.Exit(1)
			}
		}()
	}
}
