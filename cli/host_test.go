package cli

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/internal/spell"
)

// bench runs commands against a real server, which has no agents and nobody who carries out actions.
type bench struct {
	*testing.T
	dir    string
	client client.Client
	server *control.Server
	config control.Config
	// stop ends the server before the test does.
	stop func()
}

func newBench(t *testing.T, changes ...func(*control.Config)) *bench {
	t.Helper()
	dir := t.TempDir()
	ports := freePorts(t, 3)
	b := &bench{T: t, dir: dir, config: control.Config{
		DataDir: dir, Name: "s1", Address: "127.0.0.1", Init: true, APIPort: ports[0], EtcdPeerPort: ports[1], EtcdClientPort: ports[2],
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	}}
	for _, change := range changes {
		change(&b.config)
	}
	b.start()
	return b
}

// start starts the server, and makes a client that believes whom admin.kubeconfig names now.
func (b *bench) start() {
	b.Helper()
	var err error
	b.server, err = control.Start(b.Context(), b.config)
	b.must(err)
	b.stop = sync.OnceFunc(b.server.Stop)
	b.Cleanup(b.stop)
	b.client, err = b.globals().client()
	b.must(err)
}

// restart stops the server and starts it again.
func (b *bench) restart() {
	b.Helper()
	b.stop()
	b.config.Init = false
	b.start()
}

func (b *bench) globals() *globals {
	return &globals{kubeconfig: filepath.Join(b.dir, "admin.kubeconfig")}
}

func freePorts(t *testing.T, n int) []int {
	t.Helper()
	given.Lock()
	defer given.Unlock()
	var ports []int
	for len(ports) < n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if port := l.Addr().(*net.TCPAddr).Port; !given.ports[port] {
			given.ports[port] = true
			ports = append(ports, port)
		}
	}
	return ports
}

// given are the ports that other tests of this process have, which may not listen at them yet.
var given = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// run runs a command and returns its exit code and everything that it wrote.
func (b *bench) run(input string, args ...string) (int, string) {
	var out bytes.Buffer
	code := b.runTo(&out, input, args...)
	return code, out.String()
}

func (b *bench) runTo(out io.Writer, input string, args ...string) int {
	return run(b.Context(), append(args, "--kubeconfig", filepath.Join(b.dir, "admin.kubeconfig")), streams{in: strings.NewReader(input), out: out, err: out})
}

// expect runs a command, which must end with this code and say all of words.
func (b *bench) expect(command string, code int, words ...string) {
	b.Helper()
	b.expectInput("", command, code, words...)
}

func (b *bench) expectInput(input, command string, code int, words ...string) {
	b.Helper()
	got, out := b.run(input, strings.Fields(command)...)
	b.said(command, out, got, code, words)
}

// expectThen is expect of a command that ends because of what is done once it has said a text.
func (b *bench) expectThen(text string, do func(), command string, code int, words ...string) {
	b.Helper()
	out := &until{text: text, do: sync.OnceFunc(do)}
	got := b.runTo(out, "", strings.Fields(command)...)
	b.said(command, out.String(), got, code, words)
}

func (b *bench) said(command, out string, got, code int, words []string) {
	b.Helper()
	if got != code {
		b.Errorf("%s: exit code %d, want %d:\n%s", command, got, code, out)
	}
	for _, w := range words {
		if !strings.Contains(out, w) {
			b.Errorf("%s says nothing of %q:\n%s", command, w, out)
		}
	}
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// addHost makes a host whose agent is heard, or is not.
func (b *bench) addHost(name string, heard metav1.ConditionStatus) {
	h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{api.LabelHostname: name}}}
	b.must(b.client.Create(b.Context(), h))
	b.editHostStatus(name, func(s *api.HostStatus) {
		s.Addresses = []string{addressOf(name)}
		s.Conditions = []metav1.Condition{{
			Type: api.HostAgentConnected, Status: heard, Reason: "Test", LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour)),
		}}
	})
}

// editHostStatus changes the status of a Host, which a leader may change at the same time.
func (b *bench) editHostStatus(name string, edit func(*api.HostStatus)) {
	b.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		h := &api.Host{}
		if err := b.client.Get(b.Context(), client.ObjectKey{Name: name}, h); err != nil {
			return err
		}
		edit(&h.Status)
		return b.client.Status().Update(b.Context(), h)
	}))
}

// addressOf is an address of its own for each host.
func addressOf(host string) string {
	sum := fnv.New32a()
	sum.Write([]byte(host))
	n := sum.Sum32()
	return fmt.Sprintf("10.%d.%d.%d", byte(n>>16), byte(n>>8), byte(n)%250+1)
}

// addRunning makes a Daemon that runs, by the word of its host's agent.
func (b *bench) addRunning(name, host string) *api.Daemon {
	d := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	d.Spec = api.DaemonSpec{Host: host, Type: "ceph-osd", ID: name, State: api.WantRunning, Command: []string{"true"}}
	b.must(b.client.Create(b.Context(), d))
	d.Status.State = api.DaemonRunning
	b.must(b.client.Status().Update(b.Context(), d))
	return d
}

func (b *bench) actions() []api.Action {
	var list api.ActionList
	b.must(b.client.List(b.Context(), &list))
	return list.Items
}

func TestHost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.answersPlans()
	b.addHost("node1", metav1.ConditionTrue)
	b.addHost("node2", metav1.ConditionTrue)
	b.addHost("node3", metav1.ConditionFalse)
	b.must(b.client.Create(t.Context(), &api.StorageNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "n3"},
		Spec:       api.StorageNodeSpec{Type: api.StorageCeph, NodeSelector: map[string]string{api.LabelHostname: "node3"}},
	}))

	b.expect("host label node1 node2 --location region=eu,rack=r1 disk=ssd", exitOK, "host/node1 labelled: disk=ssd, topology.holdfast.io/rack=r1, topology.kubernetes.io/region=eu")
	b.expect("host label node1 --location region=eu", exitOK, "host/node1 unchanged")
	b.expect("host label -l disk=ssd disk-", exitOK, "disk removed (was ssd)")
	b.expect("host list", exitOK, "node1   Active   Connected", "eu/r1", "node3   Active   disconnected for 60m")
	running := []*api.Daemon{b.addRunning("osd-1", "node1"), b.addRunning("osd-3", "node3")}
	b.expect("get daemons", exitOK, "node1   Running   Running     ",
		"node3   Running   Unknown                        last reported Running; host node3 is disconnected for 60m")
	for _, d := range running {
		b.must(b.client.Delete(t.Context(), d))
	}
	b.expect("host list -l topology.holdfast.io/rack=r1 -o json", exitOK, `"name": "node2"`)
	b.expect("host show node3", exitOK, "StorageNode:", "default/n3")

	b.expect("host list -l disk=ssd", exitRefused, "no host has the labels disk=ssd")
	b.expect("host list -o xml", exitUsage, "use wide, json or yaml")
	b.expect("host show nod1", exitRefused, "host nod1 does not exist: did you mean node1?")
	b.expect("host label node1 nodeX --location rack=r2", exitRefused, "host nodeX does not exist")
	b.expect("host label node1 kubernetes.io/hostname=x", exitRefused, "cannot change the label")
	b.expect("host label node1 a=b=c", exitRefused, "is not a valid value of the label a")
	b.expect("host label node1 -bad-key=1 ", exitUsage)
	b.expect("host label node1 a/b/c=1", exitRefused, `"a/b/c" is not a valid label name`)
	b.expect("host label node1 --location floor=3", exitRefused, `unknown level "floor"`)
	b.expect("host label node1 --location rack", exitRefused, "--location rack: give the place as rack=NAME; 'rack=' removes the level")
	b.expect("host label node1 a=b a-", exitRefused, `the label a is given twice, as "b" and as gone`)
	b.expect("host label node1 a=b a=c", exitRefused, `as "b" and as "c"`)
	b.expect("host label node1 topology.holdfast.io/rack=r2 --location rack=r3", exitRefused, "is given twice")
	b.expect("host label node1", exitUsage, "name the labels to change")
	b.expect("host label disk=ssd", exitUsage, "select hosts either by name or")
	b.expect("host label node1 -l disk=ssd disk=hdd", exitUsage, "select hosts either by name or")

	b.expect("host drain nodes1", exitRefused, "host nodes1 does not exist: did you mean node1?")
	b.expect("host remove node3", exitRefused, "the StorageNode default/n3 is on host node3")
	b.expect("host remove node3 --delete-nodes", exitRefused, "use --gone")
	b.expect("host remove node2 --gone", exitRefused, "--gone refused: the agent")
	b.expect("host replace node1 node3", exitRefused, "agent of host node3 disconnected")
	b.expect("host replace node3 node1", exitRefused, "use --gone")
	b.expect("host replace node2 node1 --gone", exitRefused, "--gone refused: the agent")
	b.expect("host replace node3 node3", exitRefused, "NEW must be another host than OLD, but both are node3")
	b.expect("host replace node3 node9", exitRefused, "host node9 does not exist")
	if all := b.actions(); len(all) > 0 {
		t.Errorf("%d actions were made by refused commands", len(all))
	}
	for _, h := range []string{"node1", "node2"} {
		host := &api.Host{}
		b.must(b.client.Get(t.Context(), client.ObjectKey{Name: h}, host))
		if host.Labels[api.LabelRack] != "r1" {
			t.Errorf("labels of %s after refused commands: %v", h, host.Labels)
		}
	}
	t.Run("actions", func(t *testing.T) { b.T = t; testHostActions(b) })
}

// testHostActions plays the leader: it ends each action as its host's name says.
func testHostActions(b *bench) {
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	var shown atomic.Bool
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			b.play(ctx, shown.Load())
			time.Sleep(10 * time.Millisecond)
		}
	}()
	defer func() { cancel(); <-done }()
	b.expectThen("waits for osd.1", func() { shown.Store(true) }, "host maintenance enter node1 --reason fan --wait", exitOK, "action/enter-maintenance-node1-", "stop-daemons: Running, 1 of 2 daemons",
		"waits for osd.1", "host node1 is in maintenance")
	b.expect("host drain node2", exitRefused, "refused, and nothing was changed: the last copy")
	b.expect("host replace node3 node1 --gone --devices /dev/sdb,/dev/sdc", exitOK, "follow it with 'holdfast action wait replace-node3-")
	b.expect("host drain node3", exitRefused, "is in progress on host node3 and waits for osd.1: cancel it with 'holdfast action cancel replace-node3-")
	for _, a := range b.actions() {
		if a.Namespace != api.SystemNamespace || a.Spec.Target != "host/"+a.Spec.Host {
			b.Errorf("action %s/%s has target %s", a.Namespace, a.Name, a.Spec.Target)
		}
		if a.Spec.Host == "node3" && (a.Spec.Parameters["by"] != "node1" || a.Spec.Parameters["devices"] != "/dev/sdb,/dev/sdc") {
			b.Errorf("parameters %v", a.Spec.Parameters)
		}
	}
	b.waitingIsNobodysWay()
}

// waitingIsNobodysWay: what waits for a silent agent refuses no other action on its host.
func (b *bench) waitingIsNobodysWay() {
	b.Helper()
	b.addHost("node4", metav1.ConditionFalse)
	a := &api.Action{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "restart-x"}, Spec: api.ActionSpec{Kind: "daemon.restart", Target: "daemon/x", Host: "node4"}}
	b.must(b.client.Create(b.Context(), a))
	for a.Status.State == "" {
		b.must(b.client.Get(b.Context(), client.ObjectKeyFromObject(a), a))
	}
	waits := "wait for the disconnected agent of host node4: restart-x (daemon.restart); they "
	b.expect("host remove node4 --gone --delete-nodes --dry-run", exitOK, waits+"end as Failed")
	b.expect("host maintenance enter node4 --offline", exitOK, waits+"continue when it reconnects")
	b.expect("host drain node4", exitRefused, "action enter-maintenance-node4-")
}

// play moves each action on by a step. The one on host node1 is done when it was shown under way.
func (b *bench) play(ctx context.Context, shown bool) {
	var list api.ActionList
	if b.client.List(ctx, &list) != nil {
		return
	}
	for i := range list.Items {
		a := &list.Items[i]
		switch {
		case a.Status.State.Final():
			continue
		case a.Spec.Host == "node2":
			a.Status = api.ActionStatus{State: api.ActionFailed, Message: "the last copy is there"}
		case a.Spec.Kind == "daemon.restart":
			if a.Status.State != "" {
				continue
			}
			a.Status = api.ActionStatus{State: api.ActionPendingSchedule, Executor: api.ByAgent, WaitsFor: "the agent of host " + a.Spec.Host + ", which is silent"}
		case a.Status.State == "":
			a.Status = api.ActionStatus{
				State: api.ActionRunning, WaitsFor: "osd.1",
				Steps: []api.ActionStep{{Name: "stop-daemons", State: api.StepRunning, Done: 1, Total: 2, Unit: "daemons"}},
			}
		case a.Spec.Host == "node1" && shown:
			a.Status.State, a.Status.WaitsFor, a.Status.Message = api.ActionDone, "", "host node1 is in maintenance"
		default:
			continue
		}
		_ = b.client.Status().Update(ctx, a) // a conflict is tried again by the next round
	}
}

func TestNearest(t *testing.T) {
	names := []string{"node1", "node2", "storage-a"}
	for name, want := range map[string]string{"node": "node1", "nod2": "node2", "storage_a": "storage-a", "xyz": "", "": ""} {
		if got := spell.Nearest(name, names); got != want {
			t.Errorf("spell.Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
