package cli

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/agent"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	election "github.com/holdfast-storage/holdfast/control/leader"
	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/driver/ceph/radostest"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/waits"
	"github.com/holdfast-storage/holdfast/leader"
	"github.com/holdfast-storage/holdfast/platform/bare"
)

// TestRefused_unknownHost: each command that names a host says that there is none, and which was meant perhaps. Nothing is made.
func TestRefused_unknownHost(t *testing.T) {
	t.Parallel()
	p := newHome(t, "unknown")
	for command, says := range map[string]string{
		"host show unknown-4":                              "host unknown-4 does not exist: did you mean unknown-",
		"host label unknown-4 a=b":                         "host unknown-4 does not exist",
		"host label unknown-1 unknown-4 --location rack=r": "host unknown-4 does not exist",
		"host maintenance enter unknown-4":                 "host unknown-4 does not exist: did you mean unknown-",
		"host maintenance exit unknown-4":                  "host unknown-4 does not exist",
		"host drain unknown-4":                             "host unknown-4 does not exist",
		"host remove unknown-4":                            "host unknown-4 does not exist",
		"host remove unknown-4 --gone":                     "host unknown-4 does not exist",
		"host replace unknown-4 unknown-1":                 "host unknown-4 does not exist",
		"host replace unknown-1 unknown-4":                 "host unknown-4 does not exist",
		"why host/unknown-4":                               "host/unknown-4 not found: did you mean host/unknown-1",
		"get hosts unknown-4":                              `host unknown-4 does not exist: did you mean unknown-`,
		"host label -l nobody=has a=b":                     "no host has the labels nobody=has",
		"host list -l nobody=has":                          "no host has the labels nobody=has",
	} {
		p.must(t, exitRefused, "", strings.Fields(command), says)
	}
	action := "apiVersion: holdfast.io/v1alpha1\nkind: Action\nmetadata: {name: a, namespace: holdfast-system}\nspec: {kind: host.drain, target: host/unknown-4, host: unknown-4}\n"
	p.must(t, exitRefused, action, []string{"apply", "-f", "-"}, "host unknown-4 does not exist: see 'holdfast get hosts'")
	node := "apiVersion: holdfast.io/v1alpha1\nkind: StorageNode\nmetadata: {name: n4}\nspec: {type: ceph, cluster: c, nodeSelector: {kubernetes.io/hostname: unknown-4}, devices: [sdb]}\n"
	p.must(t, exitRefused, "apiVersion: holdfast.io/v1alpha1\nkind: StorageCluster\nmetadata: {name: c}\nspec: {type: ceph, ceph: {}}\n---\n"+node,
		[]string{"apply", "-f", "-"}, "nothing was changed", "the cluster has StorageNodes for no host", "spec.nodeSelector selects no host", "did you mean kubernetes.io/hostname=unknown-1 or ")
	var actions api.ActionList
	if err := p.List(t.Context(), &actions, client.InNamespace(api.SystemNamespace)); err != nil {
		t.Fatal(err)
	}
	for _, a := range actions.Items {
		if strings.HasPrefix(a.Spec.Host, "unknown-") {
			t.Errorf("a refused command made the action %s", a.Name)
		}
	}
}

// TestRefused_viewer: who may look may not change, and is told whom to ask.
func TestRefused_viewer(t *testing.T) {
	t.Parallel()
	admin := newHome(t, "viewing")
	viewer := newMember(t, "viewing", "holdfast:vi", "holdfast:viewers")
	a := &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: "viewing", Name: "waits"},
		Spec:       api.ActionSpec{Kind: "daemon.restart", Target: "daemon/d", Host: "viewing-1", Approval: api.ApprovalRequired},
	}
	if err := admin.Create(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	a.Status.State = api.ActionPendingApproval
	if err := admin.Status().Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	viewer.must(t, exitOK, "", []string{"action", "show", "waits"}, "PendingApproval")
	for _, command := range []string{
		"action approve waits", "action approve waits --reject", "action cancel waits", "host drain viewing-2", "host label viewing-1 a=b", "ca rotate",
		"token create",
	} {
		viewer.must(t, exitRefused, "", strings.Fields(command), "holdfast:vi", "ask an administrator")
	}
	viewer.must(t, exitRefused, admin.manifest("ceph: {}"), []string{"apply", "-f", "-"}, "ask an administrator")
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(a), a); err != nil || a.Spec.Approval != api.ApprovalRequired || a.Spec.Want != api.WantDone {
		t.Errorf("after refused commands it is %+v, %v", a.Spec, err)
	}
}

// TestRefused_planOfAnother: a plan is for one namespace of one control plane.
func TestRefused_planOfAnother(t *testing.T) {
	t.Parallel()
	one, two := newHome(t, "planone"), newHome(t, "plantwo")
	plan := one.planned(t, one.manifest("ceph: {}"))
	two.must(t, exitRefused, "", []string{"apply", "--plan", plan}, "plan "+plan+" is in namespace planone, not in plantwo: holdfast apply --plan "+plan+" -n planone")
	two.must(t, exitRefused, "", []string{"apply", "--plan", "plan-000000"}, "plan plan-000000 does not exist here", "see 'holdfast get plans'")
	one.must(t, exitOK, "", []string{"apply", "--plan", plan})
	one.must(t, exitRefused, "", []string{"apply", "--plan", plan}, "was already carried out")
}

// TestRefused_backup: a backup that is damaged, or of another control plane, restores nothing.
func TestRefused_backup(t *testing.T) {
	t.Parallel()
	p := newPerson(t, "default", "holdfast:admin")
	dir := t.TempDir()
	good, cut := filepath.Join(dir, "good"), filepath.Join(dir, "cut")
	p.must(t, exitOK, "", []string{"backup", good}, "It holds the keys: keep it secret")
	p.must(t, exitRefused, "", []string{"backup", good}, "exists: choose another name")
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, data[:len(data)/3], 0o600); err != nil {
		t.Fatal(err)
	}
	other := newBench(t)
	p.must(t, exitRefused, "", []string{"restore", cut, "--data-dir", t.TempDir()}, "is damaged")
	p.must(t, exitRefused, "", []string{"restore", "--from-data", "--data-dir", t.TempDir()}, "holds no server: name the backup")
	p.must(t, exitRefused, "", []string{"restore", good, "--data-dir", t.TempDir(), "--name", "new", "--address", "192.0.2.99"}, "does not have the address 192.0.2.99")
	p.must(t, exitOK, "", []string{"restore", good, "--data-dir", t.TempDir(), "--name", "new", "--address", "127.0.0.1"},
		"replace the contents of /var/lib/holdfast/host/servers by 127.0.0.1:7440", "Now start it")
	other.stop()
	p.must(t, exitRefused, "", []string{"restore", good, "--data-dir", other.dir}, "is of another control plane", "--replace")
	p.must(t, exitRefused, "", []string{"restore", cut, "--data-dir", other.dir}, "is damaged")
}

// TestRefused_lastCopies: with a real engine and a Ceph in memory, what would cost quorum or data is refused, and nothing is
// changed.
func TestRefused_lastCopies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.addDisks("h1", "h2", "h3")
	c := b.withCeph()
	b.expectInput(manifestOn("h1", "h2", "h3"), "apply -f - --wait --timeout 5m", exitOK)
	b.expect("host maintenance enter h1 --wait --timeout 5m", exitOK, "host h1 is in maintenance")
	b.expect("host maintenance enter h2", exitRefused, "refused, and nothing was changed", "quorum")
	b.expect("host drain h2", exitRefused, "refused, and nothing was changed")
	b.expect("host remove h2", exitRefused, "the StorageNode default/n2 is on host h2")
	b.expect("daemon restart mon.a", exitRefused, "is Stopped, not Running: host h1 is in mode Maintenance")
	b.expect("daemon restart mon.b", exitRefused, "refused, and nothing was changed", "cannot stop mon.b now; Ceph reports: not enough monitors would be available (c) after stopping mons [b]")
	b.expect("daemon restart osd.1", exitRefused, "refused, and nothing was changed", "cannot stop osd.1 now; Ceph reports: unsafe to stop osd(s) at this time",
		"with osd.0 down already; to restart it in any case: 'holdfast daemon restart c-osd-1 --force'")
	for _, h := range []string{"h2", "h3"} {
		host := &api.Host{}
		b.must(b.client.Get(b.Context(), client.ObjectKey{Name: h}, host))
		if host.ModeOf() != api.HostActive {
			b.Errorf("host %s is in mode %s", h, host.ModeOf())
		}
	}
	if q := c.Quorum(); len(q) != 2 {
		b.Errorf("the quorum is %v", q)
	}
	b.expect("host maintenance exit h1 --wait --timeout 5m", exitOK, "host h1 is active")
}

// TestRefused_lastNode: a StorageNode whose data has nowhere to go is not deleted, though Ceph's driver judges that only when the time is over in which
// a node may come back under another name. Who says that it may wait deletes it, and that keeps nobody from changing something else.
func TestRefused_lastNode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.addDisks("h1", "h2", "h3")
	b.withCeph()
	manifest := func(spec string) string {
		return strings.Replace(strings.Replace(manifestOn("h1", "h2", "h3"), "mon: {count: 3}", "mon: {count: 1}", 1), "interval: 1s", spec, 1)
	}
	b.expectInput(manifest("interval: 1s"), "apply -f - --wait --timeout 5m", exitOK)
	kept := func() {
		b.must(b.client.Get(b.Context(), client.ObjectKey{Namespace: "default", Name: "n3"}, &api.StorageNode{}))
	}
	reason := "osd.2: no StorageNode names its device, but the OSD cannot be removed: pool "
	for _, policy := range []string{"Retain", "Wipe"} {
		b.expectInput(manifest("interval: 1s, deletionPolicy: "+policy), "apply -f -", exitOK)
		b.expect("delete storagenode n3", exitRefused, "nothing was changed", reason, "'--when-possible' deletes it as soon as possible")
		kept()
		b.expect("plan --delete storagenode/n3 --dry-run", exitRefused, "- refused: "+reason, "nothing was changed")
		code, out := b.run("", "plan", "--delete", "storagenode/n3")
		plan := nameIn(t, out)
		if code != exitRefused || strings.Contains(out, "apply it with") || !strings.Contains(out, "'holdfast delete --plan "+plan+" --when-possible' deletes it as soon as possible") {
			t.Fatalf("%s: exit code %d:\n%s", policy, code, out)
		}
		b.expect("delete --plan "+plan, exitRefused, "nothing was changed", reason)
		kept()
		b.expect("delete --plan "+plan, exitRefused, reason) // it did not get stale: nothing moved
	}
	code, out := b.run("", "delete", "storagenode", "n3", "--when-possible")
	if code != exitRefused || !strings.Contains(out, "name it with: holdfast delete --plan "+nameIn(t, out)+" --when-possible") {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	kept()
	b.expect("delete --plan "+nameIn(t, out)+" --when-possible", exitOK, "refused for now: "+reason, "storagenode/n3 deleted")
	rest, _, _ := strings.Cut(manifest("interval: 2s, deletionPolicy: Wipe"), "---\napiVersion: holdfast.io/v1alpha1\nkind: StorageNode\nmetadata: {name: n3}")
	b.expectInput(rest, "apply -f -", exitOK, "storagecluster/c configured")
}

func manifestOn(names ...string) string {
	text := "apiVersion: holdfast.io/v1alpha1\nkind: StorageCluster\nmetadata: {name: c}\nspec: {type: ceph, interval: 1s, ceph: {mon: {count: 3}, mgr: {count: 1}}}\n"
	for _, h := range names {
		text += "---\napiVersion: holdfast.io/v1alpha1\nkind: StorageNode\nmetadata: {name: n" + h[1:] + "}\n" +
			"spec: {type: ceph, nodeSelector: {kubernetes.io/hostname: " + h + "}, devices: [disk-" + h + "]}\n"
	}
	return text
}

// addDisks makes hosts that are heard, with a disk each.
func (b *bench) addDisks(names ...string) {
	b.Helper()
	for _, name := range names {
		b.addHost(name, metav1.ConditionTrue)
		b.editHostStatus(name, func(s *api.HostStatus) {
			s.BootID = "b"
			s.Devices = []api.Device{{
				ID: "disk-" + name, Path: "/dev/sdb", Size: resource.MustParse("1Ti"), Kind: api.DeviceDisk, Availability: api.DeviceAvailable,
			}}
		})
	}
}

// withCeph runs what a leader runs, with a Ceph in memory, and the agents of all hosts, until the test ends.
func (b *bench) withCeph() *radostest.Cluster {
	b.Helper()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	c := radostest.New()
	authority, err := b.server.Rotation(b.server.Config())
	b.must(err)
	elect := &election.Election{
		REST: b.server.Config(), Namespace: api.SystemNamespace, Name: api.LeaderLease, Server: "s1", Log: log,
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { b.agents(ctx, c) })
	running.Go(func() {
		_ = elect.Run(ctx, func(ctx context.Context, token string) {
			store, err := bare.NewStore(ctx, b.server.Config(), token)
			if err != nil {
				b.mustInTerm(ctx, err)
				return
			}
			defer store.Close()
			actions, err := store.Actions(ctx)
			if err != nil {
				b.mustInTerm(ctx, err)
				return
			}
			_ = leader.Run(ctx, leader.Config{
				Store: store, Actions: actions, Plans: store.Plans(), Name: "s1", Log: log,
				Drivers:  []engine.Driver{&ceph.Driver{Dial: func(cfg rados.Config) rados.Client { return c.Dial(cfg) }}},
				Handlers: []action.Handler{authority}, Agents: agent.ActionKinds(),
				Waits: waits.Waits{AgentSilent: time.Hour}, // no agent has a heart that beats here
			})
		})
	})
	b.Cleanup(func() { cancel(); running.Wait() })
	return c
}

// mustInTerm fails the test by an error, unless the term of the leader has ended: it leads again then.
func (b *bench) mustInTerm(term context.Context, err error) {
	if term.Err() == nil {
		b.Error(err)
	}
}

// agents does what the agents of all hosts do.
func (b *bench) agents(ctx context.Context, c *radostest.Cluster) {
	reached := map[api.WantedState]api.DaemonState{
		api.WantPrepared: api.DaemonPrepared, api.WantRunning: api.DaemonRunning, api.WantStopped: api.DaemonStopped,
	}
	for ctx.Err() == nil {
		var list api.DaemonList
		if b.client.List(ctx, &list) == nil {
			for i := range list.Items {
				d := &list.Items[i]
				if d.DeletionTimestamp != nil {
					d.Finalizers = nil
					_ = b.client.Update(ctx, d) // a conflict is tried again by the next round
				} else if want := reached[d.Spec.State]; d.Status.State != want || d.Status.ObservedGeneration != d.Generation {
					d.Status.State, d.Status.ObservedGeneration = want, d.Generation
					_ = b.client.Status().Update(ctx, d)
				}
			}
			c.Sync(list.Items)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
