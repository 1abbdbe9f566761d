package leader

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/propose"
)

// TestAsked_end: when leadership is over, answers that are under way end at once and are waited for,
// and there are no more: a driver would connect to a storage system, and nobody would end that.
func TestAsked_end(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := Config{Log: slog.New(slog.DiscardHandler)}.asked(nil)
		var cause error
		ctx, done, err := a.begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-ctx.Done()
			cause = context.Cause(ctx)
			done()
		}()
		a.end()
		if !errors.Is(cause, errOver) {
			t.Errorf("it was not waited for, or ended by %v", cause)
		}
		if _, _, err := a.Suppose(t.Context(), api.StorageCeph, types.NamespacedName{}, nil); !errors.Is(err, errOver) {
			t.Error(err)
		}
		if _, err := a.Propose(t.Context(), propose.Request{}, 0); !errors.Is(err, errOver) {
			t.Error(err)
		}
	})
}

// TestAsked_fault: who asks reads that there is a fault, and the log has its stack.
func TestAsked_fault(t *testing.T) {
	var log strings.Builder
	a := Config{Log: slog.New(slog.NewTextHandler(&log, nil))}.asked(nil)
	_, err := within(t.Context(), a, func(context.Context) (int, error) { panic("no such host") })
	if err == nil || strings.Contains(err.Error(), "goroutine") || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("the answer is %v", err)
	}
	if !strings.Contains(log.String(), "goroutine") {
		t.Errorf("the log is %q", log.String())
	}
}
