package control_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/doors"
	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/control/pki"
)

// few are bounds that a test reaches soon.
var few = doors.Bounds{Strangers: 24, PerAddress: 12, Clients: 40, PerClient: 10}

// holds are ways to keep a connection without a credential.
var holds = map[string]func(c *tls.Conn) error{
	"a handshake left open": func(c *tls.Conn) error {
		_, err := c.NetConn().Write([]byte{22, 3, 1, 2, 0, 1, 0})
		return err
	},
	"half a header": func(c *tls.Conn) error { return write(c, "GET /readyz HTTP/1.1\r\nHost: x\r\nX-Slow: ") },
	"half a body": func(c *tls.Conn) error {
		return write(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
	},
	"half a request to join": func(c *tls.Conn) error {
		return write(c, "POST "+join.Path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
	},
	"a body without an end": func(c *tls.Conn) error {
		return write(c, "POST /api HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")
	},
	"nothing after an answer": func(c *tls.Conn) error { return write(c, "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n") },
}

func write(c *tls.Conn, text string) error {
	_, err := io.WriteString(c, text)
	return err
}

// TestAPI_strangersHoldNothing: whatever somebody without a credential begins and does not end, a
// server ends it in time, keeps few of it, and serves others meanwhile.
func TestAPI_strangersHoldNothing(t *testing.T) {
	t.Parallel()
	c := newConfig(t, t.TempDir(), "guarded")
	c.Init, c.Connections = true, few
	s, _ := start(t, c)
	viewer := configAs(t, s, c, pki.Leaf{User: "eve", Groups: []string{access.GroupViewers}})
	for name, begin := range holds {
		t.Run(name, func(t *testing.T) {
			flood := hold(t, c.APIPort, 4*few.Strangers, begin)
			flood.shrinks(t, few.Strangers)
			for range 5 {
				begun := time.Now()
				listHosts(t, viewer)
				if took := time.Since(begun); took > 3*time.Second {
					t.Errorf("a client waited for %s", took)
				}
			}
		})
	}
}

// TestAPI_strangersEnd: nothing that a stranger begins lasts for longer than a minute, and a half
// of something for ten seconds.
func TestAPI_strangersEnd(t *testing.T) {
	t.Parallel()
	_, c := sharedServer(t)
	var all sync.WaitGroup
	for name, begin := range holds {
		within := 15 * time.Second
		if name == "nothing after an answer" {
			within = 65 * time.Second
			if testing.Short() {
				continue
			}
		}
		flood := hold(t, c.APIPort, 2, begin)
		all.Go(func() {
			select {
			case <-flood.over:
			case <-time.After(within):
				t.Errorf("%s: a connection is there after %s", name, within)
			}
		})
	}
	all.Wait()
}

// flood is a number of connections that are held.
type flood struct {
	mu   sync.Mutex
	open int
	// over is closed when the server has closed all.
	over chan struct{}
}

// shrinks waits until no more than so many are open: long before the server ends half of something.
func (f *flood) shrinks(t *testing.T, most int) {
	t.Helper()
	open := func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.open
	}
	for end := time.Now().Add(5 * time.Second); open() > most; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%d connections are kept, want at most %d", open(), most)
			return
		}
	}
}

func hold(t *testing.T, port, n int, begin func(*tls.Conn) error) *flood {
	t.Helper()
	f := &flood{open: n, over: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	begun := make(chan struct{}, n)
	for range n {
		all.Go(func() {
			holdOne(ctx, port, begin, begun)
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.open--; f.open == 0 {
				close(f.over)
			}
		})
	}
	for range n {
		<-begun
	}
	return f
}

// holdOne returns when the server has closed the connection.
func holdOne(ctx context.Context, port int, begin func(*tls.Conn) error, begun chan<- struct{}) {
	told := sync.OnceFunc(func() { begun <- struct{}{} })
	defer told()
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return
	}
	defer raw.Close()
	defer context.AfterFunc(ctx, func() { raw.Close() })()
	if begin(tls.Client(raw, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})) != nil {
		return
	}
	told()
	_, _ = io.Copy(io.Discard, raw)
}

// TestAPI_watchesOfOne: one client has no more watches than may be, however many connections they
// come by, and others have theirs.
func TestAPI_watchesOfOne(t *testing.T) {
	t.Parallel()
	s, c := sharedServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	greedy := configAs(t, s, c, pki.Leaf{User: "greedy", Groups: []string{access.GroupViewers}})
	begin := func(config *rest.Config) int {
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.CloseIdleConnections)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/apis/holdfast.io/v1alpha1/hosts?watch=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		return answer.StatusCode
	}
	for i := range control.MostWatches + 1 {
		want := http.StatusOK
		if i == control.MostWatches {
			want = http.StatusTooManyRequests
		}
		if got := begin(greedy); got != want {
			t.Fatalf("the watch %d: got %d, want %d", i+1, got, want)
		}
	}
	modest := configAs(t, s, c, pki.Leaf{User: "modest", Groups: []string{access.GroupViewers}})
	if got := begin(modest); got != http.StatusOK {
		t.Errorf("the watch of somebody else: got %d", got)
	}
}

// TestAPI_oldTLS: the API refuses TLS 1.2.
func TestAPI_oldTLS(t *testing.T) {
	_, c := sharedServer(t)
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}}
	if conn, err := dialer.DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", c.APIPort)); err == nil {
		conn.Close()
		t.Error("TLS 1.2 was taken")
	}
}
