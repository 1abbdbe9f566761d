package leadership

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/sim"
	"github.com/holdfast-storage/holdfast/internal/fence"
	"github.com/holdfast-storage/holdfast/platform/bare"
)

// end is how a leader dies at a write.
type end int

const (
	before end = iota // the write is not done
	after             // the write is done, and its answer is lost
	late              // the write is left on its way, and arrives when another server leads
	ends
)

func (e end) String() string { return [...]string{"before", "after", "late, of"}[e] }

var errDead = errors.New("the leader is dead")

// fuse is the way of one leader to the API. At a certain write it kills the leader; after that nothing goes through.
type fuse struct {
	next http.RoundTripper
	how  end
	left atomic.Int64
	// blown is closed when the leader is dead, and succeeded when another one leads.
	blown, succeeded chan struct{}
	// result is of a write that came late: whether it was refused by the fence.
	late   sync.WaitGroup
	result error
}

// RoundTrip sends a request, unless the leader is dead.
func (f *fuse) RoundTrip(r *http.Request) (*http.Response, error) {
	left := f.left.Load()
	if r.Method != http.MethodGet {
		left = f.left.Add(-1)
	}
	switch {
	case left > 0 || left == 0 && r.Method == http.MethodGet && !f.dead():
		return f.next.RoundTrip(r)
	case left < 0 || r.Method == http.MethodGet:
		return nil, errDead
	case f.how == before:
		close(f.blown)
		return nil, errDead
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	last := r.Clone(context.WithoutCancel(r.Context()))
	last.Body = io.NopCloser(bytes.NewReader(body))
	if f.how == late {
		f.late.Go(func() {
			<-f.succeeded
			f.result = f.refused(last)
		})
	} else if answer, err := f.next.RoundTrip(last); err == nil {
		answer.Body.Close()
	}
	close(f.blown)
	return nil, errDead
}

func (f *fuse) dead() bool {
	select {
	case <-f.blown:
		return true
	default:
		return false
	}
}

// refused sends a write that comes late, and returns an error unless the fence refuses it. That it would have been refused for
// another reason as well, because its object has changed, is well, too.
func (f *fuse) refused(r *http.Request) error {
	answer, err := f.next.RoundTrip(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if answer.StatusCode < 300 || answer.StatusCode >= 500 {
		return errors.Join(err, fmt.Errorf("%s %s came late, and the answer was: %s: %s", r.Method, r.URL.Path, answer.Status, text))
	}
	return err
}

// realm is where one leader follows the other.
type realm struct {
	t      *testing.T
	config *rest.Config
	admin  client.Client
	toy    *sim.Toy
	count  int
	work   sync.WaitGroup
}

// reign is one leader's time.
type reign struct {
	*fuse
	token string
	end   context.CancelFunc
}

// crown has the next server lead, which dies at its write number kill; 0 means never.
func (x *realm) crown(kill int, how end) *reign {
	x.t.Helper()
	x.count++
	name := fmt.Sprintf("s%d", x.count%3+1)
	ctx, cancel := context.WithCancel(context.Background())
	r := &reign{
		fuse: &fuse{how: how, blown: make(chan struct{}), succeeded: make(chan struct{})}, end: cancel,
		token: fmt.Sprintf("%s_%08x", name, x.count),
	}
	r.left.Store(1 << 40)
	if kill > 0 {
		r.left.Store(int64(kill))
	}
	if err := takeLead(x.t.Context(), x.admin, r.token); err != nil {
		x.t.Fatal(err)
	}
	config := rest.CopyConfig(x.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		r.next = next
		return r.fuse
	})
	store, err := bare.NewStore(ctx, config, r.token)
	if err != nil {
		x.t.Fatal(err)
	}
	x.work.Go(func() {
		select {
		case <-r.blown:
			cancel()
		case <-ctx.Done():
		}
	})
	x.work.Go(func() {
		defer store.Close()
		log := slog.New(slog.DiscardHandler)
		_ = engine.Run(ctx, engine.Config{Store: store, Log: log, Managers: []engine.ServiceManager{
			&engine.Orchestrator{Store: store, Driver: x.toy, Leader: name, Log: log},
		}})
	})
	return r
}

// takeLead makes a server the leader, as an election does when the lease of the last one has ended.
func takeLead(ctx context.Context, c client.Client, token string) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: api.LeaderLease}}
	err := c.Get(ctx, client.ObjectKeyFromObject(lease), lease)
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &token, ptr.To[int32](5)
	ctx = fence.Setting(ctx, fence.Token{Name: api.LeaderLease, Value: token})
	switch {
	case apierrors.IsNotFound(err):
		return c.Create(ctx, lease)
	case err != nil:
		return err
	default:
		return c.Update(ctx, lease)
	}
}
