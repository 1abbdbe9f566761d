package etcd

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// fatalError is one after which etcd cannot go on in this process: what it had opened by then, its ports among it, stays open.
type fatalError struct{ error }

func (e *fatalError) Unwrap() error { return e.error }

// Fatal says whether etcd can only go on in another process.
func Fatal(err error) bool { return errors.As(err, new(*fatalError)) }

// brokenError is one that etcd itself ended with, for its data rather than for its disk.
type brokenError struct{ error }

func (e *brokenError) Unwrap() error { return e.error }

// Broken says whether etcd ended because of what it found in its files, and not because the
// machine did not let it write.
func Broken(err error) bool {
	var number syscall.Errno
	return errors.As(err, new(*brokenError)) && !errors.As(err, &number)
}

// lingers is how long a call may take to end after etcd has ended a goroutine of it. It may be
// waiting for that one for ever.
const lingers = time.Second

// shielded calls f, which logs to fatal; see newLogger. Where etcd ends the goroutine, or it
// panics, it is not that of the caller, who gets the reason.
func shielded[T any](fatal chan error, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		defer close(done) // also when the goroutine is ended
		defer func() {
			if p := recover(); p != nil {
				done <- result{err: &fatalError{&brokenError{fmt.Errorf("etcd cannot continue: %v", p)}}}
			}
		}()
		value, err := f()
		done <- result{value, err}
	}()
	var none T
	var why error
	select {
	case r, returned := <-done:
		if returned {
			return r.value, r.err
		}
	case why = <-fatal:
		select {
		case r, returned := <-done:
			if returned && r.err == nil { // It has begun, and ends at once.
				fatal <- why
				return r.value, nil
			}
		case <-time.After(lingers):
		}
		return none, &fatalError{why}
	}
	select {
	case why = <-fatal:
		return none, &fatalError{why}
	default:
		return none, &fatalError{errors.New("etcd ended, and its log says why")}
	}
}
