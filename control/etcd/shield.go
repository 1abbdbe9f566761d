package etcd

import (
	"errors"
	"fmt"
)

// fatalError is one after which etcd cannot go on in this process: what it had opened by then, its ports among it, stays open.
type fatalError struct{ error }

func (e *fatalError) Unwrap() error { return e.error }

// Fatal says whether etcd can only go on in another process.
func Fatal(err error) bool { return errors.As(err, new(*fatalError)) }

// shielded calls f, which logs to fatal; see newLogger. Where etcd ends the goroutine it is not that of the caller, who gets the reason.
func shielded[T any](fatal <-chan error, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		defer close(done) // also when the goroutine is ended
		value, err := f()
		done <- result{value, err}
	}()
	if r, returned := <-done; returned {
		return r.value, r.err
	}
	var none T
	select {
	case err := <-fatal:
		return none, &fatalError{err}
	default:
		return none, &fatalError{fmt.Errorf("etcd ended, and its log says why")}
	}
}
