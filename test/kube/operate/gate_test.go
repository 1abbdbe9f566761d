package operate

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// gate is a way to the API server that can be shut: what a client sends meanwhile arrives when it
// is opened again. What the server sends passes always.
type gate struct {
	target string
	mu     sync.Mutex
	opened *sync.Cond
	shut   bool
}

// newGate returns a gate before an API server, and its URL.
func newGate(t *testing.T, server string) (*gate, string) {
	t.Helper()
	u, err := url.Parse(server)
	must(t, err)
	g := &gate{target: u.Host}
	g.opened = sync.NewCond(&g.mu)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() {
		l.Close()
		g.set(false)
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the test ends
			}
			go g.pass(c)
		}
	}()
	return g, "https://" + l.Addr().String()
}

// set shuts the gate or opens it.
func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	g.opened.Broadcast()
}

func (g *gate) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", g.target)
	if err != nil {
		return // the client sees that the connection ends
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(client, server) // the other direction sees the end, too
		client.Close()
	}()
	_, _ = io.Copy(server, &gated{client, g})
}

// gated is what a client sends, held while the gate is shut.
type gated struct {
	io.Reader

	g *gate
}

// Read implements io.Reader.
func (r *gated) Read(into []byte) (int, error) {
	n, err := r.Reader.Read(into)
	r.g.mu.Lock()
	defer r.g.mu.Unlock()
	for r.g.shut {
		r.g.opened.Wait()
	}
	return n, err
}
