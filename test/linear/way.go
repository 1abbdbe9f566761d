package linear

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// ErrCut is the error of a request that nobody hears an answer to.
var ErrCut = errors.New("the way to the API is cut")

// maxLate is how long a request may be on its way after its client has given up.
const maxLate = 300 * time.Millisecond

// Way is a client's way to the API. Requests are lost on it, or their answers are, or they arrive when their client has given up
// long ago; and it can be cut as a whole.
type Way struct {
	cut atomic.Bool
	// faults is how many of a thousand writes meet a fault.
	faults int
	late   sync.WaitGroup
}

// NewWay returns a way on which so many of a thousand writes meet a fault, and the means to go on it.
func NewWay(config *rest.Config, faults int) (*Way, *rest.Config) {
	w := &Way{faults: faults}
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &hop{w, next}
	})
	return w, config
}

// Cut cuts the way, or mends it. Requests under way lose their answer.
func (w *Way) Cut(cut bool) { w.cut.Store(cut) }

// Wait waits for what is still on its way.
func (w *Way) Wait() { w.late.Wait() }

// hop is one client's part of the way.
type hop struct {
	*Way
	next http.RoundTripper
}

// RoundTrip sends a request.
func (w *hop) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.cut.Load() {
		return nil, ErrCut
	}
	if r.Method == http.MethodGet {
		return w.next.RoundTrip(r)
	}
	luck := rand.IntN(3000)
	if luck < w.faults { // lost
		return nil, ErrCut
	}
	if luck < 2*w.faults {
		return nil, w.sendLater(r)
	}
	answer, err := w.next.RoundTrip(r)
	if err == nil && (luck < 3*w.faults || w.cut.Load()) {
		answer.Body.Close()
		return nil, ErrCut
	}
	return answer, err
}

func (w *hop) sendLater(r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r = r.Clone(context.WithoutCancel(r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(body))
	w.late.Go(func() {
		time.Sleep(rand.N(maxLate))
		if answer, err := w.next.RoundTrip(r); err == nil {
			answer.Body.Close()
		}
	})
	return ErrCut
}

// Unheard says whether an error leaves it open whether the write was done.
func Unheard(err error) bool {
	return errors.Is(err, ErrCut) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsInternalError(err)
}
