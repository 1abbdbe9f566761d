package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/control/doors"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// peerDoor is the port that the other members reach this one at. etcd's own has no bound on how
// many connections there are, and waits for a handshake for as long as a byte of it comes now and
// then: with that, anybody could take all descriptors. Here a connection is let through to etcd
// once it has shown the certificate of a member. etcd listens on a socket in its own directory,
// which nobody else may enter.
type peerDoor struct {
	listener *doors.Listener
	config   *tls.Config
	// dir is etcd's directory. Its own name may be longer than that of a socket may be.
	dir *os.File
	// socket is etcd's, once it listens.
	socket atomic.Pointer[os.File]
	done   sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

const (
	// peerSocket is where etcd listens, below its directory, until link.
	peerSocket = "peers.sock"
	// peerIdle is how long a member may take to accept what is sent to it. etcd itself waits as
	// long.
	peerIdle = 5 * time.Second
)

// openPeerDoor opens the port. What comes before etcd listens is closed again; members ask anew.
func openPeerDoor(ctx context.Context, c *Config) (*peerDoor, error) {
	config, err := c.tls().ServerConfig()
	if err != nil {
		return nil, err
	}
	bounds := c.Peers
	if bounds == (doors.Bounds{}) {
		limit, err := doors.Descriptors()
		if err != nil {
			return nil, err
		}
		bounds = doors.ForMembers(limit)
	}
	if err := atomicfile.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.Open(c.Dir)
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(c.Address, strconv.Itoa(c.PeerPort)))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("while opening the port for etcd's peers: %w", err), dir.Close())
	}
	log := c.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	d := &peerDoor{listener: doors.Wrap(listener, bounds, log), config: config, dir: dir, open: map[net.Conn]struct{}{}}
	d.done.Go(d.serve)
	return d, nil
}

// url is what etcd listens at: a name below its directory, by way of the descriptor.
func (d *peerDoor) url() url.URL {
	return url.URL{Scheme: "unix", Host: fmt.Sprintf("/proc/self/fd/%d/%s", d.dir.Fd(), peerSocket)}
}

// link is called when etcd listens. The socket stays reachable by a descriptor alone: a file of this kind would be in the way
// of whoever copies the directory.
func (d *peerDoor) link() error {
	path := d.url().Host
	socket, err := os.OpenFile(path, unix.O_PATH, 0)
	if err != nil {
		return fmt.Errorf("while opening etcd's own socket: %w", err)
	}
	d.socket.Store(socket)
	return os.Remove(path)
}

// dial reaches etcd.
func (d *peerDoor) dial(ctx context.Context) (net.Conn, error) {
	socket := d.socket.Load()
	if socket == nil {
		return nil, errors.New("etcd does not listen yet")
	}
	dialer := &net.Dialer{Timeout: peerIdle}
	return dialer.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d", socket.Fd()))
}

// serve ends when the listener is closed.
func (d *peerDoor) serve() {
	for {
		conn, err := d.listener.Accept()
		switch {
		case err == nil:
			d.done.Go(func() { d.pass(conn) })
		case errors.Is(err, net.ErrClosed):
			return
		default: // such as no descriptors
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// pass lets one member through, until one side ends.
func (d *peerDoor) pass(raw net.Conn) {
	defer raw.Close()
	if !d.enter(raw) {
		return
	}
	defer d.leave(raw)
	conn := tls.Server(raw, d.config)
	ctx, cancel := context.WithTimeout(context.Background(), 2*peerIdle)
	defer cancel()
	if conn.HandshakeContext(ctx) != nil {
		return
	}
	if in, ok := raw.(*doors.Conn); ok {
		in.Own() // the certificate is a member's
	}
	inner, err := d.dial(ctx)
	if err != nil {
		return
	}
	defer inner.Close()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(inner, conn) // however it ends, the other side is told by the end of the connection
		inner.Close()
	})
	_, _ = io.Copy(patient{conn}, inner)
	conn.Close()
	both.Wait()
}

// patient waits for each piece that is sent to be taken, and not without an end.
type patient struct{ net.Conn }

func (p patient) Write(b []byte) (int, error) {
	if err := p.SetWriteDeadline(time.Now().Add(peerIdle)); err != nil {
		return 0, err
	}
	return p.Conn.Write(b)
}

func (d *peerDoor) enter(c net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.open[c] = struct{}{}
	}
	return !d.closed
}

func (d *peerDoor) leave(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, c)
}

// close closes the port and what is left of its connections. It is called when etcd has ended, and
// has closed its own.
func (d *peerDoor) close() {
	d.listener.Close()
	d.mu.Lock()
	d.closed = true
	for c := range d.open {
		c.Close()
	}
	d.mu.Unlock()
	d.done.Wait()
	d.dir.Close()
	if socket := d.socket.Load(); socket != nil {
		socket.Close()
	}
}
