// Package noquorum finds out within seconds that the servers cannot answer, and which of them do not. The
// API's libraries wait for half a minute, and name no server.
package noquorum

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

const (
	// After is how long an answer of the API takes before all servers are asked whether they are ready.
	After = time.Second
	// lookFor is how long each of them may take.
	lookFor = 1500 * time.Millisecond
	// again is how often they are asked again while the answer is awaited: the quorum may be lost
	// meanwhile.
	again = 3 * time.Second
	// election is after what time servers are asked again of which some answer: they may be electing a leader.
	election = time.Second
)

// Server is how one server answered.
type Server struct {
	// Address is IP:port.
	Address string
	// Err says why it is not ready; nil while it is. Answers is set where it said so itself.
	Err     error
	Answers bool
}

// Lost says whether the servers can have no quorum: none is ready, and not more than half of them answer.
func Lost(all []Server) bool {
	answer := 0
	for _, s := range all {
		if s.Err == nil {
			return false
		}
		if s.Answers {
			answer++
		}
	}
	return len(all) > 0 && 2*answer <= len(all)
}

// Error says which servers do not answer, and what to do.
type Error struct {
	Servers []Server
	// Here is what is known to be wrong on this machine; empty where nothing is.
	Here string
}

func (e *Error) Error() string { return e.State() + "; " + next }

// next is what to do.
const next = "start the servers that do not answer ('systemctl start holdfast' there), or repair the network to " +
	"them; run 'holdfast doctor', which checks each server that this machine knows and names the next step: if most " +
	"servers are lost for good, 'holdfast restore'. Storage daemons keep running"

// State says which servers do not answer.
func (e *Error) State() string {
	var all []string
	for _, s := range e.Servers {
		all = append(all, s.Address+" "+s.Err.Error())
	}
	text := "no server answered: "
	if len(all) > 1 {
		text = "no server answered, and without more than half of the servers there is no quorum: "
	}
	text += strings.Join(all, ", ")
	if e.Here != "" {
		text += "; on this machine " + e.Here
	}
	return text
}

// onServer is what to do where a server itself says that there is no quorum, and what is missing.
const onServer = "run 'holdfast doctor' on a server, which checks each server and names the next step"

// Of says whether an error means that the servers have no quorum, and if so the state and the next
// step.
func Of(err error) (state, todo string, lost bool) {
	var own *Error
	switch {
	case errors.As(err, &own):
		return own.State(), next, true
	case apierrors.ReasonForError(err) == metav1.StatusReason(api.ReasonQuorumLost):
		var said apierrors.APIStatus
		errors.As(err, &said)
		return said.Status().Message, onServer, true
	}
	return "", "", false
}

// Look asks servers, as IP:port, all at once whether they are ready. Once one is, the others are not waited for.
func Look(ctx context.Context, config *rest.Config, servers []string) []Server {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	all := make([]Server, len(servers))
	var asked sync.WaitGroup
	for i, address := range servers {
		asked.Go(func() {
			if all[i] = look(ctx, config, address); all[i].Err == nil {
				enough()
			}
		})
	}
	asked.Wait()
	return all
}

func look(ctx context.Context, config *rest.Config, address string) Server {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	config = rest.CopyConfig(config)
	config.Dial = new(net.Dialer).DialContext // this server, and no other in its place
	config.WrapTransport, config.Timeout = nil, lookFor
	scheme, _, _ := strings.Cut(config.Host, "://")
	config.Host = scheme + "://" + address
	s := Server{Address: address}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		s.Err = err
		return s
	}
	defer client.CloseIdleConnections()
	s.Answers, s.Err = ready(ctx, client, config.Host)
	return s
}

func ready(ctx context.Context, client *http.Client, host string) (answers bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, host+"/readyz", http.NoBody)
	if err != nil {
		return false, err
	}
	response, err := client.Do(request)
	if err != nil {
		return refuses(err), why(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16))
	if response.StatusCode != http.StatusOK {
		return true, errors.New("runs and is not ready")
	}
	return true, nil
}

// refuses says whether a server is there, and it or we do not believe the other one.
func refuses(err error) bool {
	var network *net.OpError
	return errors.As(err, new(*tls.CertificateVerificationError)) ||
		errors.As(err, &network) && network.Op == "remote error"
}

// why says why a server does not answer, in few words.
func why(err error) error {
	var network *net.OpError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("serves nothing (its port is closed: it is stopped, a standby, or waits for the others)")
	case errors.As(err, &network) && network.Op == "dial":
		return fmt.Errorf("cannot be reached (%w)", network.Err)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return errors.New("does not answer (it waits for the others, or its machine hangs)")
	}
	return fmt.Errorf("does not answer (%w)", err)
}

// RoundTripper carries requests out, and ends one with an *Error that is not answered because the
// servers have no quorum. What watches waits on purpose.
type RoundTripper struct {
	By http.RoundTripper
	// Look asks all servers that are known.
	Look func(ctx context.Context) *Error

	mu   sync.Mutex
	lost *Error
}

type answer struct {
	response *http.Response
	err      error
}

// RoundTrip implements http.RoundTripper.
func (t *RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") != "" {
		return t.By.RoundTrip(r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan answer, 1)
	go func() {
		response, err := t.By.RoundTrip(r.WithContext(ctx)) //nolint:bodyclose // the receiver closes it
		done <- answer{response, err}
	}()
	for wait := After; ; wait = again {
		select {
		case got := <-done:
			if !unready(got) {
				return ending(got, cancel)
			}
			if lost := t.look(r.Context()); lost != nil {
				return drop(got, cancel, lost)
			}
			return ending(got, cancel)
		case <-time.After(wait):
		}
		if lost := t.look(r.Context()); lost != nil {
			cancel()
			return drop(<-done, cancel, lost)
		}
	}
}

// unready says whether an answer may mean that there is no quorum.
func unready(a answer) bool {
	return a.err != nil || a.response.StatusCode == http.StatusTooManyRequests ||
		a.response.StatusCode == http.StatusMisdirectedRequest || // it does not lead; nobody may
		a.response.StatusCode >= http.StatusInternalServerError
}

// look asks the servers, and again if some answer: they may have a leader in a moment. Once they
// are lost, they are for the whole command.
func (t *RoundTripper) look(ctx context.Context) *Error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost != nil || ctx.Err() != nil {
		return t.lost
	}
	e := t.Look(ctx)
	if !Lost(e.Servers) || over(ctx) {
		return nil // the end of the request cuts off the look, too: that says nothing about the servers
	}
	if some(e.Servers) > 1 {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(election):
		}
		if e = t.Look(ctx); !Lost(e.Servers) || over(ctx) {
			return nil
		}
	}
	t.lost = e
	return e
}

// over says whether a request is at its end. A connection may see that a moment before its context.
func over(ctx context.Context) bool {
	end, has := ctx.Deadline()
	return ctx.Err() != nil || has && !time.Now().Before(end)
}

func some(all []Server) (n int) {
	for _, s := range all {
		if s.Answers {
			n++
		}
	}
	return n
}

// ending ends the context of a request with its answer.
func ending(a answer, cancel context.CancelFunc) (*http.Response, error) {
	if a.err != nil {
		cancel()
		return a.response, a.err
	}
	a.response.Body = &body{a.response.Body, cancel}
	return a.response, nil
}

func drop(a answer, cancel context.CancelFunc, lost *Error) (*http.Response, error) {
	if a.response != nil {
		a.response.Body.Close()
	}
	cancel()
	return nil, lost
}

type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
