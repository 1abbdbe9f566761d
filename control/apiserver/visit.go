package apiserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/routine"

	"github.com/holdfast-storage/holdfast/control/doors"
)

const (
	// strangerBody is how long the body of a request may be in coming before it is known whose it
	// is, and knownBody after that: as long as the library lets a request take. Without them a
	// connection lasts for as long as somebody does not send the rest.
	strangerBody = 10 * time.Second
	knownBody    = time.Minute
	// mostOpen is how long the body of a request may be that is served without asking whose it is.
	mostOpen = 64 << 10
	// MostWatches is how many watches one client may have at once. An agent has less than ten.
	MostWatches = 512
)

// visits follows requests to the connections that they came by.
type visits struct {
	doors *doors.Listener

	mu      sync.Mutex
	watches map[string]int
	most    int
}

func newVisits(l net.Listener) *visits {
	listener, _ := l.(*doors.Listener) // a test may have another one
	return &visits{doors: listener, watches: map[string]int{}, most: MostWatches}
}

// refused counts and tells a refusal.
func (v *visits) refused(why, whose string) {
	if v.doors != nil {
		v.doors.Refused(why, whose)
	}
}

// visit is one request.
type visit struct {
	conn *doors.Conn
	body *timedBody
}

type visitKey struct{}

// receive wraps the whole chain: it notes that a request has come, and has its body come in time.
func (v *visits) receive(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one := &visit{}
		if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && v.doors != nil {
			one.conn = v.doors.Find(local, r.RemoteAddr)
		}
		if one.conn != nil {
			one.conn.Arrived()
		}
		r = r.WithContext(context.WithValue(r.Context(), visitKey{}, one))
		if r.Body != nil && r.Body != http.NoBody {
			one.body = &timedBody{ReadCloser: r.Body, set: http.NewResponseController(w).SetReadDeadline}
			one.body.expect(strangerBody)
			r.Body = one.body
			defer one.body.end() // a handler that timed out may read on, when there is no response to set a deadline of
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody is a body that has to come in time.
type timedBody struct {
	io.ReadCloser
	set func(time.Time) error

	mu   sync.Mutex
	over bool
}

// expect has the rest come in this time. Where a deadline cannot be set the connection is
// somebody's test.
func (b *timedBody) expect(within time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		_ = b.set(time.Now().Add(within))
	}
}

// Read ends the deadline with the body: it would end the request, which may take longer to answer.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.over {
			b.over = true
			_ = b.set(time.Time{})
		}
	}
	return n, err
}

// end has no deadline set any more.
func (b *timedBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
}

// greeter tells a connection whose it is, once that is known.
type greeter struct {
	next    authenticator.Request
	refused func(why, whose string)
	// request is called with each request whose certificate is not believed; nil where nobody wants to know.
	request func(*http.Request)
}

// AuthenticateRequest says who sent a request. The library would log each certificate that is not
// believed, with what somebody wrote in it.
func (g greeter) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	response, ok, err := g.next.AuthenticateRequest(r)
	if err != nil && g.refused != nil {
		group, _ := doors.Group(r.RemoteAddr)
		g.refused("unknown", group)
		err = nil
		if g.request != nil {
			g.request(r)
		}
	}
	one, _ := r.Context().Value(visitKey{}).(*visit)
	if one == nil {
		return response, ok, err
	}
	ok = ok && err == nil
	if ok && one.body != nil {
		one.body.expect(knownBody)
	}
	switch {
	case one.conn == nil:
	case !ok:
		one.conn.Failed()
	case slices.Contains(response.User.GetGroups(), user.SystemPrivilegedGroup):
		one.conn.Own()
	default:
		one.conn.Known(response.User.GetName())
	}
	return response, ok, err
}

// open serves strangers: their whole request is read before it is looked at, and while it is worked
// on their connection is kept.
func (v *visits) open(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := connOf(r)
		if conn != nil {
			conn.Failed() // it proves nothing
			done, ok := conn.Ask()
			if !ok {
				http.Error(w, "one request at a time", http.StatusTooManyRequests)
				return
			}
			defer done()
		}
		whole, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostOpen))
		if err != nil {
			w.Header().Set("Connection", "close")
			http.Error(w, "the request is too large or took too long", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(whole))
		if conn != nil {
			conn.Served()
		}
		next.ServeHTTP(w, r)
	})
}

// connOf is the connection that a request came by; nil where it is not known.
func connOf(r *http.Request) *doors.Conn {
	if one, ok := r.Context().Value(visitKey{}).(*visit); ok {
		return one.conn
	}
	return nil
}

// boundWatches refuses more watches of one client than may be. The servers have as many as they
// need.
func (v *visits) boundWatches(next http.Handler, generic *genericapiserver.Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, _ := request.RequestInfoFrom(r.Context())
		u, ok := request.UserFrom(r.Context())
		bounded := ok && info != nil && !slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup)
		if !bounded || !generic.LongRunningFunc(r, info) {
			next.ServeHTTP(w, r)
			return
		}
		if !v.begin(u.GetName()) {
			v.refused("watches", u.GetName())
			w.Header().Set("Retry-After", "1")
			http.Error(w, "this client has too many watches open", http.StatusTooManyRequests)
			return
		}
		defer func() {
			if task := routine.TaskFrom(r.Context()); task != nil && task.Func != nil {
				// The library serves a watch after next returns.
				context.AfterFunc(r.Context(), func() { v.end(u.GetName()) })
				return
			}
			v.end(u.GetName())
		}()
		next.ServeHTTP(w, r)
	})
}

func (v *visits) begin(name string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.watches[name] >= v.most {
		return false
	}
	v.watches[name]++
	return true
}

func (v *visits) end(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.watches[name]--; v.watches[name] == 0 {
		delete(v.watches, name)
	}
}
