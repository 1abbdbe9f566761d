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
	"time"
)

// childName is argv[0] of the child. It is how the binary knows that it was started as one: an argument or a variable of the
// environment might reach other programs by accident.
const childName = "holdfast-rados"

// MaybeServe returns at once in a program that was started in the usual way. In a process that Dial started it serves its
// parent, and never returns.
func MaybeServe() { MaybeServeBy(serve) }

// MaybeServeBy is MaybeServe with something else in the place of librados, such as ServeClient: programs that measure Holdfast
// without a Ceph use it. by returns when in ends.
func MaybeServeBy(by func(in io.Reader, out io.Writer) error) {
	if len(os.Args) == 0 || os.Args[0] != childName {
		return
	}
	// The parent decides when the child ends, by closing the pipe; a Ctrl-C at the terminal is meant for the parent.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	if err := by(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Not rados_shutdown: it may hang, and the mons notice the closed connection all the same.
	os.Exit(0)
}

// serve answers requests until in ends.
func serve(in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	return serveEach(in, out, func(cfg Config) (func(*request) *response, error) {
		lib, err := loadLibrary()
		if err != nil {
			return nil, err
		}
		s := newSession(lib, cfg)
		go s.connect(ctx)
		return s.do, nil
	}, func() { os.Exit(1) })
}

// serveEach reads the configuration, opens what answers, and answers requests side by side until in ends. It calls gone when
// an answer cannot be written: the parent is gone or has given up, and there is nobody left to tell.
func serveEach(in io.Reader, out io.Writer, open func(Config) (func(*request) *response, error), gone func()) error {
	in = bufio.NewReader(in)
	var cfg Config
	if err := readFrame(in, &cfg); err != nil {
		return ignoreEOF(err)
	}
	do, err := open(cfg)
	if err != nil {
		return err
	}
	var mu sync.Mutex // guards out
	for {
		var r request
		if err := readFrame(in, &r); err != nil {
			return ignoreEOF(err)
		}
		go func() {
			answer := do(&r)
			mu.Lock()
			defer mu.Unlock()
			if err := writeFrame(out, answer); err != nil {
				gone()
			}
		}()
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// ServeClient answers requests with what a Client answers, until in ends. open is given the configuration that the parent has.
func ServeClient(in io.Reader, out io.Writer, open func(Config) Client) error {
	return serveEach(in, out, func(cfg Config) (func(*request) *response, error) {
		c := open(cfg)
		return func(r *request) *response { return answerBy(c, r) }, nil
	}, func() {})
}

// answerBy turns a Client's answer into a response.
func answerBy(c Client, r *request) *response {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.Millis)*time.Millisecond)
	defer cancel()
	out, err := askClient(ctx, c, r)
	var refused *CommandError
	switch {
	case errors.As(err, &refused):
		return &response{ID: r.ID, Errno: int(refused.Errno), Status: refused.Status}
	case err != nil:
		return &response{ID: r.ID, NoAnswer: true, Status: err.Error()}
	}
	return &response{ID: r.ID, Out: out}
}

func askClient(ctx context.Context, c Client, r *request) ([]byte, error) {
	images, ok := c.(ImageClient)
	switch {
	case r.To == toMgr:
		return c.Mgr(ctx, r.Cmd, r.Input)
	case r.To == toRBD && ok:
		return images.RBD(ctx, r.Cmd)
	case r.To == toRBD:
		return nil, &CommandError{Prefix: prefixOf(r.Cmd), Errno: syscall.EOPNOTSUPP}
	}
	return c.Mon(ctx, r.Cmd, r.Input)
}
