package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/test/home"
)

// poolYAML is a Pool of the cluster with these further lines of its spec.
func poolYAML(name string, lines ...string) string {
	return fmt.Sprintf("---\napiVersion: holdfast.io/v1alpha1\nkind: Pool\nmetadata: {name: %s}\nspec:\n  cluster: ceph\n  %s\n", name, strings.Join(lines, "\n  "))
}

// TestPools declares pools together with their cluster, on hosts each in a rack of its own, changes them while a client writes, and has them refused, kept and wiped.
func TestPools(t *testing.T) {
	begin(t)
	b := newStorageBed(t, 3, 1)
	wanted := home.SpecFor(b.Lab, 3, 2, 1)
	wanted.Interval, wanted.Config = "2s", maps.Clone(wanted.Config)
	delete(wanted.Config, "mon_allow_pool_delete") // as in production
	for _, h := range b.Lab.Hosts() {
		b.holdfast(0, "host", "label", h.Name, "--location", "rack=r-"+h.Name)
		h.Run(t, t.Context(), "hostname", "DEBIAN") // what the kernel calls a machine does not count
	}
	b.mustApply(wanted.YAML() + poolYAML("images", "quota: {maxBytes: 1Gi}", "compression: {mode: aggressive, algorithm: zstd}") +
		poolYAML("archive", "erasureCoded: {dataChunks: 2, codingChunks: 1}"))
	for name, layout := range map[string]string{"images": "3 copies", "archive": "2+1"} {
		if p := b.pool(name); p.Status.State != api.ResourceOnline || p.Status.Layout != layout || p.Status.FailureDomain != "rack" {
			t.Errorf("pool %s: %+v", name, p.Status)
		}
	}
	b.inRacks()
	b.osdAgain()
	b.inRacks()
	c := b.newClient(1, "images")
	c.command = append([]string{b.Binary, "ceph", "shell", "--"}, c.script("rados", "images")...)
	c.start(b)
	b.poolFollows()
	c.goesOn(t)
	b.poolsRefused()
	b.poolFills()
	c.goesOn(t)
	b.poolClient()
	b.poolInUse(c)
	b.poolKept()
	b.poolByHand()
	b.noOrphans()
}

func (b *bed) pool(name string) api.Pool {
	b.Helper()
	p, err := read[api.Pool](b, 1, "pools", name)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// inRacks fails the test if CRUSH does not have each host, with its OSD, in its rack.
func (b *bed) inRacks() {
	b.Helper()
	var tree struct {
		Nodes []struct {
			ID         int
			Name, Type string
			Children   []int
		}
	}
	if err := json.Unmarshal([]byte(b.ceph("osd", "tree", "-f", "json")), &tree); err != nil {
		b.Fatal(err)
	}
	in := map[int]string{}
	for _, n := range tree.Nodes {
		for _, child := range n.Children {
			in[child] = n.Name
		}
	}
	osds := map[string]int{}
	for _, n := range tree.Nodes {
		switch want := map[string]string{"rack": "default", "host": "r-" + n.Name}[n.Type]; {
		case n.Type == "osd":
			osds[in[n.ID]]++
		case n.Type != "root" && in[n.ID] != want:
			b.Errorf("%s %s is in %q, and not in %s", n.Type, n.Name, in[n.ID], want)
		}
	}
	for _, h := range b.Lab.Hosts() {
		if osds[h.Name] != 1 {
			b.Errorf("host %s has %d OSDs in CRUSH", h.Name, osds[h.Name])
		}
	}
}

// osdAgain kills an OSD, and waits until it has told CRUSH once more where it is.
func (b *bed) osdAgain() {
	b.Helper()
	upFrom := func() int {
		var dump struct {
			OSDs []struct {
				Up   int
				From int `json:"up_from"`
			}
		}
		if err := json.Unmarshal([]byte(b.ceph("osd", "dump", "-f", "json")), &dump); err != nil || len(dump.OSDs) != 3 {
			b.Fatalf("%+v, %v", dump, err)
		}
		return dump.OSDs[0].Up * dump.OSDs[0].From
	}
	was := upFrom()
	d := b.daemon("ceph-osd-0")
	b.hostNamed(d.Spec.Host).Run(b, b.Context(), "kill", "-9", strconv.Itoa(int(d.Status.PID)))
	b.await("osd.0 to be up again", func() error {
		if from := upFrom(); from <= was {
			return fmt.Errorf("it is up since epoch %d, and was since %d", from, was)
		}
		return nil
	})
	for _, e := range b.events() {
		if e.Code == string(engine.ResourceOffline) && e.Object == "pool/images" {
			b.Errorf("an OSD started again, and %s: %s", e.Object, e.Message)
		}
	}
}

// poolFollows changes what is wanted of a pool, and takes it away again.
func (b *bed) poolFollows() {
	b.Helper()
	b.cephSays("aggressive", "osd", "pool", "get", "images", "compression_mode")
	b.mustApply(poolYAML("images", "replicated: {size: 2}", "compression: {mode: force}"))
	b.cephSays("force", "osd", "pool", "get", "images", "compression_mode")
	b.cephSays("size: 2", "osd", "pool", "get", "images", "size")
	b.cephSays("max bytes  : N/A", "osd", "pool", "get-quota", "images")
	b.mustApply(poolYAML("images", "replicated: {size: 3}"))
	b.cephSays("size: 3", "osd", "pool", "get", "images", "size")
	if out := b.ceph("osd", "dump"); strings.Contains(out, "compression") {
		b.Errorf("an option that was unset is set: %s", out)
	}
}

func (b *bed) cephSays(want string, args ...string) {
	b.Helper()
	if out := b.ceph(args...); !strings.Contains(out, want) {
		b.Errorf("ceph %s: %s, and not %s", strings.Join(args, " "), out, want)
	}
}

// poolsRefused declares what cannot be: nothing is made, and whoever waits is told why.
func (b *bed) poolsRefused() {
	b.Helper()
	for _, tt := range []struct {
		lines []string
		want  string
	}{
		{[]string{"replicated: {size: 4}", "failureDomain: host"}, "it needs 4 hosts with OSDs, one per copy or chunk, but there are 3"},
		{[]string{"erasureCoded: {dataChunks: 3, codingChunks: 1}", "failureDomain: host"}, "it needs 4 hosts with OSDs, one per copy or chunk"},
		{[]string{"deviceClass: nvme"}, "it needs 3 OSDs of class nvme"},
		{[]string{"replicated: {size: 2, minSize: 3}"}, "minSize cannot be more than size"},
		{[]string{"replicated: {size: 2}", "erasureCoded: {dataChunks: 2, codingChunks: 1}"}, "a pool is either replicated or erasureCoded"},
	} {
		out, code := b.apply(1, poolYAML("bad", tt.lines...), "--wait", "--timeout", "30s")
		if code != 3 || !strings.Contains(out, tt.want) {
			b.Errorf("holdfast apply of %v ended with %d:\n%s", tt.lines, code, out)
		}
	}
	b.poolsStand()
	if out := b.ceph("osd", "pool", "ls"); strings.Contains(out, "bad") {
		b.Errorf("a pool was made of what was refused: %s", out)
	}
}

// poolsStand has kubectl wait for what a pool that serves says, and one that is declared with kubectl, where nobody plans before, and refused.
func (b *bed) poolsStand() {
	b.Helper()
	run := func(in string, args ...string) {
		b.Helper()
		cmd := b.Lab.Host(1).Command(b.Context(), kubectl, append([]string{"--kubeconfig", "/var/lib/holdfast/admin.kubeconfig"}, args...)...)
		cmd.Stdin = strings.NewReader(in)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Errorf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	run("", "wait", "--for=condition=Ready", "--timeout=60s", "pool/images")
	run(poolYAML("bad", "deviceClass: nvme"), "apply", "-f", "-")
	run("", "wait", "--for=condition=Stalled", "--timeout=60s", "pool/bad")
	run("", "wait", "--for=condition=Accepted", "--timeout=60s", "storagecluster/ceph") // the fault is the pool's
	run("", "wait", "--for=condition=Ready", "--timeout=60s", "storagecluster/ceph")
	run("", "delete", "pool/bad", "--timeout=60s")
}

// poolFills has a pool reach its quota. That Ceph warns of something else keeps nobody waiting who made the pool.
func (b *bed) poolFills() {
	b.Helper()
	b.ceph("osd", "set", "noout")
	b.cephSays("noout flag(s) set", "health")
	b.mustApply(poolYAML("small"))
	b.cephSays("noout flag(s) set", "health")
	b.ceph("osd", "unset", "noout")
	b.mustApply(poolYAML("small", "quota: {maxObjects: 1}"))
	b.holdfast(0, "ceph", "shell", "--", "bash", "-c", "for i in 1 2; do echo x | rados -p small put o$i -; done")
	b.await("the quota to be told", func() error {
		if s := b.pool("small").Status; s.State != api.ResourceDegraded || !strings.Contains(s.Message, "quota") {
			return fmt.Errorf("%s: %s", s.State, s.Message)
		}
		return nil
	})
	b.mustApply(poolYAML("small"))
	b.await("the pool to be well", func() error {
		if s := b.pool("small").Status; s.State != api.ResourceOnline {
			return fmt.Errorf("%s: %s", s.State, s.Message)
		}
		return nil
	})
}

const clientYAML = "apiVersion: holdfast.io/v1alpha1\nkind: Client\nmetadata: {name: app}\nspec:\n  cluster: ceph\n  caps: {mon: allow r, osd: %q}\n"

// poolClient makes a client that may use one pool, and no other; and none any more when it is deleted.
func (b *bed) poolClient() {
	b.Helper()
	b.mustApply(fmt.Sprintf(clientYAML, "allow rw pool=images"))
	c, err := read[api.Client](b, 1, "clients", "app")
	if err != nil || c.Status.State != api.ResourceOnline {
		b.Fatalf("%+v, %v", c.Status, err)
	}
	// The files are kept on the host, to be tried again when the key is worth nothing any more.
	const dir = "/var/lib/app"
	b.holdfast(0, "ceph", "client-files", "app", dir)
	b.holdfast(3, "ceph", "client-files", "app", dir)
	put := func(pool string) (string, int) {
		cmd := fmt.Sprintf("echo x | timeout 20 rados --conf %[1]s/ceph.conf -n client.app --keyring %[1]s/ceph.client.app.keyring -p %[2]s put app -", dir, pool)
		out, err := b.Lab.Host(1).Command(b.Context(), "bash", "-c", cmd).CombinedOutput()
		if err != nil {
			return string(out) + err.Error(), 1
		}
		return string(out), 0
	}
	if out, code := put("images"); code != 0 {
		b.Errorf("the client cannot write to its pool: %d, %s", code, out)
	}
	if out, code := put("archive"); code == 0 || !strings.Contains(out, "not permitted") {
		b.Errorf("the client writes to another pool: %d, %s", code, out)
	}
	if out, code := b.apply(1, fmt.Sprintf(clientYAML, "everything"), "--wait", "--timeout", "30s"); code != 3 || !strings.Contains(out, "capability parse failed") {
		b.Errorf("capabilities that Ceph does not understand: %d, %s", code, out)
	}
	b.mustApply(fmt.Sprintf(clientYAML, "allow rw pool=archive"))
	if out, code := put("archive"); code != 0 {
		b.Errorf("the client cannot write to its new pool: %d, %s", code, out)
	}
	if out, code := put("images"); code == 0 || !strings.Contains(out, "not permitted") {
		b.Errorf("the client still writes to the pool that it had before: %d, %s", code, out)
	}
	b.holdfast(0, "delete", "client", "app")
	if out, code := put("archive"); code == 0 {
		b.Errorf("a client that was deleted writes on: %s", out)
	}
}

// poolInUse deletes a pool with its data, which waits for the client, and has to be named.
func (b *bed) poolInUse(c *client) {
	b.Helper()
	b.mustApply(poolYAML("images", "deletionPolicy: Wipe"))
	out, code := b.holdfastSays("delete", "pool", "images")
	name := regexp.MustCompile(`--plan (plan-[0-9a-f]+)`).FindStringSubmatch(out)
	if code != 3 || name == nil {
		b.Fatalf("holdfast delete ended with %d:\n%s", code, out)
	}
	b.holdfast(0, "delete", "--plan", name[1], "--wait=false")
	b.await("the deletion to wait for the client", func() error {
		if s := b.pool("images").Status; !strings.Contains(s.Message, "clients use the pool") {
			return fmt.Errorf("%s: %s", s.State, s.Message)
		}
		return nil
	})
	c.end(b.T)
	b.await("the pool to be gone", func() error {
		if out := b.ceph("osd", "pool", "ls"); strings.Contains(out, "images") {
			return fmt.Errorf("pools: %s", out)
		}
		return nil
	})
	b.cephSays("false", "config", "get", "mon", "mon_allow_pool_delete")
}

// poolKept deletes the word of a pool, and not the pool; a Pool of the same name has it again.
func (b *bed) poolKept() {
	b.Helper()
	b.holdfast(0, "ceph", "shell", "--", "bash", "-c", "echo kept | rados -p archive put o -")
	b.holdfast(0, "delete", "pool", "archive")
	b.cephSays("archive", "osd", "pool", "ls")
	b.mustApply(poolYAML("archive", "erasureCoded: {dataChunks: 2, codingChunks: 1}"))
	if out := b.holdfast(0, "ceph", "shell", "--", "rados", "-p", "archive", "get", "o", "-"); !strings.Contains(out, "kept") {
		b.Errorf("read back %q", out)
	}
	if out := b.ceph("osd", "pool", "ls"); strings.Count(out, "archive") != 1 {
		b.Errorf("pools: %s", out)
	}
}
