package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/test/home"
)

// TestSingleHost brings up the example for one machine, with its names and devices put in.
func TestSingleHost(t *testing.T) {
	begin(t)
	b := newBed(t, 1, 3)
	t.Run("refused", func(t *testing.T) { (&bed{t, b.Home}).refusals(t) })
	example, err := os.ReadFile("../../examples/ceph-single-host.yaml")
	if err != nil {
		t.Fatal(err)
	}
	h := b.Lab.Host(1)
	text := strings.NewReplacer("myhost", h.Name, "/dev/sdb", h.Disk(0).Path(), "/dev/sdc", h.Disk(1).ID(), "/dev/sdd", h.Disk(2).ID(),
		"    mgr:\n      count: 1\n", "    mgr:\n      count: 1\n    config:\n      global: {mon_data_avail_warn: \"5\", mon_data_avail_crit: \"2\"}\n").
		Replace(string(example))
	b.mustApply(text)
	b.cephHealthy(1, 3)
	b.noOrphans()
}

// refusals gives specs that cannot be carried out: each is refused with the reason, and nothing at all is made.
func (b *bed) refusals(t *testing.T) {
	h := b.Lab.Host(1)
	mounted, used := h.Disk(1).Path(), h.Disk(2).Path()
	// The mount comes last: the agent looks at all devices when it sees one. (The kernel tells nobody of what is written
	// to a device; on a machine with udevd, that does.)
	for _, command := range []string{"mkfs.ext4 -q " + mounted, "mkfs.ext4 -q " + used + " && sync", "mkdir -p /mnt/x && mount " + mounted + " /mnt/x"} {
		h.Run(t, t.Context(), "bash", "-c", command)
	}
	b.await("the inventory to see the mount and the data", func() error {
		out, err := b.Holdfast("get", "hosts", h.Name, "-o", "yaml")
		if err == nil && !strings.Contains(out, "mounted at /mnt/x") {
			err = fmt.Errorf("nothing is mounted:\n%s", out)
		}
		return cmp.Or(err, b.available(1)())
	})
	good := home.SpecFor(b.Lab, 1, 1, 1)
	with := func(devices ...string) string {
		s := good
		s.Devices = map[string][]string{h.Name: devices}
		return s.YAML()
	}
	mons := func(count int) string {
		s := good
		s.Mons = count
		return s.YAML()
	}
	for _, tt := range []struct {
		name, spec string
		want       []string
	}{
		{"unknown type", strings.ReplaceAll(good.YAML(), "type: ceph", "type: zfs"), []string{"type", `"zfs"`, "ceph"}},
		{"unknown field", strings.Replace(good.YAML(), "mon: {count", "mon: {cuont", 1), []string{"cuont"}},
		{"even mons", mons(2), []string{"must be odd"}},
		{"more mons than hosts", mons(3), []string{"3 mons need 3 hosts", "lower spec.ceph.mon.count to 1"}},
		{"mounted device", with(h.Disk(1).ID()), []string{"mounted at /mnt/x"}},
		{"device with data", with(h.Disk(2).ID()), []string{"ext4"}},
		{"no such device", with("/dev/nosuch"), []string{"/dev/nosuch"}},
		{
			"no such host", strings.Replace(good.YAML(), "kubernetes.io/hostname: h1}", "kubernetes.io/hostname: h11}", 1),
			[]string{"spec.nodeSelector selects no host", "did you mean kubernetes.io/hostname=h1?", "--when-possible"},
		},
		{"device named twice", with(h.Disk(0).ID(), h.Disk(0).Path()), []string{"same device"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &bed{t, b.Home}
			out, code := b.apply(1, tt.spec, "--wait", "--timeout", "30s")
			if code != 3 {
				t.Errorf("exit code %d, want 3 (refused):\n%s", code, out)
			}
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is not in\n%s", want, out)
				}
			}
			if n := len(list[struct{}](b, "storageclusters")) + len(list[struct{}](b, "storagenodes")) + len(b.daemons()) + len(list[struct{}](b, "secrets")); n != 0 {
				t.Errorf("%d objects were made", n)
			}
		})
	}
	for _, command := range []string{"umount /mnt/x", "for d in " + mounted + " " + used + "; do blkdiscard --force $d; done", "mount -t tmpfs none /mnt/x && umount /mnt/x"} {
		h.Run(t, t.Context(), "bash", "-c", command)
	}
	b.await("all disks available again", b.available(3))
}

// available returns a check of how many devices of the first host are available.
func (b *bed) available(want int) func() error {
	return func() error {
		out, err := b.Holdfast("get", "hosts", b.Lab.Host(1).Name, "-o", "yaml")
		if n := strings.Count(out, "availability: Available"); err == nil && n != want {
			err = fmt.Errorf("%d devices are available, want %d:\n%s", n, want, out)
		}
		return err
	}
}

// TestServer_refuses starts servers that must not start: each says what to do.
func TestServer_refuses(t *testing.T) {
	begin(t)
	b := newBed(t, 2, 0)
	h := b.Lab.Host(1)
	fails := func(host int, want []string, args ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		out, err := b.Lab.Host(host).Command(ctx, b.Binary, args...).CombinedOutput()
		if err == nil || ctx.Err() != nil {
			t.Errorf("holdfast %s: ended with %v, want an error:\n%s", strings.Join(args, " "), err, out)
		}
		for _, w := range want {
			if !strings.Contains(string(out), w) {
				t.Errorf("holdfast %s: %q is not in\n%s", strings.Join(args, " "), w, out)
			}
		}
	}
	fails(1, []string{"pid"}, "server")
	fails(1, []string{"7440", "--api-port"}, "server", "--init", "--data-dir", "/var/lib/other")
	b.Server(1).Stop(t, limit)
	fails(1, []string{"--init"}, "server", "--init")
	fails(1, []string{"--init", "--join"}, "server", "--data-dir", "/var/lib/empty")
	h.Run(t, t.Context(), "bash", "-c", "mkdir -p /var/lib/newer && echo 99 > /var/lib/newer/VERSION")
	fails(1, []string{"newer"}, "server", "--data-dir", "/var/lib/newer")
	fails(1, []string{"token"}, "server", "--data-dir", "/var/lib/joiner", "--join", "nonsense")
}
