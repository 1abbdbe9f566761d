package e2e

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// glusterScript is what a client of a volume does; its comment says how it tells of it.
//
//go:embed gluster.sh
var glusterScript string

// glusterBed is a lab with servers on three hosts, an agent on each other one, and two disks in each host.
func glusterBed(t *testing.T, count int) *bed {
	t.Helper()
	lab := hosts.New(t, hosts.Options{Count: count, Disks: 2, DiskSize: 2 << 30})
	b := &bed{t, home.StartServers(t, lab, binary, 3)}
	for n := 4; n <= count; n++ {
		b.StartAgent(t, n, b.Token(t, "agent"))
	}
	b.AwaitHosts(t, count)
	return b
}

// glusterPool declares a cluster, in whose pool the test waits for work and not for clocks.
const glusterPool = `apiVersion: holdfast.io/v1alpha1
kind: StorageCluster
metadata: {name: gluster}
spec: {type: glusterfs, deletionPolicy: Wipe, interval: 2s, glusterfs: {options: {network.ping-timeout: "10", cluster.heal-timeout: "5"}}}
`

// glusterNode declares a host with its disks for the cluster.
func glusterNode(h *hosts.Host) string {
	return fmt.Sprintf(`---
apiVersion: holdfast.io/v1alpha1
kind: StorageNode
metadata: {name: %s}
spec:
  type: glusterfs
  cluster: gluster
  nodeSelector: {kubernetes.io/hostname: %s}
  storageNetwork: {ips: [%s]}
  devices: [%q, %q]
  glusterfs: {zone: %s}
`, h.Name, h.Name, h.IP, h.Disk(0).ID(), h.Disk(1).ID(), strings.TrimPrefix(h.Name, "h"))
}

// glusterVolume declares a volume.
func glusterVolume(name, size, durability string) string {
	return fmt.Sprintf(`---
apiVersion: holdfast.io/v1alpha1
kind: Volume
metadata: {name: %s}
spec: {cluster: gluster, size: %s, durability: {%s}, deletionPolicy: Wipe}
`, name, size, durability)
}

// applies applies a manifest on a host that must take it.
func (b *bed) applies(host int, manifest string) {
	b.Helper()
	if out, code := b.apply(host, manifest); code != 0 {
		b.Fatalf("holdfast apply ended with %d:\n%s", code, out)
	}
}

// bricksServe checks that the volume has so many bricks, and that all of them serve and agree.
func (b *bed) bricksServe(server int, name string, count int) func() error {
	return func() error {
		v, err := read[api.Volume](b, server, "volumes", name)
		if err != nil {
			return err
		}
		online := 0
		for _, brick := range v.Status.Bricks {
			if brick.Online {
				online++
			}
		}
		if online != count || len(v.Status.Bricks) != count || v.Status.Heals != 0 || v.Status.State != api.VolumeOnline {
			return fmt.Errorf("%d of %d bricks serve, %d entries to heal, %s: %s", online, len(v.Status.Bricks), v.Status.Heals, v.Status.State, v.Status.Message)
		}
		return nil
	}
}

// patiently waits longer than await does: what is healed or moved takes its time on a busy machine.
func (b *bed) patiently(what string, check func() error) {
	b.Helper()
	begin := time.Now()
	for check() != nil && time.Since(begin) < limit {
		time.Sleep(200 * time.Millisecond)
	}
	if err := check(); err != nil {
		b.Fatalf("waited %s for %s: %v\n%s", limit, what, err, b.glusterText())
	}
	b.Logf("%s: after %.1f s", what, time.Since(begin).Seconds())
}

// glusterText is what a person would look at first.
func (b *bed) glusterText() string {
	var text strings.Builder
	for _, args := range [][]string{{"get", "storagestatuses", "-o", "yaml"}, {"get", "volumes", "-o", "yaml"}, {"get", "daemons"}, {"get", "plans"}} {
		for n := range b.Lab.Hosts()[:3] {
			if out, err := b.HoldfastOn(n+1, args...); err == nil {
				fmt.Fprintf(&text, "== holdfast %s\n%s\n", strings.Join(args, " "), out)
				break
			}
		}
	}
	return text.String()
}

// mountClient writes to a mounted volume while other things happen.
type mountClient struct {
	bed     *bed
	host    *hosts.Host
	process *hosts.Process
}

const volumeMount = "/mnt"

// mountVolume mounts a volume by FUSE on a host, as its status says, and starts the client.
func (b *bed) mountVolume(number int, name string) *mountClient {
	b.Helper()
	v, err := read[api.Volume](b, 1, "volumes", name)
	if err != nil || v.Status.Source == "" {
		b.Fatalf("volume %s has no source: %v, %+v", name, err, v.Status)
	}
	c := &mountClient{bed: b, host: b.Lab.Host(number)}
	options := "log-level=WARNING"
	if len(v.Status.Backups) > 0 {
		options += ",backup-volfile-servers=" + strings.Join(v.Status.Backups, ":")
	}
	c.host.Run(b, context.Background(), "mount", "-t", "glusterfs", "-o", options, v.Status.Source, volumeMount)
	if err := os.MkdirAll(c.host.Path(clientDir), 0o700); err != nil {
		b.Fatalf("%v", err)
	}
	c.process = c.host.Launch(b, "client", c.shell("write"))
	b.await("the client's first file", c.writes(0))
	return c
}

func (c *mountClient) shell(verb string) *hosts.Cmd {
	return c.host.Command(context.Background(), "bash", "-c", glusterScript, "client", clientDir, volumeMount, verb)
}

func (c *mountClient) written() int {
	text, err := os.ReadFile(c.host.Path(clientDir + "/written"))
	if err != nil {
		return 0
	}
	return strings.Count(string(text), "\n")
}

func (c *mountClient) writes(before int) func() error {
	return func() error {
		if now := c.written(); now <= before {
			return fmt.Errorf("%d files are written, as before", now)
		}
		return nil
	}
}

// goesOn waits until the client writes something new.
func (c *mountClient) goesOn(t *testing.T) {
	t.Helper()
	(&bed{t, c.bed.Home}).await("the client to write on", c.writes(c.written()))
}

// end stops the client, reads back everything that was ever written, and unmounts the volume.
func (c *mountClient) end(t *testing.T) {
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
	verify := c.shell("verify")
	out, err := verify.CombinedOutput()
	if err != nil {
		t.Errorf("reading back what the client wrote: %v\n%s", err, out)
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(out))); err != nil || n != c.written() || n == 0 {
		t.Errorf("%q files read back, %d were written", out, c.written())
	}
	if wrong, err := os.ReadFile(c.host.Path(clientDir + "/wrong")); err == nil {
		t.Errorf("read back wrong while it wrote: %s", wrong)
	}
	failed, _ := os.ReadFile(c.host.Path(clientDir + "/log"))
	t.Logf("the client wrote %d files and read them all back; errors on the way: %d", c.written(), strings.Count(string(failed), "error"))
	c.host.Run(t, ctx, "umount", volumeMount)
}

// glusterProcesses are the processes of GlusterFS as "host program".
func (b *bed) glusterProcesses() []string {
	b.Helper()
	var all []string
	for _, h := range b.Lab.Hosts() {
		if !h.On() {
			continue
		}
		for line := range strings.Lines(h.Run(b, context.Background(), "ps", "-e", "-o", "args=")) {
			f := strings.Fields(line)
			if len(f) > 0 && slices.Contains([]string{"glusterd", "glusterfsd", "glusterfs"}, f[0][strings.LastIndex(f[0], "/")+1:]) {
				all = append(all, h.Name+" "+strings.TrimSpace(line))
			}
		}
	}
	return all
}
