package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// TestGlusterSituations stages on the real GlusterFS what goes wrong with its volumes and nodes,
// and asks why. Servers are on three hosts, and the pool on others, so that half of the pool can be
// off.
func TestGlusterSituations(t *testing.T) {
	begin(t)
	b := glusterBed(t, 6)
	for _, n := range []int{4, 5, 6} {
		glusterGroups(b, b.Lab.Host(n))
	}
	pool := glusterPool
	for _, n := range []int{4, 5, 6} {
		pool += glusterNode(b.Lab.Host(n), 1)
	}
	b.applies(1, pool+glusterOptions(`cluster.heal-timeout: "5"`))
	b.awaitPool("the volume to serve", b.bricksServe(1, "data", 3))
	for _, step := range []struct {
		name string
		do   func(*bed)
	}{
		{"options", glusterOptionNames},
		{"wrong options", glusterWrongOptions},
		{
			"a closed node",
			func(b *bed) { glusterClosed(b, pool) },
		},
		{"a device grows", glusterGrows},
		{"a brick hangs", glusterBrickHangs},
		{
			"no self-heal daemon",
			glusterHealerDown,
		},
		{"a brick is gone", glusterBrickGone},
		{"nodes are off", glusterNodesOff},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(&bed{t, b.Home}) }) {
			return
		}
	}
	b.glusterGone(pool + glusterOptions(""))
}

// glusterGroups gives a host the groups of options that GlusterFS's package has, before its
// glusterd is made ready.
func glusterGroups(b *bed, h *hosts.Host) {
	const dir = "/var/lib/glusterd/groups"
	h.Run(b, b.Context(), "mkdir", "-p", dir)
	for _, name := range []string{"virt", "samba"} {
		text, err := os.ReadFile(dir + "/" + name)
		if err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(h.Path(dir+"/"+name), text, 0o600); err != nil {
			b.Fatal(err)
		}
	}
}

// glusterOptions is the volume data with these options.
func glusterOptions(options string) string {
	return fmt.Sprintf(`---
apiVersion: holdfast.io/v1alpha1
kind: Volume
metadata: {name: data}
spec: {cluster: gluster, size: 300Mi, options: {%s}, deletionPolicy: Wipe}
`, options)
}

// glusterApply applies a manifest and waits for what comes of it.
func glusterApply(b *bed, code int, manifest string) string {
	b.Helper()
	start := time.Now()
	out, got := b.apply(1, manifest, "--wait", "--timeout", "90s")
	if took := time.Since(start); got != code || took > time.Minute {
		b.Errorf("apply ended with %d after %s, want %d: %s", got, took, code, out)
	}
	return out
}

// glusterGrows makes a disk larger below its bricks.
func glusterGrows(b *bed) {
	disk := b.Lab.Host(4).Disk(0).Path()
	size := func() (total int64) {
		s, err := read[api.StorageStatus](b, 1, "storagestatuses", "gluster")
		if err == nil && s.Status.Capacity != nil {
			total = s.Status.Capacity.Value()
		}
		return total
	}
	was := size()
	out, err := exec.Command("losetup", "--noheadings", "-O", "BACK-FILE", disk).Output()
	if err != nil {
		b.Fatal(err)
	}
	if err := os.Truncate(strings.TrimSpace(string(out)), 3<<30); err != nil {
		b.Fatal(err)
	}
	if out, err := exec.Command("losetup", "-c", disk).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	b.awaitPool("the pool to have more room", func() error {
		if is := size(); is < was+900<<20 {
			return fmt.Errorf("it was %d and is %d", was, is)
		}
		return nil
	})
}

// glusterOptionNames sets options by group and short name, and takes them out again: in the end the
// plan of what is there is empty.
func glusterOptionNames(b *bed) {
	option := func(name string) string {
		out, err := b.Lab.Host(4).Try(b.Context(), "gluster", "volume", "info", "data")
		if err != nil {
			b.Fatal(out, err)
		}
		for line := range strings.Lines(out) {
			if found, value, _ := strings.Cut(strings.TrimSpace(line), ": "); found == name {
				return value
			}
		}
		return ""
	}
	// Sharding is never taken out again: files in parts could not be read.
	for _, tt := range []struct{ options, timeout, shard string }{
		{`group: virt`, "20", "on"},
		{`group: virt, ping-timeout: "9", "cluster.server-quorum-type": none`, "9", "on"},
		{`ping-timeout: "8"`, "8", "on"},
		{`group: samba`, "10", "on"},
		{`"cluster.heal-timeout": "5"`, "10", "on"},
	} {
		glusterApply(b, 0, glusterOptions(tt.options))
		b.awaitPool("the options "+tt.options, func() error {
			if timeout, shard := option("network.ping-timeout"), option("features.shard"); timeout != tt.timeout ||
				shard != tt.shard {
				return fmt.Errorf("ping-timeout is %q, shard %q", timeout, shard)
			}
			return nil
		})
		b.awaitPool("the plan of what is there to be empty", b.glusterNothingAsked)
	}
}

// glusterNothingAsked checks that the last orchestration asked GlusterFS for nothing.
func (b *bed) glusterNothingAsked() error {
	c, err := read[api.StorageCluster](b, 1, "storageclusters", "gluster")
	if err != nil || c.Status.Report == nil {
		return errors.Join(err, errors.New("there is no report"))
	}
	for _, d := range c.Status.Report.Decisions {
		if d.Verdict == api.VerdictDo {
			return fmt.Errorf("%s: %s", d.Object, d.Message)
		}
	}
	return nil
}

// glusterWrongOptions: 'apply --wait' ends at once, and the Volume has GlusterFS's own reason.
func glusterWrongOptions(b *bed) {
	for options, want := range map[string]string{
		`"network.ping-timeout": soon`: "invalid time format", `no-such-option: "1"`: "does not exist",
	} {
		out := glusterApply(b, 3, glusterOptions(options))
		if !strings.Contains(out, want) {
			b.Errorf("%s: %s", options, out)
		}
		b.tells("gluster-option-refused")
	}
	if out := glusterApply(b, 3, glusterOptions("group: nope")); !strings.Contains(out, "virt") {
		b.Errorf("it names no group that there is: %s", out)
	}
	glusterApply(b, 0, glusterOptions(`"cluster.heal-timeout": "5"`))
}

// glusterClosed closes a node, which leaves no place for another volume, and opens it again.
func glusterClosed(b *bed, pool string) {
	closed := strings.Replace(pool, "glusterfs: {zone: 5}", `glusterfs: {zone: 5, closed: ["*"]}`, 1)
	b.applies(1, closed)
	b.tells("gluster-closed", "n2", "h5")
	second := strings.Replace(glusterOptions(""), "name: data", "name: second", 1)
	if out := glusterApply(b, 3, second); !strings.Contains(out, "spec.glusterfs.closed closes on h5") {
		b.Errorf("a volume without a place: %s", out)
	}
	b.applies(1, pool)
	b.awaitPool("the node to be open", b.glusterNothingAsked)
}

// glusterHealerDown ends the self-heal daemon of a node.
func glusterHealerDown(b *bed) {
	b.Lab.Host(6).Run(b, context.Background(), "bash", "-c", `pkill -9 -f [g]lustershd`)
	b.tells("glusterd-healer-down", "n2", "h6")
	b.Lab.Host(4).Run(b, context.Background(), "gluster", "volume", "start", "data", "force")
	b.awaitPool("the volume to be well", b.bricksServe(1, "data", 3))
}

// glusterBrickHangs stops the process of a brick, and ends it as the answer says.
func glusterBrickHangs(b *bed) {
	h := b.Lab.Host(5)
	h.Run(b, context.Background(), "pkill", "-STOP", "-x", "glusterfsd")
	b.tells("gluster-brick-hung")
	h.Run(b, context.Background(), "pkill", "-KILL", "-x", "glusterfsd")
	b.awaitPool("the brick to be started again", b.bricksServe(1, "data", 3))
}

// glusterBrickGone moves the directory of a brick away: it is filled again after a while.
func glusterBrickGone(b *bed) {
	v := b.volume("data")
	for _, brick := range v.Status.Bricks {
		if brick.Node == "h5" {
			b.hostNamed("h5").Run(b, context.Background(), "bash", "-c", "rm -r "+brick.Path+"; pkill -9 -x glusterfsd")
		}
	}
	b.tells("gluster-brick-down", "n2", "h5")
	b.tells("glusterd-brick-down", "n2", "h5")
	b.awaitPool("the brick to be filled again", b.bricksServe(1, "data", 3))
}

// glusterNodesOff takes the power from one node, and from another one: without a quorum bricks end.
func glusterNodesOff(b *bed) {
	glusterApply(b, 0, glusterOptions(`"cluster.heal-timeout": "5", "cluster.server-quorum-type": server`))
	b.Lab.Host(5).PowerOff(b)
	b.tells("gluster-node-away", "n2", "h5")
	b.Lab.Host(6).PowerOff(b)
	b.tells("gluster-quorum-lost")
	for _, n := range []int{5, 6} {
		b.Lab.Host(n).PowerOn(b)
		b.StartAgent(b, n, "")
	}
	b.awaitPool("the volume to be well again", b.bricksServe(1, "data", 3))
	// After a boot the program gluster finds glusterd.
	if out, err := b.Lab.Host(5).Try(b.Context(), "gluster", "pool", "list"); err != nil {
		b.Errorf("gluster after a boot: %s %v", out, err)
	}
}
