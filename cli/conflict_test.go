package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestApply_conflict: a field that somebody else has applied is not written over, and both are told.
func TestApply_conflict(t *testing.T) {
	t.Parallel()
	alice := newHome(t, "conflict")
	bob := newPerson(t, "conflict", "holdfast:bob")
	alice.must(t, exitOK, alice.manifest("ceph: {mon: {count: 3}}"), []string{"apply", "-f", "-"})
	one := `{apiVersion: holdfast.io/v1alpha1, kind: StorageCluster, metadata: {name: c}, spec: {type: ceph, ceph: {mon: {count: 1}}}}`
	for _, command := range []string{"apply", "plan"} {
		bob.must(t, exitRefused, one, []string{command, "-f", "-"}, "nothing was changed",
			"spec.ceph.mon.count: holdfast:admin set it to 3 at 20", "; you want 1", "--force-conflicts")
	}
	bob.must(t, exitOK, one, []string{"apply", "-f", "-", "--force-conflicts"}, "storagecluster/c configured")
	alice.must(t, exitRefused, alice.manifest("ceph: {mon: {count: 3}}"), []string{"apply", "-f", "-"}, "holdfast:bob set it to 1")
	// What nobody else has applied is free.
	alice.must(t, exitOK, `{apiVersion: holdfast.io/v1alpha1, kind: StorageCluster, metadata: {name: c}, spec: {type: ceph, ceph: {}, interval: 30s}}`, []string{"apply", "-f", "-"})
}

// TestApply_leftOutIsTakenBack: a field that was applied when the object was made goes when it is left out.
func TestApply_leftOutIsTakenBack(t *testing.T) {
	t.Parallel()
	p := newHome(t, "leftout")
	p.must(t, exitOK, p.manifest("interval: 30s, ceph: {}"), []string{"apply", "-f", "-"}, "storagecluster/c created")
	p.must(t, exitOK, p.manifest("ceph: {}"), []string{"apply", "-f", "-"}, "storagecluster/c configured")
	if got := p.cluster(t).Spec.Interval.Duration.String(); got != "10s" {
		t.Errorf("interval is %s, want the default", got)
	}
}

// TestApply_atOnce: two administrators apply conflicting specs at one moment. One wins, the other is told what and who, and what
// is there is what the winner wants.
func TestApply_atOnce(t *testing.T) {
	t.Parallel()
	const rounds = 30
	both := []*person{newHome(t, "atonce"), newPerson(t, "atonce", "holdfast:bob")}
	for round := range rounds {
		name := fmt.Sprintf("c%d", round/2) // made in one round, changed in the next
		var codes [2]int
		var outs [2]string
		atOnce(func(i int) {
			codes[i], outs[i] = both[i].do(wantMgrs(name, 1+round%2*2+i), "apply", "-f", "-")
		})
		errs := [2]error{}
		for i := range both {
			if codes[i] == exitRefused {
				errs[i] = errors.New(outs[i])
			}
		}
		checkRound(t, both[0], name, 1+round%2*2, errs, fmt.Sprint(codes, outs))
	}
}

// TestApply_atOnceInOneName: on each server the administrator's kubeconfig is in the same name, so ownership of fields tells
// nobody apart. What was checked before somebody else's write is not written after it.
func TestApply_atOnceInOneName(t *testing.T) {
	t.Parallel()
	const rounds = 30
	p := newHome(t, "onename")
	g := globals{kubeconfig: p.kubeconfig}
	for round := range rounds {
		name := fmt.Sprintf("c%d", round/2)
		var writers [2]*writer
		var targets [2]target
		for i := range writers {
			objects, err := parseManifest([]byte(wantMgrs(name, 1+round%2*2+i)), "test", p.namespace)
			if err != nil {
				t.Fatal(err)
			}
			if writers[i], err = g.writer(false); err != nil {
				t.Fatal(err)
			}
			if targets[i], err = writers[i].check(t.Context(), objects[0]); err != nil {
				t.Fatal(err)
			}
		}
		var errs [2]error
		atOnce(func(i int) { _, errs[i] = writers[i].write(t.Context(), targets[i]) })
		checkRound(t, p, name, 1+round%2*2, errs, fmt.Sprint(errs))
	}
}

func wantMgrs(name string, count int) string {
	return fmt.Sprintf("{apiVersion: holdfast.io/v1alpha1, kind: StorageCluster, metadata: {name: %s}, spec: {type: ceph, ceph: {mgr: {count: %d}}}}", name, count)
}

// atOnce does two things at one moment.
func atOnce(do func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range 2 {
		wg.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	wg.Wait()
}

// checkRound wants one to have won, the one who wanted the lowest number of mgrs or the other, who wanted one more.
func checkRound(t *testing.T, p *person, name string, lowest int, errs [2]error, all string) {
	t.Helper()
	winner := 0
	if errs[0] != nil {
		winner = 1
	}
	loss := errs[1-winner]
	if errs[winner] != nil || loss == nil {
		t.Fatalf("%s: not one has won: %s", name, all)
	}
	if !strings.Contains(loss.Error(), "spec.ceph.mgr.count: ") || !strings.Contains(loss.Error(), "holdfast:") {
		t.Errorf("%s: the loser is not told what and who: %v", name, loss)
	}
	c := &api.StorageCluster{}
	if err := p.Get(t.Context(), types.NamespacedName{Namespace: p.namespace, Name: name}, c); err != nil {
		t.Fatal(err)
	}
	if got := int(c.Spec.Ceph.Mgr.Count); got != lowest+winner {
		t.Errorf("%s: %d mgrs are wanted now; the winner wanted %d: %s", name, got, lowest+winner, all)
	}
}

// TestApply_asRead: what was read from the server is edited and applied, also when the status has moved since; not when somebody else has changed it.
func TestApply_asRead(t *testing.T) {
	t.Parallel()
	alice := newHome(t, "asread")
	bob := newPerson(t, "asread", "holdfast:bob")
	alice.must(t, exitOK, alice.manifest("ceph: {mon: {count: 3}}"), []string{"apply", "-f", "-"})
	text := alice.must(t, exitOK, "", []string{"get", "storageclusters", "c", "-o", "yaml"})
	if !strings.Contains(text, "resourceVersion:") || !strings.Contains(text, "generation: 1") {
		t.Fatalf("%s", text)
	}
	c := alice.cluster(t)
	next := metav1.Now()
	c.Status.NextOrchestration = &next
	if err := alice.Status().Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"plan", "apply"} {
		alice.must(t, exitOK, strings.Replace(text, "count: 3", "count: 1", 1), []string{command, "-f", "-"})
	}
	for _, command := range []string{"plan", "apply"} {
		bob.must(t, exitRefused, text, []string{command, "-f", "-", "--force-conflicts"}, "nothing was changed",
			"the object changed by holdfast:admin at 20", "spec.ceph.mon.count: 1 -> 3", "Read the object again, or remove metadata.resourceVersion")
	}
	// Only a version, and not of which generation, is taken at its word.
	version := `{apiVersion: holdfast.io/v1alpha1, kind: StorageCluster, metadata: {name: c, resourceVersion: "1"}, spec: {type: ceph, ceph: {mon: {count: 7}}}}`
	alice.must(t, exitRefused, version, []string{"apply", "-f", "-"}, "spec.ceph.mon.count: 1 -> 7")
	if err := alice.Delete(t.Context(), alice.cluster(t)); err != nil {
		t.Fatal(err)
	}
	alice.must(t, exitRefused, text, []string{"apply", "-f", "-"}, "was deleted since you read it", "remove metadata.uid and metadata.resourceVersion")
}

// TestApply_asReadBeforeRequest: an orchestration that was asked for since is no conflict: the request is nobody's wish for the cluster.
func TestApply_asReadBeforeRequest(t *testing.T) {
	t.Parallel()
	p := newHome(t, "asrequested")
	p.must(t, exitOK, p.manifest("ceph: {mon: {count: 3}}"), []string{"apply", "-f", "-"})
	p.must(t, exitOK, "", []string{"orchestrate", "c"})
	text := p.must(t, exitOK, "", []string{"get", "storageclusters", "c", "-o", "yaml"})
	if !strings.Contains(text, api.AnnotationOrchestrate) {
		t.Fatalf("%s", text)
	}
	p.must(t, exitOK, "", []string{"orchestrate", "c"})
	for _, command := range []string{"plan", "apply"} {
		out := p.must(t, exitOK, strings.Replace(text, "count: 3", "count: 1", 1), []string{command, "-f", "-"})
		if strings.Contains(out, api.AnnotationOrchestrate) {
			t.Errorf("%s tells of the request:\n%s", command, out)
		}
	}
	if c := p.cluster(t); c.Spec.Ceph.Mon.Count != 1 || c.Annotations[api.AnnotationOrchestrate] == "" {
		t.Errorf("%d mons, annotations %v", c.Spec.Ceph.Mon.Count, c.Annotations)
	}
	const asked = "2026-01-02T03:04:05Z"
	written := `{apiVersion: holdfast.io/v1alpha1, kind: StorageCluster, metadata: {name: d, annotations: {` + api.AnnotationOrchestrate + `: "` + asked + `"}}, spec: {type: ceph, ceph: {mon: {count: 1}}}}`
	p.must(t, exitOK, written, []string{"apply", "-f", "-"})
	var d api.StorageCluster
	if err := p.Get(t.Context(), client.ObjectKey{Namespace: p.namespace, Name: "d"}, &d); err != nil || d.Annotations[api.AnnotationOrchestrate] != asked {
		t.Errorf("a request that somebody wrote: %v, %v", d.Annotations, err)
	}
}

// TestApply_conflictMeanwhile: whoever loses to a write between the check and the plan is told what
// and who, as whoever loses before is.
func TestApply_conflictMeanwhile(t *testing.T) {
	t.Parallel()
	alice, bob := newHome(t, "meanwhile"), newPerson(t, "meanwhile", "holdfast:bob")
	g := &globals{kubeconfig: alice.kubeconfig, namespace: "meanwhile", streams: streams{out: io.Discard, err: io.Discard}}
	defer g.dropAsked()
	w, err := g.writer(false)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := parseManifest([]byte(alice.manifest("ceph: {mon: {count: 3}}")), "test", "meanwhile")
	if err != nil {
		t.Fatal(err)
	}
	targets, err := w.checkAll(t.Context(), objects)
	if err != nil {
		t.Fatal(err)
	}
	bob.must(t, exitOK, bob.manifest("ceph: {mon: {count: 1}}"), []string{"apply", "-f", "-"})
	_, err = g.propose(t.Context(), w, api.PlanApply, targets)
	if err == nil || !strings.Contains(err.Error(), "holdfast:bob set it to 1") || !strings.Contains(err.Error(), "; you want 3") {
		t.Errorf("alice is told: %v", err)
	}
}
