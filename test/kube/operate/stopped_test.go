package operate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bed "github.com/holdfast-storage/holdfast/test/kube"
)

// notLeading is what an operator logs when it finds out by itself that it does not lead.
const notLeading = "this server does not lead any more"

// TestOperator_stopped stops the operator that leads (SIGSTOP) while it writes all the time, until
// another one leads and writes, and lets it continue. What it sent last before it was stopped
// arrives when its successor has written. By the audit log of the API server, no write of the first
// one is accepted after the first one of its successor, and what arrived late was refused.
func TestOperator_stopped(t *testing.T) {
	audit := bed.NewAudit(t)
	p := bed.ControlWith(t, audit.Flags())
	p.Kubectl(t, manifests("00-namespaces", "05-term", "10-rbac", "20-fence", "21-hosts", "22-people",
		"23-operator")...)
	own := operator(t, p)
	way, url := newGate(t, own.Host)
	own.Host = url
	first := runOperator(t, p, "first", own, binary)
	busy(t, p)
	wrote := func(name string) int { return len(doneBy(audit.Writes(t), name)) }
	eventually(t, "the first operator to write", func(context.Context) bool { return wrote("first") > 400 })
	way.set(true)
	awaitQuiet(t, func() int { return wrote("first") })
	must(t, first.cmd.Process.Signal(syscall.SIGSTOP))
	runOperator(t, p, "second", operator(t, p), binary)
	eventually(t, "the second operator to write", func(context.Context) bool { return wrote("second") > 200 })
	way.set(false)
	eventually(t, "what was on its way to arrive", func(context.Context) bool {
		all := audit.Writes(t)
		return slices.ContainsFunc(all[takenOver(all):], func(w bed.Write) bool { return termOf(w) == "first" })
	})
	must(t, first.cmd.Process.Signal(syscall.SIGCONT))
	eventually(t, "the first operator to notice", func(context.Context) bool {
		return strings.Contains(first.said(), notLeading)
	})
	before := wrote("second")
	eventually(t, "the second operator to write more",
		func(context.Context) bool { return wrote("second") > before+200 })
	checkStopped(t, audit.Writes(t))
}

// awaitQuiet waits until a number has been the same for a second. An operator that has work all the
// time and gets no answer has many writes on their way then.
func awaitQuiet(t *testing.T, number func() int) {
	t.Helper()
	last, since := -1, time.Time{}
	eventually(t, "writes to be on their way", func(context.Context) bool {
		if now := number(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > time.Second
	})
}

// busy has the operator that leads write without a pause, until the test ends: the labels of many
// Nodes change, which it copies to Hosts. The engine has a cluster that has nothing.
func busy(t *testing.T, p *bed.Plane) {
	t.Helper()
	admin := clientAs(t, p, "admin", bed.Masters)
	for n := range 60 {
		must(t, admin.Create(t.Context(), node(n)))
	}
	eventually(t, "the kinds to be served", func(ctx context.Context) bool {
		return admin.Create(ctx, cluster("default")) == nil
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- relabel(ctx, admin) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func node(n int) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:   fmt.Sprintf("h%d", n),
		Labels: map[string]string{"kubernetes.io/os": "linux"},
	}}
}

// relabel gives all nodes another label again and again, until ctx ends.
func relabel(ctx context.Context, admin client.Client) error {
	for round := 0; ctx.Err() == nil; round++ {
		var group errgroup.Group
		group.SetLimit(4)
		for n := range 60 {
			group.Go(func() error {
				return admin.Patch(ctx, node(n), merged(fmt.Sprintf(`{"metadata":{"labels":{"rack":"r%d"}}}`, round)))
			})
		}
		if err := group.Wait(); err != nil && ctx.Err() == nil {
			return err
		}
		time.Sleep(20 * time.Millisecond) // so that the operators have a processor, too
	}
	return nil
}

// termOf is the operator in whose term a write was; empty where it carried no term.
func termOf(w bed.Write) string {
	name, _, _ := strings.Cut(w.As("holdfast.io/term"), "_")
	return name
}

// doneBy are the writes in the terms of an operator that were accepted.
func doneBy(all []bed.Write, name string) []bed.Write {
	return slices.DeleteFunc(slices.Clone(all), func(w bed.Write) bool { return !w.Done() || termOf(w) != name })
}

// takenOver is the number of the first write of the second operator that was accepted.
func takenOver(all []bed.Write) int {
	return slices.IndexFunc(all, func(w bed.Write) bool { return w.Done() && termOf(w) == "second" })
}

// checkStopped looks at all writes in the order of their answers. Those of one process are known by
// its token, also where they carry no term, as those of the Lease and the Term.
func checkStopped(t *testing.T, all []bed.Write) {
	t.Helper()
	old, taken := doneBy(all, "first")[0].Credential(), takenOver(all)
	before, fenced, others := map[string]int{}, map[string]int{}, map[string]int{}
	for i, w := range all {
		switch {
		case w.Credential() != old:
		case i < taken && w.Done():
			before[w.What()]++
		case i > taken && w.Done():
			t.Errorf("%s: %s of the operator that was replaced was accepted; its successor wrote since %s", w.At(),
				w.RequestURI, all[taken].At())
		case strings.Contains(w.Refusal(), "FenceLost: second_"):
			fenced[w.What()]++
		case i > taken: // such as of the Lease, and what the operator cancels when it notices
			others[w.What()+": "+w.Refusal()]++
		}
	}
	t.Logf("the first operator wrote %v; of what arrived late the fence refused %v; not done either: %v", before,
		fenced, others)
	if len(fenced) == 0 {
		t.Error("the fence refused no write that arrived late, so nothing is shown")
	}
	for _, what := range []string{"patch hosts", "patch hosts status", "update leases", "create rolebindings"} {
		if before[what] == 0 {
			t.Errorf("no %s of the first operator is in the audit log: there are %v", what,
				slices.Sorted(maps.Keys(before)))
		}
	}
}
