package operator

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-storage/holdfast/api/crd"
	"github.com/holdfast-storage/holdfast/platform/kube"
)

const (
	// fitEvery is how often an operator that cannot lead looks again, and unfitFor how long what
	// was in the way counts: another operator may lead by then.
	fitEvery = 5 * time.Second
	unfitFor = 30 * time.Second
)

// problem is why an operator cannot lead.
type problem struct {
	text string
	seen time.Time
}

// tell notes what is in the way of leading, for the kubelet and for people. An operator that ends
// has no problem.
func (o *operator) tell(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err == nil:
		o.problem.Store(nil)
	default:
		o.problem.Store(&problem{err.Error(), time.Now()})
	}
}

// lasts says whether an error stays until a person mends it, so that to ask for the Lease again and
// again would only keep others from it.
func lasts(err error) bool {
	newer, unbound := new(crd.NewerError), new(kube.UnboundError)
	return errors.As(err, &newer) || errors.As(err, &unbound) || errors.Is(err, kube.ErrUnfenced)
}

func stopOn(err error, stop context.CancelFunc) {
	if lasts(err) {
		stop()
	}
}

// awaitFit returns when nothing that lasts is in the way of leading, or when ctx ends. It says once
// what is in the way.
func (o *operator) awaitFit(ctx context.Context) {
	said := ""
	for ctx.Err() == nil {
		err := errors.Join(o.withKinds(ctx, crd.Newer), o.terms.Fit(ctx))
		if !lasts(err) {
			o.tell(ctx, nil)
			return
		}
		o.tell(ctx, err)
		if said != err.Error() {
			said = err.Error()
			o.Log.Error("this operator cannot lead; checking again", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(fitEvery):
		}
	}
}
