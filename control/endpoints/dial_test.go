package endpoints

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"
)

// listener accepts connections and says its own name on each.
func listener(t *testing.T, name string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(name + "\n"))
		}
	}()
	t.Cleanup(func() { l.Close() })
	return l
}

func whom(t *testing.T, d *dialer) (string, net.Conn) {
	t.Helper()
	c, err := d.dial(t.Context(), "tcp", "holdfast:443")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	name, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return name[:1], c
}

func TestDialer_failsOver(t *testing.T) {
	a, b := listener(t, "a"), listener(t, "b")
	servers := []string{a.Addr().String(), b.Addr().String()}
	d := newDialer(func() []string { return slices.Clone(servers) })
	if got, _ := whom(t, d); got != "a" {
		t.Errorf("got %s first, want a", got)
	}
	a.Close()
	if got, _ := whom(t, d); got != "b" {
		t.Errorf("got %s when a is gone, want b", got)
	}
	if d.good != servers[1] {
		t.Errorf("the next connection would go to %s, want to stay with %s", d.good, servers[1])
	}
	b.Close()
	if _, err := d.dial(t.Context(), "tcp", ""); err == nil {
		t.Error("connected although no server is there")
	}
}

// TestDialer_leavesBroken: a server that can be reached but cannot work is left, after a few tries in a row.
func TestDialer_leavesBroken(t *testing.T) {
	a, b := listener(t, "a"), listener(t, "b")
	d := newDialer(func() []string { return []string{a.Addr().String(), b.Addr().String()} })
	_, old := whom(t, d)
	status, failure := http.StatusOK, error(nil)
	rt := d.watch(roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Body: http.NoBody}, failure
	}))
	try := func(ctx context.Context, n int) {
		for range n {
			if response, err := rt.RoundTrip((&http.Request{}).WithContext(ctx)); err == nil {
				response.Body.Close()
			}
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	status = http.StatusServiceUnavailable
	try(t.Context(), tolerated-1)
	status = http.StatusNotFound // An answer that says that the server works.
	try(t.Context(), 1)
	failure = errors.New("cancelled by the caller")
	try(cancelled, 2*tolerated)
	status, failure = http.StatusInternalServerError, nil
	try(t.Context(), tolerated-1)
	if got, _ := whom(t, d); got != "a" {
		t.Fatalf("left a for %s too early", got)
	}
	try(t.Context(), tolerated)
	if got, _ := whom(t, d); got != "b" {
		t.Errorf("got %s after a failed, want b", got)
	}
	if _, err := old.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection to the broken server is open still: %v", err)
	}
}

// TestDialer_staysWithBusy: a server that answers some requests and lets others wait too long has much to do, and is not left; nor
// is the only one that there is.
func TestDialer_staysWithBusy(t *testing.T) {
	a, b := listener(t, "a"), listener(t, "b")
	servers := []string{a.Addr().String(), b.Addr().String()}
	d := newDialer(func() []string { return slices.Clone(servers) })
	began := time.Now()
	d.note(began, false)
	for range 2 * tolerated {
		if d.note(began, true) {
			t.Fatal("a server that answered meanwhile is left")
		}
	}
	servers = servers[:1]
	_, c := whom(t, d)
	d.leave()
	if err := c.SetReadDeadline(time.Now()); err != nil {
		t.Errorf("the connection to the only server was closed: %v", err)
	}
}
