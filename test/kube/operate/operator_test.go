package operate

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/api/crd"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	bed "github.com/holdfast-storage/holdfast/test/kube"
	"github.com/holdfast-storage/holdfast/test/loopback"
	"github.com/holdfast-storage/holdfast/test/tier"
)

// operatorRelease has TestMain be the program of this release.
const operatorRelease = "HOLDFAST_TEST_RELEASE"

// process is an operator that runs.
type process struct {
	cmd   *exec.Cmd
	ready string
	mu    sync.Mutex
	log   bytes.Buffer
}

// startOperator runs 'holdfast operator' of release v1.0.0 as the operator's account.
func startOperator(t *testing.T, p *bed.Plane, name string) *process {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	return runOperator(t, p, name, operator(t, p), self, operatorRelease+"=v1.0.0")
}

// runOperator runs 'holdfast operator' of a program, which reaches the API by own.
func runOperator(t *testing.T, p *bed.Plane, name string, own *rest.Config, program string, env ...string) *process {
	t.Helper()
	ports, err := loopback.FreePorts(1)
	must(t, err)
	o := &process{ready: fmt.Sprintf("http://127.0.0.1:%d/readyz", ports[0])}
	o.cmd = exec.Command(program, "operator", "--kubeconfig", kubeconfig(t, p, own), "--name", name,
		"--listen", fmt.Sprintf("127.0.0.1:%d", ports[0]))
	o.cmd.Env = append(os.Environ(), env...)
	o.cmd.Stdout, o.cmd.Stderr = o, o
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must(t, o.cmd.Start())
	t.Cleanup(func() {
		_ = o.cmd.Process.Kill() // it may have ended
		_ = o.cmd.Wait()
		if t.Failed() {
			t.Logf("the log of operator %s:\n%s", name, o.said())
		}
	})
	return o
}

// Write takes what the operator logs.
func (o *process) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log.Write(text)
}

func (o *process) said() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log.String()
}

// readiness is what the kubelet hears: "ok", or why the operator cannot lead.
func (o *process) readiness(ctx context.Context) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.ready, nil)
	if err != nil {
		return err.Error()
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body) // a text that is cut off is another one
	return strings.TrimSpace(string(text))
}

// terminate ends the operator as the kubelet does.
func (o *process) terminate(t *testing.T) {
	t.Helper()
	must(t, o.cmd.Process.Signal(syscall.SIGTERM))
	if err := o.cmd.Wait(); err != nil {
		t.Errorf("the operator ended by %v", err)
	}
}

// leader is who has the Lease, without the term.
func leader(ctx context.Context, t *testing.T, c client.Client) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	err := c.Get(ctx, client.ObjectKey{Namespace: api.SystemNamespace, Name: api.LeaderLease}, lease)
	if !apierrors.IsNotFound(err) {
		must(t, err)
	}
	name, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	return name
}

// kindsOf installs the kinds as another release does.
func kindsOf(t *testing.T, p *bed.Plane, release string) {
	t.Helper()
	all, err := crd.Kubernetes()
	must(t, err)
	extensions, err := clientset.NewForConfig(p.ConfigFor(t, "admin", bed.Masters))
	must(t, err)
	must(t, crd.Install(t.Context(), extensions.ApiextensionsV1().CustomResourceDefinitions(),
		crd.Options{Version: release, Definitions: all}))
}

// works waits until an operator makes a Host of a Node.
func works(t *testing.T, c client.Client) {
	t.Helper()
	must(t, c.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:   "h1",
		Labels: map[string]string{"kubernetes.io/os": "linux"},
	}}))
	eventually(t, "the operator to work", func(ctx context.Context) bool {
		return c.Get(ctx, client.ObjectKey{Name: "h1"}, &api.Host{}) == nil
	})
}

const versionOfPools = `jsonpath={.metadata.annotations.holdfast\.io/version}`

// TestOperator_kinds: an operator brings the kinds of an older release to its own, and does not
// lead beside those of a newer one; it says why in its log and to the kubelet, and leads when that
// is over. One that is terminated releases the Lease at once.
func TestOperator_kinds(t *testing.T) {
	p := bed.Control(t)
	kindsOf(t, p, "v0.9.0")
	p.Kubectl(t, manifests("00-namespaces", "05-term", "10-rbac", "20-fence", "21-hosts")...)
	c := clientAs(t, p, "admin", bed.Masters)
	first := startOperator(t, p, "first")
	eventually(t, "the operator to lead", func(ctx context.Context) bool {
		return leader(ctx, t,
			c) == "first" && first.readiness(ctx) == "ok"
	})
	eventually(t, "the kinds to be of its release", func(context.Context) bool {
		return p.Kubectl(t, "get", "crd", "pools.holdfast.io", "-o", versionOfPools) == "v1.0.0"
	})
	works(t, c)
	began := time.Now()
	first.terminate(t)
	if who := leader(t.Context(), t, c); who != "" || time.Since(began) > 5*time.Second {
		t.Errorf("%s after SIGTERM the lease is held by %q", time.Since(began), who)
	}

	p.Kubectl(t, "annotate", "crd", "pools.holdfast.io", "holdfast.io/version=v2.0.0", "--overwrite")
	const why = "the definition of Pool is that of release v2.0.0, and this is v1.0.0: install v2.0.0 or later"
	second := startOperator(t, p, "second")
	eventually(t, "the operator to be unready", func(ctx context.Context) bool {
		return second.readiness(ctx) == "this operator cannot lead: "+why
	})
	if n := strings.Count(second.said(), why); n != 1 {
		t.Errorf("the log says %d times why the operator cannot lead", n)
	}
	if who := leader(t.Context(), t, c); who != "" {
		t.Errorf("%q leads beside kinds of a newer release", who)
	}
	if now := p.Kubectl(t, "get", "crd", "pools.holdfast.io", "-o", versionOfPools); now != "v2.0.0" {
		t.Errorf("the kind of a newer release was changed to %s", now)
	}
	p.Kubectl(t, "annotate", "crd", "pools.holdfast.io", "holdfast.io/version=v1.0.0", "--overwrite")
	eventually(t, "the operator to lead", func(ctx context.Context) bool {
		return leader(ctx, t,
			c) == "second" && second.readiness(ctx) == "ok"
	})
}

// TestOperator_refusals: what a cluster cannot be made of is said once, where people look, and goes
// away by itself: a namespace that forbids pods, and a node whose name is too long for a host. To
// apply the manifests again changes nothing.
func TestOperator_refusals(t *testing.T) {
	p := bed.Control(t)
	p.Kubectl(t, manifests("00-namespaces", "05-term", "10-rbac", "20-fence", "21-hosts")...)
	c := clientAs(t, p, "admin", bed.Masters)
	startOperator(t, p, "first")
	eventually(t, "the kinds to be served", func(ctx context.Context) bool {
		return c.List(ctx, &api.StorageClusterList{}) == nil && c.List(ctx, &api.StorageStatusList{}) == nil
	})
	all := manifests("00-namespaces", "05-term", "10-rbac", "20-fence", "21-hosts", "22-people", "23-operator",
		"30-holdfast")
	p.Kubectl(t, all...)
	generations := func() string {
		get := append(slices.Clone(all), "-o",
			`jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.metadata.generation}{"\n"}{end}`)
		get[0] = "get"
		return p.Kubectl(t, get...)
	}
	before := generations()
	for line := range strings.Lines(p.Kubectl(t, all...)) {
		if !strings.HasSuffix(strings.TrimSpace(line), " unchanged") {
			t.Errorf("applied again: %s", line)
		}
	}
	if now := generations(); now != before || !strings.Contains(now, "DaemonSet holdfast-agent") {
		t.Errorf("before the manifests were applied again these were there:\n%s\nand afterwards:\n%s", before, now)
	}

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "storage", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}}}
	must(t, c.Create(t.Context(), ns))
	declared := cluster("storage")
	declared.Spec.Interval = metav1.Duration{Duration: time.Hour} // nothing but the label brings the next look
	must(t, c.Create(t.Context(), declared))
	const command = "'kubectl label namespace storage pod-security.kubernetes.io/enforce=privileged --overwrite'"
	message := func() string { return p.Kubectl(t, "-n", "storage", "get", "storagestatus", "-o", "wide") }
	eventually(t, "the status to say what to do", func(context.Context) bool {
		return strings.Contains(message(),
			command)
	})
	eventually(t, "the condition", func(ctx context.Context) bool {
		return allowed(ctx, t,
			c) == api.AllowedNamespaceForbidsPods
	})
	told := p.Kubectl(t, "-n", "storage", "get", "storagecluster", "c", "-o", "jsonpath={.status.report.decisions}")
	if n := strings.Count(told, command); n != 1 {
		t.Errorf("it is said %d times: %s", n, told)
	}
	p.Kubectl(t, strings.Fields("label namespace storage pod-security.kubernetes.io/enforce=privileged --overwrite")...)
	eventually(t, "the refusal to be over", func(ctx context.Context) bool {
		return allowed(ctx, t, c) == "" && !strings.Contains(message(), command)
	})

	long := strings.Repeat("n", 64)
	must(t, c.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:   long,
		Labels: map[string]string{"kubernetes.io/os": "linux"},
	}}))
	eventually(t, "an event on the node", func(context.Context) bool {
		return strings.Contains(p.Kubectl(t, "describe", "node", long), "Holdfast makes no Host of the node: the "+
			"name of a host has at most 63 characters")
	})
}

// allowed is the reason of the condition DaemonsAllowed; empty where there is none.
func allowed(ctx context.Context, t *testing.T, c client.Client) string {
	t.Helper()
	now := cluster("storage")
	must(t, c.Get(ctx, client.ObjectKeyFromObject(now), now))
	for _, condition := range now.Status.Conditions {
		if condition.Type == api.ClusterDaemonsAllowed {
			return condition.Reason
		}
	}
	return ""
}

// TestOperator_fence: when the Term or the policies are deleted the operator that leads steps down.
// It writes the Term anew, and without policies says what to apply, and leads again afterwards.
func TestOperator_fence(t *testing.T) {
	tier.Full(t)
	p := bed.Control(t)
	p.Kubectl(t, manifests("00-namespaces", "05-term", "10-rbac", "20-fence", "21-hosts")...)
	c := clientAs(t, p, "admin", bed.Masters)
	o := startOperator(t, p, "first")
	term := func(ctx context.Context) string {
		now := &api.Term{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: api.SystemNamespace, Name: api.TermName}, now); client.IgnoreNotFound(err) != nil {
			return err.Error()
		}
		return now.Spec.Leader
	}
	eventually(t, "a term", func(ctx context.Context) bool { return term(ctx) != "" && o.readiness(ctx) == "ok" })
	before := term(t.Context())
	p.Kubectl(t, "-n", api.SystemNamespace, "delete", "term", api.TermName)
	eventually(t, "another term",
		func(ctx context.Context) bool { now := term(ctx); return now != "" && now != before })
	before = term(t.Context())
	p.Kubectl(t, "-n", api.SystemNamespace, "patch", "term", api.TermName, "--type=merge", "-p",
		`{"spec":{"leader":"nobody"}}`)
	eventually(t, "another term",
		func(ctx context.Context) bool { now := term(ctx); return now != "nobody" && now != before })

	p.Kubectl(t, "delete", "validatingadmissionpolicybinding", "holdfast-host-daemons")
	eventually(t, "the operator to say which policy is missing", func(ctx context.Context) bool {
		return strings.Contains(o.readiness(ctx), "the policy holdfast-host-daemons or its binding is missing")
	})
	p.Kubectl(t, manifests("21-hosts")...)
	eventually(t, "the operator to lead again", func(ctx context.Context) bool {
		return leader(ctx, t,
			c) == "first" && o.readiness(ctx) == "ok"
	})
	p.Kubectl(t, append([]string{"delete"}, manifests("20-fence")[1:]...)...)
	eventually(t, "the operator to say what is missing", func(ctx context.Context) bool {
		return strings.Contains(o.readiness(ctx), "20-fence.yaml are missing or do not work; apply them")
	})
	eventually(t, "the lease to be free", func(ctx context.Context) bool { return leader(ctx, t, c) == "" })
	p.Kubectl(t, manifests("20-fence")...)
	eventually(t, "the operator to lead again", func(ctx context.Context) bool {
		return leader(ctx, t,
			c) == "first" && o.readiness(ctx) == "ok"
	})
}

// takeRight takes from the operator the rule for a resource.
func takeRight(t *testing.T, c client.Client, resource string) {
	t.Helper()
	role := &rbacv1.ClusterRole{}
	must(t, c.Get(t.Context(), client.ObjectKey{Name: "holdfast-operator"}, role))
	count := len(role.Rules)
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Resources, resource)
	})
	if len(role.Rules) != count-1 {
		t.Fatalf("%d of %d rules of the operator are for %s", count-len(role.Rules), count, resource)
	}
	must(t, c.Update(t.Context(), role))
}

// TestOperator_rights: an operator that lacks a right does not keep the Lease, and says what it
// lacks.
func TestOperator_rights(t *testing.T) {
	tier.Full(t)
	p := bed.Control(t)
	p.Kubectl(t, manifests("00-namespaces", "05-term", "10-rbac", "20-fence", "21-hosts")...)
	c := clientAs(t, p, "admin", bed.Masters)
	takeRight(t, c, "userextras/holdfast.io/term")
	o := startOperator(t, p, "first")
	eventually(t, "the operator to say what it lacks", func(ctx context.Context) bool {
		return strings.Contains(o.readiness(ctx), `cannot impersonate resource "userextras/holdfast.io/term"`)
	})
	eventually(t, "the lease to be free", func(ctx context.Context) bool { return leader(ctx, t, c) == "" })
	p.Kubectl(t, manifests("10-rbac")...)
	works(t, c)
}

// TestOperator_away: the API server is away for longer than a term. The operator does not end, and
// leads again when it is back. An API server that has just started may hold no fence yet: the
// operator writes nothing in its new term before a write of another term is refused.
func TestOperator_away(t *testing.T) {
	tier.Full(t)
	audit := bed.NewAudit(t)
	p := bed.ControlWith(t, audit.Flags())
	p.Kubectl(t, manifests("00-namespaces", "05-term", "10-rbac", "20-fence", "21-hosts")...)
	c := clientAs(t, p, "admin", bed.Masters)
	o := startOperator(t, p, "first")
	works(t, c)
	p.StopAPIServer(t)
	eventually(t, "the operator to give up leadership", func(context.Context) bool {
		return strings.Contains(o.said(), "this server does not lead any more")
	})
	before := len(audit.Answers(t))
	p.StartAPIServer(t)
	back := time.Now()
	must(t, c.Create(t.Context(), node(2))) // it brings a Host
	eventually(t, "a Host by the operator", func(ctx context.Context) bool {
		return c.Get(ctx, client.ObjectKey{Name: "h2"}, &api.Host{}) == nil
	})
	t.Logf("the operator works %.1f s after the return of the API server", time.Since(back).Seconds())
	eventually(t, "the operator to be ready", func(ctx context.Context) bool { return o.readiness(ctx) == "ok" })
	checkWaited(t, audit.Answers(t)[before:])
}

// checkWaited checks that a new term began after the API server had refused a write of another one.
func checkWaited(t *testing.T, all []bed.Write) {
	t.Helper()
	open := 0
	for _, w := range all {
		_, probes := strings.CutSuffix(w.As("holdfast.io/term"), "-none")
		switch {
		case probes && w.Done():
			open++
		case probes && strings.Contains(w.Refusal(), "FenceLost: "):
			t.Logf("%d probes of the fence were done before it was held", open)
			return
		case w.Done() && !w.DryRun() && termOf(w) != "":
			t.Fatalf("%s was written before the fence was held", w.RequestURI)
		}
	}
	t.Error("the operator has not tried whether the fence holds")
}
