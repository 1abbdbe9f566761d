package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// TestGlusterUpgrade upgrades the packages of three hosts at once, from Debian's GlusterFS 10 to the 11 of its backports, while a client
// with the old release writes. The nodes are restarted one after the other, none rejects another, the operating version is raised, and
// nothing is lost. The size of a volume is enforced before and after.
func TestGlusterUpgrade(t *testing.T) {
	begin(t)
	packages := glusterEleven(t)
	b := glusterBed(t, 4)
	spec := glusterPool + glusterVolume("data", "500Mi", "replicate: {count: 3}") + strings.Replace(
		glusterVolume("small", "40Mi", "replicate: {count: 3}"), "size:", "sizePolicy: Enforced, size:", 1)
	for _, h := range b.Lab.Hosts()[:3] {
		spec += glusterNode(h, 1)
	}
	b.applies(1, spec)
	b.awaitPool("the volumes to serve", b.allServe(1, 3, "data", "small"))
	b.awaitPool("the size to be enforced", b.limited("small"))
	b.stopsAt(t, 40<<20)
	c := b.mountVolume(4, "data")
	for _, h := range b.Lab.Hosts()[:3] {
		upgrade(t, h, packages)
	}
	failed := c.lines("failed")
	for n := 1; n <= 3; n++ {
		b.awaitPool(fmt.Sprintf("%d nodes to run version 11", n), b.runEleven(n))
		c.goesOn(t)
	}
	b.awaitPool("all bricks to serve, healed", b.allServe(1, 3, "data", "small"))
	b.awaitPool("the operating version to be raised", b.opVersion(110000))
	if now := c.lines("failed"); now > failed {
		t.Errorf("%d of the client's attempts failed", now-failed)
	}
	b.stopsAt(t, 40<<20)
	c.goesOn(t)
	c.end(t)
	b.copiesAgree(c, false)
	b.glusterGone(spec)
}

// glusterEleven gets the packages of GlusterFS 11, and returns their directory.
func glusterEleven(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	script := `set -e; cd "$0"; mkdir -p lists/partial cache/archives/partial debs
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm-backports main" > sources.list
apt="-q -o Dir::Etc::SourceList=$PWD/sources.list -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists=$PWD/lists -o Dir::Cache=$PWD/cache
  -o Acquire::Check-Valid-Until=false -o APT::Sandbox::User=root"
apt-get $apt update
cd debs
for p in glusterfs-server glusterfs-common glusterfs-cli glusterfs-client libglusterfs0 libgfrpc0 libgfxdr0 libgfapi0 libgfchangelog0; do
  apt-get $apt download "$(apt-cache $apt madison $p | awk '{print $1 "=" $3; exit}')"
done`
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "bash", "-c", script, dir).CombinedOutput(); err != nil {
		t.Fatalf("while getting GlusterFS 11 from Debian's backports: %v\n%s", err, out)
	}
	return filepath.Join(dir, "debs")
}

// upgrade lays the files of the packages over those of the machine, for one host alone. What runs goes on with the old ones.
func upgrade(t *testing.T, h *hosts.Host, packages string) {
	t.Helper()
	tree := h.Path("var/gluster11")
	script := `set -e; mkdir -p "$1"; for d in "$0"/*.deb; do dpkg-deb -x "$d" "$1"; done
for d in bin sbin lib; do if [ -d "$1/$d" ]; then cp -a "$1/$d/." "$1/usr/$d/"; fi; done`
	if out, err := exec.CommandContext(t.Context(), "bash", "-c", script, packages, tree).CombinedOutput(); err != nil {
		t.Fatalf("while unpacking GlusterFS 11: %v\n%s", err, out)
	}
	h.Run(t, t.Context(), "mount", "-t", "overlay", "overlay", "-o", "lowerdir=/var/gluster11/usr:/usr", "/usr")
	if out := h.Run(t, t.Context(), "glusterd", "--version"); !strings.HasPrefix(out, "glusterfs 11.") {
		t.Fatalf("%s has %s", h.Name, out)
	}
}

// runEleven checks that at least so many nodes run version 11, and that no two are down.
func (b *bed) runEleven(count int) func() error {
	return func() error {
		eleven, down := 0, 0
		for _, d := range list[api.Daemon](b, "daemons") {
			if d.Status.State != api.DaemonRunning {
				down++
			} else if strings.HasPrefix(d.Status.Version, "11.") {
				eleven++
			}
		}
		if down > 1 {
			b.Fatalf("%d nodes are down at a time", down)
		}
		if eleven < count {
			return fmt.Errorf("%d nodes run version 11", eleven)
		}
		return nil
	}
}

func (b *bed) opVersion(want int32) func() error {
	return func() error {
		s, err := read[api.StorageStatus](b, 1, "storagestatuses", "gluster")
		if err == nil && (s.Status.GlusterFS == nil || s.Status.GlusterFS.OpVersion < want || s.Status.Status != api.StorageOnline) {
			err = fmt.Errorf("%s %v %+v", s.Status.Status, s.Status.Reasons, s.Status.GlusterFS)
		}
		return err
	}
}

// limited checks that the whole size of a volume is its limit.
func (b *bed) limited(name string) func() error {
	return func() error {
		v, err := read[api.Volume](b, 1, "volumes", name)
		if err == nil && (v.Status.Limit == nil || v.Status.Limit.Cmp(v.Spec.Size) != 0) {
			err = fmt.Errorf("limit %v: %s", v.Status.Limit, v.Status.Message)
		}
		return err
	}
}

// stopsAt fills the volume small until no more can be written, and empties it again.
func (b *bed) stopsAt(t *testing.T, size int64) {
	t.Helper()
	v, err := read[api.Volume](b, 1, "volumes", "small")
	if err != nil {
		t.Fatal(err)
	}
	const script = `mkdir -p /tmp/small && mount -t glusterfs "$0" /tmp/small || exit 9
LC_ALL=C dd if=/dev/zero of=/tmp/small/file bs=1M count=80 conv=fsync 2>&1; stat -c 'size %s' /tmp/small/file; rm /tmp/small/file; umount /tmp/small`
	out, err := b.Lab.Host(4).Try(t.Context(), "bash", "-c", script, v.Status.Source)
	var written int64
	if _, text, found := strings.Cut(out, "size "); found {
		_, _ = fmt.Sscan(text, &written) // 0 is wrong, too
	}
	const near = 4 << 20
	if err != nil || !strings.Contains(out, "Disk quota exceeded") || written < size-near || written > size+near {
		t.Errorf("%d bytes were written into a volume of %d: %v\n%s", written, size, err, out)
	}
}
