package control

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/control/etcd"
)

// TestInsist: a start goes on when a write was lost because etcd's leader changed, and ends when an error will not pass.
func TestInsist(t *testing.T) {
	seat := &seat{server: &Server{log: slog.New(slog.DiscardHandler)}, member: &etcd.Member{}}
	// What the API server makes of an error of etcd.
	lost := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: "etcdserver: request timed out"}}
	lasting := errors.New("no")
	for _, test := range []struct {
		name    string
		answers []error
		want    error
	}{
		{"lost once", []error{lost, nil}, nil},
		{"lost, then refused", []error{lost, lasting}, lasting},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls := 0
			err := seat.insist(t.Context(), func(context.Context) error {
				calls++
				return test.answers[calls-1]
			})
			if !errors.Is(err, test.want) || calls != len(test.answers) {
				t.Errorf("got %v after %d calls, want %v after %d", err, calls, test.want, len(test.answers))
			}
		})
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := seat.insist(ended, func(context.Context) error { return lost }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v when the start is called off", err)
	}
}

// TestOrFailure: a step that waits for ever ends with the member of etcd, whose error says why; and its member is not stopped in order.
func TestOrFailure(t *testing.T) {
	full := errors.New("its disk is full")
	waits := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	failed := make(chan error, 1)
	failed <- full
	taken := &seat{}
	if err := taken.orFailure(t.Context(), failed, waits); !errors.Is(err, full) || !taken.abandoned {
		t.Errorf("got %v, abandoned: %v", err, taken.abandoned)
	}
	taken = &seat{}
	if err := taken.orFailure(t.Context(), failed, func(context.Context) error { return nil }); err != nil || taken.abandoned {
		t.Errorf("a step that is done: got %v, abandoned: %v", err, taken.abandoned)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := taken.orFailure(ended, failed, waits); !errors.Is(err, context.Canceled) || taken.abandoned {
		t.Errorf("called off: got %v, abandoned: %v", err, taken.abandoned)
	}
}
