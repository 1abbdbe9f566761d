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

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// clientScript is what a client does; its comment says how it tells of it.
//
//go:embed client.sh
var clientScript string

// client writes and reads while other things happen to the cluster.
type client struct {
	bed     *bed
	name    string
	host    *hosts.Host
	command []string // the client's command, but for its last word
	mount   string   // where what it uses is mounted; empty for nothing
	process *hosts.Process
}

// startClient has a host that runs a server write to a new pool, by the real rados, and returns when the first object is written. The pool's
// placement groups are not split: an object stays in the one that Ceph tells of it.
func (b *bed) startClient(number int) *client {
	b.Helper()
	b.ceph("osd", "pool", "create", "client", "8", "--autoscale-mode", "off")
	b.ceph("osd", "pool", "application", "enable", "client", "test")
	c := b.newClient(number, "client")
	c.command = append([]string{b.Binary, "ceph", "shell", "--"}, c.script("rados", "client")...)
	c.start(b)
	return c
}

// mountVolume mounts a volume by FUSE on a host, as its status says, and has a client write to it. args are further ones of
// 'holdfast get'.
func (b *bed) mountVolume(number int, name string, args ...string) *client {
	b.Helper()
	var v api.Volume
	b.await("volume "+name+" to have a source", func() (err error) {
		if v, err = read[api.Volume](b, 1, "volumes", name, args...); err == nil && v.Status.Source == "" {
			err = fmt.Errorf("%s: %s", v.Status.State, v.Status.Message)
		}
		return err
	})
	c := b.newClient(number, name)
	c.mount = c.dir() + "/mount"
	place := c.mount + "/" + c.host.Name // clients on several hosts may use one volume
	c.command = c.script("mount", place)
	options := "log-level=WARNING"
	if len(v.Status.Backups) > 0 {
		options += ",backup-volfile-servers=" + strings.Join(v.Status.Backups, ":")
	}
	c.host.Run(b, context.Background(), "mkdir", c.mount)
	c.host.Run(b, context.Background(), "mount", "-t", "glusterfs", "-o", options, v.Status.Source, c.mount)
	c.host.Run(b, context.Background(), "mkdir", place)
	c.start(b)
	return c
}

func (b *bed) newClient(number int, name string) *client {
	b.Helper()
	c := &client{bed: b, name: name, host: b.Lab.Host(number)}
	if err := os.MkdirAll(c.host.Path(c.dir()), 0o700); err != nil {
		b.Fatalf("%v", err)
	}
	return c
}

// dir is where the client keeps what it knows, on its host.
func (c *client) dir() string { return "/var/lib/client-" + c.name }

func (c *client) script(store, place string) []string {
	return []string{"bash", "-c", clientScript, "client", c.dir(), store, place}
}

func (c *client) run(ctx context.Context, args ...string) *hosts.Cmd {
	return c.host.Command(ctx, c.command[0], append(c.command[1:len(c.command):len(c.command)], args...)...)
}

// start has the client write, and returns when its first object is written.
func (c *client) start(b *bed) {
	b.Helper()
	c.process = c.host.Launch(b, "client-"+c.name, c.run(context.Background(), "write"))
	b.await("the client's first object", c.writes(0))
}

// lines are those of one of the client's lists.
func (c *client) lines(list string) int {
	text, err := os.ReadFile(c.host.Path(c.dir() + "/" + list))
	if err != nil {
		return 0
	}
	return strings.Count(string(text), "\n")
}

// written is how many objects were acknowledged.
func (c *client) written() int { return c.lines("written") }

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

// end stops the client, reads everything back that was ever acknowledged, and unmounts what it used.
func (c *client) end(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(c.host.Path(c.dir()+"/stop"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	(&bed{t, c.bed.Home}).await("the client to end", func() error {
		select {
		case <-c.process.Done():
			return nil
		default:
			return errors.New("it goes on")
		}
	})
	c.verify(t, 0)
	if c.mount != "" {
		c.host.Run(t, t.Context(), "umount", c.mount)
	}
}

// verify fails the test unless everything reads as it was written, now and while the client wrote; with most, as many of the objects at least where
// there are more.
func (c *client) verify(t *testing.T, most int) {
	t.Helper()
	args := []string{"verify"}
	if most > 0 {
		args = append(args, strconv.Itoa(most))
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	before := c.written()
	out, err := c.run(ctx, args...).Output() // librados complains on standard error of mons that are away
	if err != nil {
		t.Errorf("reading back what the client wrote: %v\n%s", err, out)
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(out))); err != nil || n < before && (most == 0 || n < most) || n > c.written() || n == 0 {
		t.Errorf("%q objects read back, %d were written", out, c.written())
	}
	if wrong, err := os.ReadFile(c.host.Path(c.dir() + "/wrong")); err == nil {
		t.Errorf("read back wrong while it wrote: %s", wrong)
	}
	t.Logf("%s: the client on %s wrote %d objects; %d attempts failed on the way and were repeated", c.name, c.host.Name, c.written(), c.lines("failed"))
	if text, err := os.ReadFile(c.host.Path(c.dir() + "/log")); err == nil && len(text) > 0 {
		t.Logf("the first failures:\n%s", text[:min(len(text), 1000)])
	}
}
