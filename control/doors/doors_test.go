package doors

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestForDescriptors: whatever the process may open, half of it is not for connections, and each
// kind of client can work.
func TestForDescriptors(t *testing.T) {
	for limit := uint64(256); limit <= 1<<30; limit += 1 + limit/7 {
		b := ForDescriptors(limit)
		if b.Total() <= 0 || uint64(b.Total()) > limit/2 || b.Total() > mostConnections {
			t.Fatalf("%d descriptors: %d connections of %+v", limit, b.Total(), b)
		}
		if b.Strangers < 16 || b.PerAddress < 16 || b.Clients < 16 || b.PerClient < 16 {
			t.Fatalf("%d descriptors: %+v", limit, b)
		}
	}
	few, many := ForDescriptors(1024), ForDescriptors(16384)
	if few.Total() >= many.Total() || few.PerAddress >= many.PerAddress {
		t.Errorf("%+v with 1024 descriptors, %+v with 16384", few, many)
	}
	limit, err := Descriptors()
	if err != nil || limit == 0 {
		t.Errorf("this process may have %d descriptors: %v", limit, err)
	}
}

// hall is a listener to which tests bring connections from any address.
type hall struct {
	*Listener
	in  chan net.Conn
	log logged
}

// logged is what was logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func open(b Bounds) *hall {
	h := &hall{in: make(chan net.Conn)}
	h.Listener = Wrap(h, b, slog.New(slog.NewTextHandler(&h.log, nil)))
	return h
}

func (h *hall) Accept() (net.Conn, error) { return <-h.in, nil }
func (h *hall) Close() error              { return nil }
func (h *hall) Addr() net.Addr            { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 7440} }

// pipe is a connection with addresses.
type pipe struct {
	net.Conn
	remote net.Addr
}

func (p *pipe) RemoteAddr() net.Addr { return p.remote }
func (p *pipe) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 7440} }

var port int

// come brings a connection from an address, and returns both of its ends; in is nil where it was
// not let in.
func (h *hall) come(t *testing.T, ip string) (in *Conn, out net.Conn) {
	t.Helper()
	port++
	out, inner := net.Pipe()
	t.Cleanup(func() { out.Close() })
	return h.admit(&pipe{inner, &net.TCPAddr{IP: net.ParseIP(ip), Port: port}}), out
}

func closed(c net.Conn) bool {
	c.SetReadDeadline(time.Now().Add(time.Nanosecond))
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

var small = Bounds{Strangers: 8, PerAddress: 4, Clients: 6, PerClient: 3}

// TestListener_strangers: of those who say nothing the oldest of one address go first, and then
// those of the address with most.
func TestListener_strangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(small)
		var of [3][]net.Conn
		for who, many := range []int{6, 3, 2} {
			for range many {
				_, out := h.come(t, fmt.Sprintf("192.0.2.%d", who+1))
				of[who] = append(of[who], out)
			}
		}
		var left [3]string
		for who, conns := range of {
			for _, c := range conns {
				left[who] += map[bool]string{true: "x", false: "o"}[closed(c)]
			}
		}
		// The first one has more than one may have: two go. The ninth in all is one more than there
		// may be: one of those with most.
		if want := [3]string{"xxxooo", "ooo", "oo"}; left != want {
			t.Errorf("of the connections these are closed: %v, want %v", left, want)
		}
		time.Sleep(2 * time.Second)
		if got := strings.Count(h.log.String(), "\n"); got != 1 || !strings.Contains(h.log.String(), "count=3") {
			t.Errorf("the log has %d lines:\n%s", got, h.log.String())
		}
		time.Sleep(time.Minute)
	})
}

// TestListener_broken: a client that says something and goes before its first request is noted; one
// that says nothing, one that asked, and one that a bound ended are not.
func TestListener_broken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(small)
		var broken []string
		h.Broken = func(address string) { broken = append(broken, address) }
		says := func(ip string) *Conn {
			in, out := h.come(t, ip)
			go out.Write([]byte("hello"))
			if _, err := in.Read(make([]byte, 5)); err != nil {
				t.Fatal(err)
			}
			return in
		}
		says("192.0.2.1").Close()
		silent, _ := h.come(t, "192.0.2.2")
		silent.Close()
		asked := says("192.0.2.3")
		asked.Arrived()
		asked.Close()
		says("192.0.2.4").refuse("slow")
		if len(broken) != 1 || !strings.HasPrefix(broken[0], "192.0.2.1:") {
			t.Errorf("these are noted: %q", broken)
		}
		time.Sleep(2 * time.Minute)
	})
}

// TestListener_network: addresses that one machine may have for itself count as one, and this
// machine for itself.
func TestListener_network(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(small)
		_, first := h.come(t, "2001:db8::1")
		_, near := h.come(t, "127.0.0.1")
		for i := range 4 {
			h.come(t, fmt.Sprintf("2001:db8::%x:1", i+2))
		}
		for i := range 20 {
			h.come(t, fmt.Sprintf("198.51.100.%d", i+1))
		}
		if !closed(first) || closed(near) {
			t.Errorf("closed: %v, want true; of this machine: %v, want false", closed(first), closed(near))
		}
		time.Sleep(2 * time.Minute)
	})
}

// TestListener_clients: who has proven who he is counts for himself, wherever he comes from, and
// loses his own oldest connection when he has too many. The servers lose none.
func TestListener_clients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(small)
		enter := func(name string) net.Conn {
			in, out := h.come(t, "192.0.2.1")
			in.Arrived()
			if name == "" {
				in.Own()
			} else {
				in.Known(name)
			}
			return out
		}
		server, modest := enter(""), enter("modest")
		var greedy []net.Conn
		for range 5 {
			greedy = append(greedy, enter("greedy"))
		}
		for range 3 {
			enter("third")
		}
		left := []bool{!closed(server), !closed(modest)}
		for _, c := range greedy {
			left = append(left, !closed(c))
		}
		if !slices.Equal(left, []bool{true, true, false, false, false, true, true}) {
			t.Error("others were closed than the oldest of who has too many, or has the most")
		}
		time.Sleep(time.Hour)
		if closed(server) || closed(modest) {
			t.Error("a client with a certificate was cut off with time")
		}
	})
}

// TestListener_time: a stranger who sends nothing is closed soon, one that sends requests and
// proves nothing later.
func TestListener_time(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(small)
		_, silent := h.come(t, "192.0.2.1")
		in, asks := h.come(t, "192.0.2.1")
		in.Arrived()
		impatient, many := h.come(t, "192.0.2.1")
		impatient.Arrived()
		for range mostFailures {
			impatient.Failed()
		}
		if !closed(many) {
			t.Error("who is refused again and again may go on")
		}
		time.Sleep(headerTime + time.Second)
		if !closed(silent) || closed(asks) {
			t.Errorf("after %s: silent %v, asks %v", headerTime, closed(silent), closed(asks))
		}
		time.Sleep(strangerTime)
		if !closed(asks) || len(h.open) != 0 || h.strangers.count != 0 {
			t.Errorf("after %s: closed %v; %d are left", strangerTime, closed(asks), len(h.open))
		}
	})
}

// TestListener_served: a stranger whose request is being worked on is not closed for others, who
// are not let in then.
func TestListener_served(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(small)
		var joins []net.Conn
		for range small.PerAddress {
			in, out := h.come(t, "192.0.2.1")
			in.Arrived()
			if _, ok := in.Ask(); !ok {
				t.Fatal("the first request is refused")
			}
			if _, ok := in.Ask(); ok {
				t.Error("a second request at the same time is taken")
			}
			in.Served()
			joins = append(joins, out)
		}
		_, late := h.come(t, "192.0.2.1")
		if !closed(late) {
			t.Error("one more was let in")
		}
		for i, c := range joins {
			if closed(c) {
				t.Errorf("the request %d was cut off", i)
			}
		}
		time.Sleep(time.Minute)
	})
}

// TestPace: who opens connections as fast as he can is closed before a handshake, and keeps nobody
// else out.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPace(10, 20)
		count := func(name string) (n int) {
			for range 100 {
				if p.Allow(name) {
					n++
				}
			}
			return n
		}
		if got := count("a"); got != 20 {
			t.Errorf("%d at once, want 20", got)
		}
		time.Sleep(time.Second)
		if a, b := count("a"), count("b"); a != 10 || b != 20 {
			t.Errorf("after a second %d, and another one %d; want 10 and 20", a, b)
		}
		for i := range 2 * mostPaced {
			p.Allow(fmt.Sprint(i))
		}
		if len(p.who) > mostPaced+1 {
			t.Errorf("%d are remembered", len(p.who))
		}
		time.Sleep(10 * time.Second)
		if !p.Allow("new") {
			t.Error("those who left keep others out")
		}
	})
}
