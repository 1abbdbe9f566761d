package e2e

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/test/hosts"
)

// clientScript is what a client does; its comment says how it tells of it.
//
//go:embed client.sh
var clientScript string

// client writes and reads while other things happen to the cluster.
type client struct {
	bed     *bed
	host    *hosts.Host
	process *hosts.Process
}

const clientDir = "/var/lib/client"

// startClient has a host that runs a server write to a new pool, by the real rados, and returns when the first object is written.
func (b *bed) startClient(number int) *client {
	b.Helper()
	b.ceph("osd", "pool", "create", "client", "8")
	b.ceph("osd", "pool", "application", "enable", "client", "test")
	c := &client{bed: b, host: b.Lab.Host(number)}
	if err := os.MkdirAll(c.host.Path(clientDir), 0o700); err != nil {
		b.Fatalf("%v", err)
	}
	c.process = c.host.Launch(b, "client", c.shell("write"))
	b.await("the client's first object", c.writes(0))
	return c
}

func (c *client) shell(verb string) *hosts.Cmd {
	return c.host.Command(context.Background(), c.bed.Binary, "ceph", "shell", "--", "bash", "-c", clientScript, "client", clientDir, verb)
}

// written is how many objects Ceph acknowledged.
func (c *client) written() int {
	text, err := os.ReadFile(c.host.Path(clientDir + "/written"))
	if err != nil {
		return 0
	}
	return strings.Count(string(text), "\n")
}

// writes returns a check of whether more than so many objects are written.
func (c *client) writes(before int) func() error {
	return func() error {
		if now := c.written(); now <= before {
			return fmt.Errorf("%d objects are written, as before", now)
		}
		return nil
	}
}

// goesOn waits until the client writes something new: storage serves.
func (c *client) goesOn(t *testing.T) {
	t.Helper()
	(&bed{t, c.bed.Home}).await("the client to write on", c.writes(c.written()))
}

// end stops the client and reads everything back that was ever acknowledged.
func (c *client) end(t *testing.T) {
	t.Helper()
	b := &bed{t, c.bed.Home}
	if err := os.WriteFile(c.host.Path(clientDir+"/stop"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.await("the client to end", func() error {
		select {
		case <-c.process.Done():
			return nil
		default:
			return errors.New("it goes on")
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := c.host.Command(ctx, b.Binary, "ceph", "shell", "--", "bash", "-c", clientScript, "client", clientDir, "verify")
	out, err := cmd.Output() // librados complains on standard error of mons that are away
	if err != nil {
		t.Fatalf("reading back what the client wrote: %v\n%s", err, out)
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(out))); err != nil || n != c.written() || n == 0 {
		t.Errorf("%q objects read back, %d were written", out, c.written())
	}
	if wrong, err := os.ReadFile(c.host.Path(clientDir + "/wrong")); err == nil {
		t.Errorf("read back wrong while it wrote: %s", wrong)
	}
	t.Logf("the client wrote %d objects and read them all back", c.written())
}
