package torus

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/torus"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	spoken "github.com/holdfast-storage/holdfast/internal/torus"
	"github.com/holdfast-storage/holdfast/test/tier"
)

// bed is an etcd, and the daemons of a cluster on loopback, each started as its agent starts it.
type bed struct {
	*testing.T
	agent *torus.Torusd
	etcd  string
	peers []*peer
}

type peer struct {
	local   *service.Local
	process *exec.Cmd
}

func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (b *bed) start(dir string, command ...string) *exec.Cmd {
	b.Helper()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have been killed before
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); b.Failed() && err == nil {
			// As a picture: the failure itself stands above.
			b.Logf("==== %s:\n%s", command[0], text)
		}
	})
	return cmd
}

func newBed(t *testing.T, r Release) *bed {
	programs, err := Programs(t.Context(), t.TempDir(), "../..", r)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(torus.BinVariable, programs)
	b := &bed{T: t, etcd: fmt.Sprintf("http://127.0.0.1:%d", freePort(t))}
	for _, a := range torus.Agents() {
		if d, ok := a.(*torus.Torusd); ok {
			b.agent = d
		}
	}
	dir, member := t.TempDir(), fmt.Sprintf("http://127.0.0.1:%d", freePort(t))
	b.start(dir, filepath.Join(programs, "etcd"), "--name", "m", "--data-dir", filepath.Join(dir, "member"),
		"--listen-client-urls", b.etcd, "--advertise-client-urls", b.etcd, "--listen-peer-urls", member, "--initial-advertise-peer-urls", member,
		"--initial-cluster", "m="+member, "--initial-cluster-token", "t", "--initial-cluster-state", "new",
		"--auto-compaction-mode", "periodic", "--auto-compaction-retention", "1h")
	return b
}

// add sets up one more peer, as its agent does. The first one is the founder.
func (b *bed) add() *peer {
	b.Helper()
	data := b.TempDir()
	l := &service.Local{Data: data, Daemon: &api.Daemon{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("d%d", len(b.peers)), Generation: 1}}}
	l.Parameters = map[string]string{
		spoken.ParamEtcd: b.etcd, spoken.ParamPeer: fmt.Sprintf("http://127.0.0.1:%d", freePort(b.T)), spoken.ParamStore: filepath.Join(data, "store"),
		spoken.ParamReport: spoken.DepthCluster,
	}
	if len(b.peers) == 0 {
		l.Parameters[spoken.ParamInit] = "default"
	}
	p := &peer{local: l}
	b.peers = append(b.peers, p)
	b.run(p)
	return p
}

func (b *bed) run(p *peer) {
	b.Helper()
	if err := b.agent.ConfigureLocalService(b.Context(), p.local); err != nil {
		b.Fatal(err)
	}
	at := p.local.Parameters
	p.local.Daemon.Status.Started = &metav1.MicroTime{Time: time.Now()}
	p.process = b.start(p.local.Data, filepath.Join(p.local.Data, "bin", "torusd"), "--etcd", b.etcd, "--peer-address", at[spoken.ParamPeer],
		"--data-dir", at[spoken.ParamStore], "--size", "1GiB")
}

func (b *bed) kill(p *peer) {
	_ = p.process.Process.Kill()
	_ = p.process.Wait()
}

func (b *bed) report() *spoken.Report {
	b.Helper()
	text, err := b.agent.Report(b.Context(), b.peers[0].local)
	if err != nil {
		b.Fatal(err)
	}
	r, err := spoken.Parse(text)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// await waits until the cluster is as it should be.
func (b *bed) await(what string, holds func(*spoken.Cluster) bool) *spoken.Cluster {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 3*time.Minute)
	defer cancel()
	for begin := time.Now(); ; {
		r := b.report()
		if holds(r.Cluster) {
			b.Logf("%s after %.1f s", what, time.Since(begin).Seconds())
			return r.Cluster
		}
		select {
		case <-ctx.Done():
			b.Fatalf("no %s: %+v", what, r.Cluster)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (b *bed) must(verb, object string, params map[string]string) {
	b.Helper()
	for range 2 { // a command may be repeated
		if _, err := b.agent.Perform(b.Context(), b.peers[0].local, service.Command{Verb: verb, Object: object, Params: params}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestContract goes through a cluster's life by the agent's own hands, with Torus's last release.
func TestContract(t *testing.T) {
	goThrough(t, Last)
}

// TestContract_standIn shows that the stand-in does as the real programs do.
func TestContract_standIn(t *testing.T) {
	tier.Full(t)
	goThrough(t, StandIn)
}

func goThrough(t *testing.T, r Release) {
	t.Helper()
	b := newBed(t, r)
	for range 4 {
		b.add()
	}
	c := b.await("4 available peers", func(c *spoken.Cluster) bool { return c.Count(spoken.PeerAvail) == 4 })
	if c.Replication != 2 {
		t.Errorf("replication %d: want 2", c.Replication)
	}
	var uuids []string
	for _, p := range c.Peers {
		uuids = append(uuids, p.UUID)
	}
	b.must(spoken.VerbPeerAdd, strings.Join(uuids, " "), nil)
	b.must(spoken.VerbCreate, "vol1", map[string]string{spoken.ParamBytes: "104857600"})
	b.must(spoken.VerbCreate, "vol2", map[string]string{spoken.ParamBytes: "1048576"})
	b.must(spoken.VerbDelete, "vol2", nil)
	b.must(spoken.VerbReplication, "3", nil)
	b.must(spoken.VerbReplication, "2", nil)
	c = b.await("members", func(c *spoken.Cluster) bool { return c.Count(spoken.PeerOK) == 4 })
	if len(c.Volumes) != 1 || c.Volumes[0].Name != "vol1" || c.Volumes[0].Size != spoken.SizeText(100<<20) || c.Volumes[0].InUse {
		t.Errorf("volumes: %+v", c.Volumes)
	}
	t.Run("refusals", b.refusals)
	b.drain()
	b.comeBack()
	b.lose()
	b.end()
}

// refusals are the words that the agents look for.
func (b *bed) refusals(t *testing.T) {
	for want, args := range map[string][]string{
		"error writing metadata: torus: already exists":                      {"init"},
		"error creating volume vol1: torus: already exists":                  {"volume", "create-block", "vol1", "100MiB"},
		"not currently healthy. To remove, use `--force`":                    {"peer", "remove", "nobody"},
		"cannot get volume none (perhaps it doesn't exist)":                  {"volume", "delete", "none"},
		"couldn't remove peer from ring: torus: doesn't exist":               {"peer", "remove", "--force", "nobody"},
		"invalid etcd address: parse \"127.0.0.1:1\": first path segment in": {"list-peers", "--etcd", "127.0.0.1:1"},
	} {
		cmd := exec.Command(filepath.Join(os.Getenv(torus.BinVariable), "torusctl"), append([]string{"--etcd", b.etcd}, args...)...)
		out, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), want) {
			t.Errorf("torusctl %v: %v: %s\nwant exit code 1 and %q", args, err, out, want)
		}
	}
}

// drain fills the cluster, and takes a live peer out, whose blocks move away.
func (b *bed) drain() {
	b.Helper()
	file := filepath.Join(b.TempDir(), "image")
	if err := os.WriteFile(file, make([]byte, 40<<20), 0o600); err != nil {
		b.Fatal(err)
	}
	load := exec.CommandContext(b.Context(), filepath.Join(os.Getenv(torus.BinVariable), "torusctl"), "block", "load", file, "image", "--etcd", b.etcd)
	if out, err := load.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	third := b.peers[2].local.Parameters[spoken.ParamPeer]
	at := func(c *spoken.Cluster) (p spoken.Peer) {
		for _, x := range c.Peers {
			if x.Address == third {
				p = x
			}
		}
		return p
	}
	c := b.await("blocks", func(c *spoken.Cluster) bool { return at(c).Used > 0 })
	b.must(spoken.VerbPeerRemove, at(c).UUID, nil)
	b.await("an empty peer", func(c *spoken.Cluster) bool { return at(c).State == spoken.PeerAvail && at(c).Used == 0 })
	b.must(spoken.VerbPeerAdd, at(c).UUID, nil)
}

// load writes a volume of so many MiB.
func (b *bed) load(volume string, mib int) {
	b.Helper()
	data := make([]byte, mib<<20)
	for i := 0; i+8 <= len(data); i += 4096 { // no two blocks alike
		binary.LittleEndian.PutUint64(data[i:], uint64(i))
	}
	file := filepath.Join(b.TempDir(), volume)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		b.Fatal(err)
	}
	load := exec.CommandContext(b.Context(), filepath.Join(os.Getenv(torus.BinVariable), "torusctl"), "block", "load", file, volume, "--etcd", b.etcd)
	if out, err := load.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

// own is the report of a peer's own agent, which knows when its torusd was started.
func (b *bed) own(p *peer) *spoken.Report {
	b.Helper()
	text, err := b.agent.Report(b.Context(), p.local)
	r, errParse := spoken.Parse(text)
	if err != nil || errParse != nil {
		b.Fatalf("the peer's own report: %v %v %s", err, errParse, text)
	}
	return r
}

func at(c *spoken.Cluster, uuid string) (p spoken.Peer) {
	if x := c.Peer(uuid); x != nil {
		p = *x
	}
	return p
}

// comeBack has a peer come back, for which blocks were written while it was away: it is not whole before it has them, whatever Torus
// says, and neither its own agent nor the one that tells of the ring says so.
func (b *bed) comeBack() {
	b.Helper()
	p := b.peers[2]
	uuid := b.identity(p)
	b.await("a member again", func(c *spoken.Cluster) bool { return at(c, uuid).State == spoken.PeerOK })
	b.await("a ring at rest", func(c *spoken.Cluster) bool { return !c.Moving })
	if r := b.own(p); !r.Settled {
		b.Errorf("the first start of a torusd missed nothing: %+v", r)
	}
	before := at(b.report().Cluster, uuid).Used
	b.kill(p)
	b.await("DOWN", func(c *spoken.Cluster) bool { return at(c, uuid).State == spoken.PeerDown })
	b.load("missed", 200)
	b.run(p)
	b.await("OK", func(c *spoken.Cluster) bool { return at(c, uuid).State == spoken.PeerOK })
	c := b.report().Cluster
	if r := b.own(p); r.Settled || !c.Moving || !slices.Contains(c.Back, uuid) {
		b.Errorf("it is back with %d bytes, of %d before: settled %v, %+v", at(c, uuid).Used, before, r.Settled, c)
	}
	var whole, all int64
	c = b.await("its blocks", func(c *spoken.Cluster) bool {
		return b.own(p).Settled && !c.Moving
	})
	whole = at(c, uuid).Used
	for _, p := range c.Peers {
		all += p.Used
	}
	// The UUIDs decide a peer's share, which may be a third of the mean. All shares are two copies.
	if written := int64(40+200) << 20; whole <= before || all < 2*written {
		b.Errorf("it has %d bytes, and had %d; the peers have %d: want %d", whole, before, all, 2*written)
	}
	if now := at(b.await("a moment", func(c *spoken.Cluster) bool { return true }), uuid).Used; now != whole {
		b.Errorf("it settled at %d, and has %d", whole, now)
	}
}

// identity is a peer's UUID, by its own report.
func (b *bed) identity(p *peer) string {
	b.Helper()
	text, err := b.agent.Report(b.Context(), p.local)
	r, errParse := spoken.Parse(text)
	if err != nil || errParse != nil || r.UUID == "" {
		b.Fatalf("the peer's own report: %v %v %s", err, errParse, text)
	}
	return r.UUID
}

// lose kills two peers, of which one comes back and the other one is gone for good.
func (b *bed) lose() {
	b.Helper()
	back, lost := b.peers[1], b.peers[3]
	uuidBack, uuidLost := b.identity(back), b.identity(lost)
	state := func(c *spoken.Cluster, uuid string) spoken.PeerState {
		if p := c.Peer(uuid); p != nil {
			return p.State
		}
		return ""
	}
	b.kill(back)
	b.kill(lost)
	b.await("two DOWN", func(c *spoken.Cluster) bool {
		return state(c, uuidBack) == spoken.PeerDown && state(c, uuidLost) == spoken.PeerDown
	})
	b.run(back)
	b.await("one back", func(c *spoken.Cluster) bool { return state(c, uuidBack) == spoken.PeerOK })
	if _, err := b.agent.Perform(b.Context(), b.peers[0].local, service.Command{Verb: spoken.VerbPeerRemove, Object: uuidLost}); err == nil {
		b.Error("a dead peer was removed without force")
	}
	b.must(spoken.VerbPeerForce, uuidLost, nil)
	b.await("a ring without it", func(c *spoken.Cluster) bool { return c.Members() == 3 && state(c, uuidLost) == "" })
	if err := os.RemoveAll(lost.local.Parameters[spoken.ParamStore]); err != nil {
		b.Fatal(err)
	}
	if err := b.agent.ConfigureLocalService(b.Context(), lost.local); err == nil || !strings.Contains(err.Error(), "is its file system mounted?") {
		b.Errorf("a store that vanished was made anew: %v", err)
	}
}

// end removes the peers of a cluster that was given its etcd, and is wiped: the first one takes the
// ring and the volumes along. A later Torus in that etcd is none of the business of those that come
// after.
func (b *bed) end() {
	b.Helper()
	for _, p := range b.peers[:3] {
		b.identity(p)
		p.local.Daemon.Spec.OnRemoval = api.DeletionWipe
		p.local.Parameters[spoken.ParamGiven] = b.etcd
	}
	for _, p := range b.peers[:3] {
		b.kill(p)
	}
	if out, err := b.ctl("volume", "list", "--csv"); err != nil || !strings.Contains(out, "vol1") {
		b.Fatalf("before the end: %v %s", err, out)
	}
	b.destroy(b.peers[0])
	if out, err := b.ctl("volume", "list", "--csv"); err == nil || !spoken.Forgotten(out) {
		b.Errorf("the volumes are still there: %v %s", err, out)
	}
	b.destroy(b.peers[1])
	for _, args := range [][]string{{"init"}, {"volume", "create-block", "later", "1MiB"}} {
		if out, err := b.ctl(args...); err != nil {
			b.Fatalf("torusctl %v: %v %s", args, err, out)
		}
	}
	b.destroy(b.peers[2])
	if out, err := b.ctl("volume", "list", "--csv"); err != nil || !strings.Contains(out, "later") {
		b.Errorf("a later Torus was wiped: %v %s", err, out)
	}
	b.peers[2].local.Parameters[spoken.ParamGiven] = "http://127.0.0.1:1"
	ctx, cancel := context.WithTimeout(b.Context(), time.Second)
	defer cancel()
	if err := b.agent.DestroyLocalService(ctx, b.peers[2].local); err == nil {
		b.Error("an etcd that does not answer counts as wiped")
	}
}

func (b *bed) destroy(p *peer) {
	b.Helper()
	for range 2 { // a removal may be repeated
		if err := b.agent.DestroyLocalService(b.Context(), p.local); err != nil {
			b.Error(err)
		}
	}
}

// ctl is what torusctl prints.
func (b *bed) ctl(args ...string) (string, error) {
	program := filepath.Join(os.Getenv(torus.BinVariable), "torusctl")
	out, err := exec.CommandContext(b.Context(), program, append(args, "--etcd", b.etcd)...).CombinedOutput()
	return string(out), err
}
