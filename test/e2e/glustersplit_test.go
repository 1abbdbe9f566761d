package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// TestGlusterSplitBrain has both sides of a cut network write to the same files of a volume that lets them, and make a file of the
// same name. When the network is whole again all of them are told; what the message says to run ends it, and the volume is well.
func TestGlusterSplitBrain(t *testing.T) {
	begin(t)
	b := glusterBed(t, 3)
	spec := glusterPool
	for _, h := range b.Lab.Hosts() {
		spec += glusterNode(h, 1)
	}
	spec += `---
apiVersion: holdfast.io/v1alpha1
kind: Volume
metadata: {name: data}
spec: {cluster: gluster, size: 300Mi, options: {cluster.quorum-type: none, cluster.heal-timeout: "5", network.ping-timeout: "5"}, deletionPolicy: Wipe}
`
	b.applies(1, spec)
	b.awaitPool("the volume to serve", b.bricksServe(1, "data", 3))
	// A client that mounts before keeps to the options of before until it is told of others, and with a cut network it is not.
	b.awaitPool("its options to be set", func() error {
		for option, want := range map[string]string{"cluster.quorum-type": "none", "cluster.heal-timeout": "5", "network.ping-timeout": "5"} {
			if out, err := b.Lab.Host(1).Try(t.Context(), "gluster", "volume", "get", "data", option); err != nil || !slices.Contains(strings.Fields(out), want) {
				return fmt.Errorf("%s: %q, %w", option, out, err)
			}
		}
		return nil
	})
	one, two := b.Lab.Host(1), b.Lab.Host(2)
	for _, h := range []*hosts.Host{one, two} {
		b.split(h, "mkdir /var/lib/split && mount -t glusterfs "+h.IP+":/data /var/lib/split")
	}
	b.split(one, "mkdir /var/lib/split/d; cd /var/lib/split/d; echo before | tee a b >/dev/null; sync")
	heal := b.Lab.Partition(t, b.Lab.Hosts()[:1], b.Lab.Hosts()[1:])
	b.writesAlone(one, "one")
	b.writesAlone(two, "two, which is longer")
	heal()
	b.awaitPool("all that is in split-brain to be told", b.splitIs("/d", "/d/a", "/d/b"))
	v, err := read[api.Volume](b, 1, "volumes", "data")
	if err != nil || v.Status.State != api.ResourceDegraded || !strings.Contains(v.Status.Message, "holdfast volume resolve data FILE --keep NODE") {
		t.Errorf("%v: %s: %s", err, v.Status.State, v.Status.Message)
	}
	t.Log(v.Status.Message)
	b.tells("gluster-split-brain")
	b.awaitPool("a client to be told", func() error { // once it is connected with both sides again
		if out, err := two.Try(t.Context(), "cat", "/var/lib/split/d/a"); err == nil {
			return fmt.Errorf("it reads %q", out)
		}
		return nil
	})
	b.awaitPool("all bricks to be seen again", func() error {
		v, err := read[api.Volume](b, 1, "volumes", "data")
		if err == nil && slices.ContainsFunc(v.Status.Bricks, func(x api.VolumeBrick) bool { return !x.Online }) {
			err = fmt.Errorf("bricks: %+v", v.Status.Bricks)
		}
		return err
	})
	b.splitRefused(t)
	b.run("volume", "resolve", "data", "/d/a", "/d/new", "--keep", "h2")
	b.run("volume", "resolve", "data", "/d/b", "--keep", "h1")
	b.awaitPool("the volume to be well by itself", b.bricksServe(1, "data", 3))
	b.awaitPool("the pool to be well", b.splitIs())
	for i, brick := range v.Status.Bricks {
		for file, want := range map[string]string{"a": "two, which is longer", "new": "two, which is longer", "b": "one"} {
			if got := b.hostNamed(brick.Node).Run(t, t.Context(), "cat", brick.Path+"/d/"+file); got != want {
				t.Errorf("brick %d: %s is %q, want %q", i, file, got, want)
			}
		}
	}
	for _, h := range []*hosts.Host{one, two} {
		b.split(h, "cd /var/lib/split/d && sha256sum a b new && cd / && umount /var/lib/split && rmdir /var/lib/split")
	}
	b.glusterGone(spec)
}

// split runs a script on a host.
func (b *bed) split(h *hosts.Host, script string) {
	b.Helper()
	h.Run(b, b.Context(), "bash", "-ec", script)
}

// writesAlone has a side of the cut network write to all files. What is under way while a client loses the other bricks may fail
// ("Transport endpoint is not connected"): it tries again, as users do.
func (b *bed) writesAlone(h *hosts.Host, text string) {
	b.Helper()
	b.awaitPool("host "+h.Name+" to write alone", func() error {
		out, err := h.Try(b.Context(), "bash", "-ec", "cd /var/lib/split/d; echo "+text+" | tee a b new >/dev/null; sync")
		if err != nil {
			return fmt.Errorf("%s: %w", out, err)
		}
		return nil
	})
}

// splitIs checks that these entries of the volume are in split-brain, and no others.
func (b *bed) splitIs(want ...string) func() error {
	return func() error {
		v, err := read[api.Volume](b, 1, "volumes", "data")
		if err == nil && !slices.Equal(v.Status.SplitBrains, want) {
			err = fmt.Errorf("it is %q: %s", v.Status.SplitBrains, v.Status.Message)
		}
		return err
	}
}

// splitRefused asks for what cannot be had: each is refused with the reason, and nothing is changed.
func (b *bed) splitRefused(t *testing.T) {
	t.Helper()
	for _, no := range []struct {
		code             int
		file, keep, want string
	}{
		{3, "/other", "h1", "/other is not in split-brain"},
		{3, "/d/a", "h9", `"h9" is no node with a brick`},
		{1, "/d", "h1", "it is a directory"}, // GlusterFS's own word, as below
		{1, "/d/a", "latest-mtime", "several copies are equal"},
	} {
		if out := b.holdfast(no.code, "volume", "resolve", "data", no.file, "--keep", no.keep); !strings.Contains(out, no.want) {
			t.Errorf("%s of %s: %s: want %q", no.keep, no.file, out, no.want)
		}
	}
}
