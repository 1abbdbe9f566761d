package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/test/home"
)

const ns = "storage"

// ceph is the manifest that the end-to-end tests apply to three bare hosts.
func (b *bed) ceph() string {
	spec := home.Spec{Mons: 3, Mgrs: 2, DeletionPolicy: "Wipe", Config: home.Quick, Devices: map[string][]string{}}
	for _, n := range b.Nodes() {
		spec.Devices[n.Name] = []string{n.Disk(0).ID()}
	}
	return spec.YAML()
}

// TestCeph is the life of a Ceph cluster in pods: it comes up although the operator is deleted
// while OSDs are made, nothing restarts that need not, what is deleted or loses its power comes
// back, and in the end nothing is left.
func TestCeph(t *testing.T) {
	b := newBed(t, 1)
	b.Kubectl(t, "create", "namespace", ns)
	b.Apply(t, b.ceph(), "-n", ns)
	b.operatorDeleted()
	b.awaitReady(ns, 8)
	b.awaitStatus(ns)
	b.step("Ceph is ONLINE: 3 mons, 2 mgrs, 3 OSDs")
	b.awaitClean()
	b.step("all placement groups are active+clean")
	b.checkOrphans()
	b.store()
	watch := b.watchTwins()
	b.appliedAgain()
	b.step("applied again, nothing is written")
	b.agentsRestarted()
	b.step("agents were restarted and killed, and no daemon was")
	b.podsDeleted()
	b.step("deleted pods are back")
	b.powerOff()
	b.step("a node lost its power, and is back")
	watch.end()
	b.stored()
	b.wiped()
	b.step("the cluster is wiped, and nothing is left")
	b.Uninstall(t)
	b.step("Holdfast is uninstalled")
}

// operatorDeleted deletes the operator while OSDs are being made, and makes it again.
func (b *bed) operatorDeleted() {
	b.t.Helper()
	b.awaitOSD()
	b.Kubectl(b.t, "-n", "holdfast-system", "delete", "deployment", "holdfast-operator", "--cascade=foreground")
	b.Install(b.t)
}

// awaitOSD waits until the operator has declared the first OSD.
func (b *bed) awaitOSD() {
	b.t.Helper()
	b.await("an OSD to be made", func(ctx context.Context) error {
		out, err := b.Try(ctx, "", "-n", ns, "get", "daemons", "-o", "name")
		if err == nil && !strings.Contains(out, "daemon.holdfast.io/ceph-osd") {
			err = errors.New(out)
		}
		return err
	})
}

func (b *bed) awaitClean() {
	b.t.Helper()
	b.await("all placement groups to be active+clean", func(ctx context.Context) error {
		out, err := b.Operator(ctx, "-n", ns, "ceph", "shell", "--", "ceph", "-s")
		clean := strings.Contains(out, "active+clean") && !strings.Contains(out, "peering")
		if err == nil && (!clean || !strings.Contains(out, "HEALTH_OK")) {
			err = errors.New(out)
		}
		return err
	})
}

// checkOrphans looks for keys and OSD ids of nothing.
func (b *bed) checkOrphans() {
	b.t.Helper()
	out := b.operator("-n", ns, "ceph", "shell", "--", "ceph", "osd", "ls")
	if strings.Join(strings.Fields(out), " ") != "0 1 2" {
		b.t.Errorf("the OSDs are %q", out)
	}
	keys := 0
	for line := range strings.Lines(b.operator("-n", ns, "ceph", "shell", "--", "ceph", "auth", "ls")) {
		if strings.HasPrefix(line, "osd.") {
			keys++
		}
	}
	if keys != 3 {
		b.t.Errorf("there are keys of %d OSDs", keys)
	}
}

// orchestrated waits until the operator has looked at the cluster once more.
func (b *bed) orchestrated() {
	b.t.Helper()
	next := func(ctx context.Context) (string, error) {
		return b.Try(ctx, "", "-n", ns, "get", "storagecluster", "ceph", "-o", "jsonpath={.status.nextOrchestration}")
	}
	before, err := next(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	b.operator("-n", ns, "orchestrate", "ceph")
	b.await("an orchestration", func(ctx context.Context) error {
		now, err := next(ctx)
		if err == nil && now == before {
			err = errors.New(now)
		}
		return err
	})
}

func (b *bed) sameLives(when string, before map[string]string) {
	b.t.Helper()
	if now := b.lives(ns); !maps.Equal(now, before) {
		b.t.Errorf("%s: containers were %v, and are %v", when, before, now)
	}
}

// agentsRestarted restarts the agents as an upgrade does, and kills one: no daemon is another one.
func (b *bed) agentsRestarted() {
	b.t.Helper()
	lives := b.lives(ns)
	b.Kubectl(b.t, "-n", "holdfast-system", "rollout", "restart", "ds/holdfast-agent")
	b.Kubectl(b.t, "-n", "holdfast-system", "rollout", "status", "ds/holdfast-agent", "--timeout=2m")
	b.Node(2).Run(b.t, b.t.Context(), "bash", "-c", `kill -9 $(pgrep -f '^holdfast agent')`)
	b.await("the agent to be started again", func(ctx context.Context) error {
		_, err := b.Node(2).Try(ctx, "pgrep", "-f", "^holdfast agent")
		return err
	})
	b.AwaitPods(b.t, "holdfast-system", "app.kubernetes.io/name=holdfast-agent", 3)
	b.orchestrated()
	b.sameLives("agents restarted", lives)
}

// podsDeleted deletes a pod in order, and one by force.
func (b *bed) podsDeleted() {
	b.t.Helper()
	lives := b.lives(ns)
	b.Kubectl(b.t, "-n", ns, "delete", "pod", "ceph-mon-a")
	b.Kubectl(b.t, "-n", ns, "delete", "pod", "ceph-osd-0", "--force", "--grace-period=0")
	b.awaitReady(ns, 8)
	b.awaitStatus(ns)
	now := b.lives(ns)
	for name, id := range lives {
		if replaced := name == "ceph-mon-a" || name == "ceph-osd-0"; (now[name] != id) != replaced {
			b.t.Errorf("%s: container %s, and was %s", name, now[name], id)
		}
	}
	b.awaitClean()
}

// powerOff has a node lose its power without a word: its pods run again within 30 s of the kubelet.
func (b *bed) powerOff() {
	b.t.Helper()
	before := b.lives(ns)
	b.Node(3).PowerOff(b.t)
	b.Node(3).AwaitNotReady(b.t)
	b.Node(3).PowerOn(b.t)
	b.Node(3).AwaitReady(b.t)
	ready := time.Now()
	b.await("other containers on the node", func(context.Context) error {
		for name, pod := range b.Pods(b.t, ns) { // what the API says until the kubelet has looked is of before
			if now := container(&pod); pod.Spec.NodeName == "h3" && (now == "" || now == before[name]) {
				return fmt.Errorf("%s has container %q", name, now)
			}
		}
		return nil
	})
	b.awaitReady(ns, 8)
	if took := time.Since(ready); took > 30*time.Second {
		b.t.Errorf("the pods were Ready %s after their node", took)
	} else {
		b.t.Logf("the pods were Ready %.1f s after their node", took.Seconds())
	}
	b.awaitStatus(ns)
	b.awaitClean()
}

const dataPool = `apiVersion: holdfast.io/v1alpha1
kind: Pool
metadata: {name: data}
spec: {cluster: ceph, deletionPolicy: Wipe}
`

// store writes something into a pool that is there to stay, and stored reads it.
func (b *bed) store() {
	b.t.Helper()
	b.Apply(b.t, dataPool, "-n", ns)
	b.Kubectl(b.t, "-n", ns, "wait", "pool/data", "--for=condition=Ready", "--timeout=2m")
	b.operator("-n", ns, "ceph", "shell", "--", "sh", "-c", "seq 100000 > /dev/shm/in && rados -p data put seq "+
		"/dev/shm/in")
}

func (b *bed) stored() {
	b.t.Helper()
	out := b.operator("-n", ns, "ceph", "shell", "--", "sh", "-c", "rados -p data get seq /dev/shm/out && seq "+
		"100000 | "+
		"cmp - /dev/shm/out && echo same")
	if out != "same" {
		b.t.Errorf("what was stored is %q", out)
	}
}

// wiped deletes the cluster: nothing is left on the nodes, and no Secret.
func (b *bed) wiped() {
	b.t.Helper()
	b.Kubectl(b.t, "-n", ns, "delete", "pool", "--all")
	b.Kubectl(b.t, "-n", ns, "delete", "storagenodes,storageclusters", "--all", "--timeout=3m")
	if pods := b.Pods(b.t, ns); len(pods) > 0 {
		b.t.Errorf("pods are left: %v", pods)
	}
	secrets, err := b.Client().CoreV1().Secrets(ns).List(b.t.Context(), meta.ListOptions{})
	if err != nil || len(secrets.Items) > 0 {
		b.t.Errorf("secrets are left: %v, %v", secrets, err)
	}
	if left := b.left(); len(left) > 0 {
		b.t.Errorf("left on the nodes:\n%s", strings.Join(left, "\n"))
	}
}

// twins looks all the time whether two processes of one OSD or mon live, in all pods of all nodes.
type twins struct {
	t *testing.T
	// groups are the control groups of the nodes: other clusters of this machine have others.
	groups []string
	stop   context.CancelFunc
	done   sync.WaitGroup
	mu     sync.Mutex
	seen   map[string]bool
	// looks counts how often was looked.
	looks int
	// most is how many daemons were seen at one time.
	most int
}

func (b *bed) watchTwins() *twins {
	ctx, stop := context.WithCancel(b.t.Context())
	w := &twins{t: b.t, stop: stop, seen: map[string]bool{}}
	for _, n := range b.Nodes() {
		w.groups = append(w.groups, n.Cgroup()+"/")
	}
	w.done.Go(func() {
		for ctx.Err() == nil {
			w.look()
			time.Sleep(20 * time.Millisecond) // so that the test has a processor, too
		}
	})
	b.t.Cleanup(stop)
	return w
}

// look reads the command lines of all processes of this machine: those of the nodes are among them.
func (w *twins) look() {
	count := map[string]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		words := strings.Split(string(line), "\x00")
		if err != nil || len(words) < 6 || words[0] != "ceph-osd" && words[0] != "ceph-mon" {
			continue
		}
		if w.ours(e.Name()) {
			count[words[0]+" "+words[len(words)-2]]++ // the directory of its data
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	w.most = max(w.most, len(count))
	for what, n := range count {
		if n > 1 {
			w.seen[fmt.Sprintf("%d of %s", n, what)] = true
		}
	}
}

// ours says whether a process is in a pod of the nodes, by its control group.
func (w *twins) ours(pid string) bool {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "cgroup"))
	return err == nil && slices.ContainsFunc(w.groups, func(group string) bool {
		return strings.Contains(string(text), group+"kubepods")
	})
}

// end fails the test if two processes of one daemon were seen.
func (w *twins) end() {
	w.t.Helper()
	w.stop()
	w.done.Wait()
	if w.looks < 100 || w.most != 6 {
		w.t.Errorf("looked %d times, and saw %d of 6 mons and OSDs at most", w.looks, w.most)
	}
	for what := range w.seen {
		w.t.Errorf("two processes of one daemon: %s", what)
	}
}
