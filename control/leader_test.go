package control_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/holdfast-storage/holdfast/control/leader"
)

// TestLeader: of two servers one leads at a time; when it stops, its work ends first, and the other leads at once, without
// waiting for the end of the lease.
func TestLeader(t *testing.T) {
	s, _ := sharedServer(t)
	var leading atomic.Int32
	led := make(chan string, 2)
	run := func(name string) (stop func()) {
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		e := leader.Election{
			REST: s.Config(), Namespace: "holdfast-system", Name: "test-leader", Server: name, Log: slog.New(slog.DiscardHandler),
		}
		wg.Go(func() {
			err := e.Run(ctx, func(ctx context.Context, _ string) {
				if leading.Add(1) != 1 {
					t.Error("two lead at the same time")
				}
				led <- name
				<-ctx.Done()
				leading.Add(-1)
			})
			if err != nil {
				t.Error(err)
			}
		})
		return sync.OnceFunc(func() { cancel(); wg.Wait() })
	}
	next := func() string {
		t.Helper()
		select {
		case name := <-led:
			return name
		case <-time.After(time.Minute):
			t.Fatal("nobody leads")
			return ""
		}
	}
	stopA := run("a")
	defer stopA()
	if got := next(); got != "a" {
		t.Fatalf("%s leads, want a", got)
	}
	stopB := run("b")
	defer stopB()
	stopA()
	// Without a release the lease would be a's until it ends.
	lease := &coordinationv1.Lease{}
	if err := newClient(t, s.Config()).Get(t.Context(), key("holdfast-system", "test-leader"), lease); err != nil {
		t.Fatal(err)
	}
	if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); strings.HasPrefix(holder, "a_") {
		t.Errorf("the lease was not released: it is that of %s", holder)
	}
	if got := next(); got != "b" {
		t.Fatalf("%s leads, want b", got)
	}
}
