package e2e

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// filesystemYAML is the Filesystem home of the cluster with these further lines of its spec, and its client.
func filesystemYAML(lines ...string) string {
	return fmt.Sprintf("---\napiVersion: holdfast.io/v1alpha1\nkind: Filesystem\nmetadata: {name: home}\nspec:\n  cluster: ceph\n  %s\n", strings.Join(lines, "\n  "))
}

const desktopYAML = "---\napiVersion: holdfast.io/v1alpha1\nkind: Client\nmetadata: {name: desktop}\nspec:\n  cluster: ceph\n" +
	"  caps: {mon: allow r, mds: allow rw, osd: allow rw tag cephfs data=home}\n"

// TestFilesystem has a filesystem mounted by ceph-fuse, whose client writes while the MDS at work is killed, hosts leave service and come
// back, and more MDS share the work; its deletion waits for the client.
func TestFilesystem(t *testing.T) {
	begin(t)
	b := newStorageBed(t, 4, 1)
	wanted := home.SpecFor(b.Lab, 3, 2, 1)
	wanted.Interval = "2s"
	delete(wanted.Devices, b.Lab.Host(4).Name) // which has nothing but an MDS
	placed := []string{`placement: {pattern: "*"}`, "deletionPolicy: Wipe", "subvolumeGroups: [{name: users, quota: 1Gi}]"}
	b.mustApply(wanted.YAML() + filesystemYAML(placed...) + desktopYAML)
	b.filesystemMade()
	c := b.mountFilesystem(1)
	for _, step := range []struct {
		name string
		do   func(*bed)
	}{
		{"the MDS at work is killed", (*bed).mdsKilled},
		{"a host is drained", (*bed).mdsDrained},
		{"the host of the MDS at work is in maintenance", (*bed).mdsMaintained},
		{"two share the work, and one has it again", func(b *bed) { b.mdsShare(placed) }},
		{"it is served by NFS", func(b *bed) { b.filesystemByNFS(c) }},
		{"what cannot be is refused", (*bed).filesystemsRefused},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			step.do(&bed{t, b.Home})
			c.goesOn(t)
		}) {
			return
		}
	}
	b.filesystemInUse(c)
}

func (b *bed) filesystem() (api.FilesystemStatus, error) {
	f, err := read[api.Filesystem](b, 1, "filesystems", "home")
	return f.Status, err
}

// filesystemIs checks a filesystem that is Online.
func (b *bed) filesystemIs(check func(api.FilesystemStatus) bool) func() error {
	return func() error {
		s, err := b.filesystem()
		if err == nil && (s.State != api.ResourceOnline || !check(s)) {
			err = fmt.Errorf("it is %s: %s (active %s, standby %s, %d clients)", s.State, s.Message, s.Active, s.Standby, s.Clients)
		}
		return err
	}
}

func (b *bed) filesystemMade() {
	b.Helper()
	s, err := b.filesystem()
	if err != nil || s.State != api.ResourceOnline || s.Active == "" || s.Standby == "" || len(s.SubvolumeGroups) != 1 || len(s.Pools) != 2 {
		b.Fatalf("%+v, %v", s, err)
	}
	b.cephSays("1073741824", "fs", "subvolumegroup", "info", "home", "users")
	// Ceph's autoscaler gives the data pool more placement groups when it likes, and these peer.
	b.await("Ceph to be well", func() error { return b.health(3, 3) })
}

// mountFilesystem mounts the filesystem by FUSE, as the client that was declared for it, and has a client write to it.
func (b *bed) mountFilesystem(number int) *client {
	b.Helper()
	c := b.newClient(number, "desktop")
	c.mount = c.dir() + "/mount"
	c.host.Run(b, b.Context(), "mkdir", c.mount)
	b.holdfast(number-1, "ceph", "client-files", "desktop", c.dir())
	b.await("the filesystem to be mounted", func() error {
		_, err := c.host.Try(b.Context(), "timeout", "20", "ceph-fuse", "--conf", c.dir()+"/ceph.conf", "--keyring", c.dir()+"/ceph.client.desktop.keyring",
			"-n", "client.desktop", "--client_fs", "home", c.mount)
		return err
	})
	c.command = c.script("mount", c.mount)
	c.start(b)
	b.await("the client to be seen", b.filesystemIs(func(s api.FilesystemStatus) bool { return s.Clients == 1 }))
	return c
}

// mdsAtWork is the Daemon of the MDS at work.
func (b *bed) mdsAtWork() api.Daemon {
	b.Helper()
	s, err := b.filesystem()
	if err != nil {
		b.Fatal(err)
	}
	first, _, _ := strings.Cut(s.Active, ",")
	return b.daemon("ceph-mds-" + first)
}

// mdsHosts are the numbers of the hosts that have MDS.
func (b *bed) mdsHosts() (numbers []int) {
	b.Helper()
	for _, p := range b.cephProcesses() {
		for i := range b.Lab.Hosts() {
			if strings.HasPrefix(p, b.Lab.Host(i+1).Name+" ceph-mds ") {
				numbers = append(numbers, i+1)
			}
		}
	}
	return numbers
}

// mdsKilled kills the MDS at work. Its agent starts it again at once: which of the two works after that is Ceph's choice.
func (b *bed) mdsKilled() {
	d := b.mdsAtWork()
	start := time.Now()
	b.hostNamed(d.Spec.Host).Run(b, b.Context(), "bash", "-c", "kill -9 $(pgrep -x ceph-mds)")
	b.await("the MDS to run again", func() error {
		if now := b.daemon(d.Name); now.Status.PID == d.Status.PID || now.Status.State != api.DaemonRunning {
			return fmt.Errorf("it is %s, as process %d", now.Status.State, now.Status.PID)
		}
		return nil
	})
	b.await("one MDS to be at work, and one to stand by", b.filesystemIs(func(s api.FilesystemStatus) bool { return s.Active != "" && s.Standby != "" }))
	b.Logf("%s was killed; both were there again after %.1f s", d.Spec.ID, time.Since(start).Seconds())
}

// mdsDrained drains the fourth host, which has nothing but an MDS: another one is there before it goes.
func (b *bed) mdsDrained() {
	if !slices.Contains(b.mdsHosts(), 4) {
		b.Fatalf("the MDS are on the hosts %v", b.mdsHosts())
	}
	b.setMode(4, api.HostDrain)
	b.await("the fourth host to be empty", func() error {
		word, err := b.hostWord(4)
		if left := b.runsOn(4); err == nil && len(left)+len(word) > 0 {
			err = fmt.Errorf("%v, %s", left, word)
		}
		return err
	})
	b.await("the filesystem to be well", b.filesystemIs(func(s api.FilesystemStatus) bool { return s.Standby != "" }))
	b.setMode(4, api.HostActive)
}

// mdsMaintained has the host of the MDS at work out of service for a while.
func (b *bed) mdsMaintained() {
	d := b.mdsAtWork()
	number := 1 + slices.IndexFunc(b.Lab.Hosts(), func(h *hosts.Host) bool { return h.Name == d.Spec.Host })
	if number == 1 { // where the client is, whose API server is asked: an MDS that fails hands over
		b.ceph("mds", "fail", d.Spec.ID)
		b.await("another MDS to be at work", b.filesystemIs(func(s api.FilesystemStatus) bool { return s.Active != d.Spec.ID }))
		b.mdsMaintained()
		return
	}
	b.setMode(number, api.HostMaintenance)
	b.await("the host to be in maintenance", func() error {
		word, err := b.hostWord(number)
		if left := b.runsOn(number); err == nil && len(left)+len(word) > 0 {
			err = fmt.Errorf("%v, %s", left, word)
		}
		return err
	})
	b.await("another MDS to be at work", func() error {
		s, err := b.filesystem()
		if err == nil && (s.Active == "" || s.Active == d.Spec.ID || s.State == api.ResourceOffline) {
			err = fmt.Errorf("it is %s: %s (active %s)", s.State, s.Message, s.Active)
		}
		return err
	})
	b.setMode(number, api.HostActive)
	b.await("the filesystem to be well", b.filesystemIs(func(s api.FilesystemStatus) bool { return s.Standby != "" }))
}

func (b *bed) mdsShare(placed []string) {
	b.mustApply(filesystemYAML(append(slices.Clone(placed), "activeMDS: 2")...))
	b.await("two MDS to be at work", b.filesystemIs(func(s api.FilesystemStatus) bool { return strings.Contains(s.Active, ",") && s.Standby != "" }))
	if n := len(b.mdsHosts()); n != 3 {
		b.Errorf("%d MDS run", n)
	}
	b.mustApply(filesystemYAML(placed...))
	b.await("one MDS to be at work", b.filesystemIs(func(s api.FilesystemStatus) bool { return !strings.Contains(s.Active, ",") && s.Standby != "" }))
	b.await("the third MDS to be gone", func() error {
		if n := len(b.mdsHosts()); n != 2 {
			return fmt.Errorf("%d MDS run", n)
		}
		return nil
	})
}

// filesystemByNFS exports the filesystem by NFS, too: what a client in user space writes there, the other one reads.
func (b *bed) filesystemByNFS(c *client) {
	b.mustApply("---\napiVersion: holdfast.io/v1alpha1\nkind: NFSExport\nmetadata: {name: home}\nspec: {cluster: ceph, filesystem: home, squash: None}\n")
	b.await("the export to be served", b.exported(1, "home"))
	b.nfsPut("home", "by-nfs")
	if text := c.host.Run(b, b.Context(), "cat", c.mount+"/by-nfs"); text != "by-nfs" {
		b.Errorf("what was written by NFS reads %q", text)
	}
	b.filesystemRights(c)
	b.holdfast(0, "delete", "nfsexport", "home")
	b.await("the NFS server to be gone", func() error {
		if out := b.ceph("auth", "ls"); strings.Contains(out, "client.nfs.") {
			return errors.New("its key is left")
		}
		return nil
	})
}

// filesystemRights has an export of the filesystem give other directories to other hosts, and no more those of before.
func (b *bed) filesystemRights(c *client) {
	c.host.Run(b, b.Context(), "bash", "-c", `cd "$0" && echo -n root >who && mkdir sub && echo -n sub >sub/who`, c.mount)
	r := b.rightsOf(func(more string) string {
		return "---\napiVersion: holdfast.io/v1alpha1\nkind: NFSExport\nmetadata: {name: rights}\nspec: {cluster: ceph, filesystem: home" + more + "}\n"
	})
	r.is(", clients: ["+r.a.IP+"]", r.a, r.b, "root")
	r.is(", clients: ["+r.b.IP+"]", r.b, r.a, "root")
	r.is(", path: /sub, clients: ["+r.a.IP+"]", r.a, r.b, "sub")
	r.is(", path: /, clients: ["+r.b.IP+"]", r.b, r.a, "root")
	b.holdfast(0, "delete", "nfsexport", "rights")
}

func (b *bed) filesystemsRefused() {
	for _, tt := range []struct{ spec, want string }{
		{"dataPools: [{erasureCoded: {dataChunks: 2, codingChunks: 1}}]", "the first data pool has to be replicated"},
		{"metadataPool: {erasureCoded: {dataChunks: 2, codingChunks: 1}}", "the metadata pool has to be replicated"},
		{"metadataPool: {replicated: {size: 2, minSize: 3}}", "minSize cannot be more than size"},
		{"placement: {hosts: [nowhere]}", "placement selects no host: no host matches hosts nowhere"},
		{"dataPools: [{name: home-data}]", "has a pool of this name"},
		{"metadataPool: {replicated: {size: 4}, failureDomain: host}", "pool bad-metadata: it needs 4 hosts with OSDs"},
	} {
		out, code := b.apply(1, strings.Replace(filesystemYAML(tt.spec), "name: home}", "name: bad}", 1), "--wait", "--timeout", "30s")
		if code != 3 || !strings.Contains(out, tt.want) {
			b.Errorf("holdfast apply with %s ended with %d:\n%s", tt.spec, code, out)
		}
	}
	if out := b.ceph("fs", "ls") + b.ceph("osd", "pool", "ls"); strings.Contains(out, "bad") {
		b.Errorf("something was made of what was refused: %s", out)
	}
	b.holdfast(0, "delete", "filesystem", "bad", "--ignore-not-found")
}

// filesystemInUse deletes the filesystem with its data, which has to be named, waits for the client, and leaves nothing behind.
func (b *bed) filesystemInUse(c *client) {
	b.Helper()
	out, code := b.holdfastSays("delete", "filesystem", "home")
	name := regexp.MustCompile(`--plan (plan-[0-9a-f]+)`).FindStringSubmatch(out)
	if code != 3 || name == nil {
		b.Fatalf("holdfast delete ended with %d:\n%s", code, out)
	}
	b.holdfast(0, "delete", "--plan", name[1], "--wait=false")
	b.await("the deletion to wait for the client", func() error {
		s, err := b.filesystem()
		if err == nil && !strings.Contains(s.Message, "mounted by client.desktop on host "+c.host.Name+" at "+c.mount) {
			err = errors.New(s.Message)
		}
		return err
	})
	c.goesOn(b.T)
	c.end(b.T)
	b.await("the filesystem to be gone", func() error {
		if left := list[api.Filesystem](b, "filesystems"); len(left) > 0 {
			return errors.New(left[0].Status.Message)
		}
		return nil
	})
	b.holdfast(0, "delete", "client", "desktop")
	if out := fmt.Sprintln(b.ceph("fs", "ls"), b.ceph("osd", "pool", "ls"), b.keys()); strings.Contains(out, "home") || strings.Contains(out, "mds.") {
		b.Errorf("left behind: %s", out)
	}
	b.await("Ceph to be well", func() error { return b.health(3, 3) })
	b.noOrphans()
}
