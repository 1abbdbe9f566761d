package etcd

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/control/doors"
)

// TestMember_openHandshakes: who opens connections to the port for peers, and shows no certificate,
// has few of them, and keeps no member out.
func TestMember_openHandshakes(t *testing.T) {
	t.Parallel()
	c := loneConfig(t)
	c.Peers = doors.Bounds{Strangers: 16, PerAddress: 16}
	m, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	if _, err := os.Lstat(filepath.Join(c.Dir, peerSocket)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is in the way of who copies the directory: %v", err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(c.PeerPort))
	ended := make(chan struct{}, 100)
	for range cap(ended) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := conn.Write([]byte{22, 3, 1, 2, 0, 1, 0}); err != nil {
			t.Fatal(err)
		}
		go func() {
			// A byte now and then.
			for _, err := conn.Write([]byte{0}); err == nil; _, err = conn.Write([]byte{0}) {
				time.Sleep(time.Second)
			}
			_, _ = io.Copy(io.Discard, conn)
			ended <- struct{}{}
		}()
	}
	if !m.Answers(t.Context(), PeerURL(c.Address, c.PeerPort)) {
		t.Error("a member is not let in")
	}
	limit := time.After(20 * time.Second)
	for i := range cap(ended) {
		select {
		case <-ended:
		case <-limit:
			t.Fatalf("%d connections are still open", cap(ended)-i)
		}
	}
}
