package etcd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStart_etcdEnds: where etcd would end the process while it starts, as on a full disk, the caller goes on and gets the reason. It used
// to end the goroutine of the caller: a server sat there for ever and said nothing.
func TestStart_etcdEnds(t *testing.T) {
	t.Parallel()
	c := loneConfig(t)
	if err := os.MkdirAll(filepath.Join(c.Dir, "member"), 0o700); err != nil {
		t.Fatal(err)
	}
	// A file where etcd wants a directory: it cannot go on without it.
	if err := os.WriteFile(filepath.Join(c.Dir, "member", "snap"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		defer close(done)
		_, err := Start(t.Context(), c)
		done <- err
	}()
	err, returned := <-done
	if !returned {
		t.Fatal("the goroutine of the caller was ended")
	}
	if !Fatal(err) || !strings.Contains(err.Error(), "failed to create snapshot directory") {
		t.Errorf("got %v", err)
	}
}
