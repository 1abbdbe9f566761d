package operate

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/fence"
	"github.com/holdfast-storage/holdfast/platform/kube"
	bed "github.com/holdfast-storage/holdfast/test/kube"
	"github.com/holdfast-storage/holdfast/test/tier"
)

// The variables that have TestMain be a writer: where the API is, with which token of the API, and
// with which term or none.
const (
	writerHost  = "HOLDFAST_TEST_WRITER"
	writerToken = "HOLDFAST_TEST_WRITER_TOKEN"
	writerTerm  = "HOLDFAST_TEST_WRITER_TERM"
)

// write creates ConfigMaps as fast as it can until it is killed, as an operator that leads, or as
// somebody without a term.
func write() error {
	name := os.Getenv(writerTerm)
	config := &rest.Config{Host: os.Getenv(writerHost), BearerToken: os.Getenv(writerToken), QPS: -1}
	config.Insecure = true // the API server of this test, on loopback
	if name != "" {
		config = kube.Fenced(config, name)
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name:   fmt.Sprintf("old-%d", n),
			Labels: map[string]string{"writer": name},
		}}
		_, err = c.CoreV1().ConfigMaps(namespaceOf(name)).Create(context.Background(), o, metav1.CreateOptions{})
		switch {
		case fence.Lost(err):
			fmt.Println("refused")
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Println("written")
		}
	}
}

// namespaceOf is where a writer writes: one without a term is not the operator, and may write in
// default.
func namespaceOf(term string) string {
	if term == "" {
		return metav1.NamespaceDefault
	}
	return api.SystemNamespace
}

// writer is a process that runs write.
type writer struct {
	cmd *exec.Cmd
	mu  sync.Mutex
	out bytes.Buffer
}

func startWriter(t *testing.T, config *rest.Config, term string) *writer {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	w := &writer{cmd: exec.CommandContext(t.Context(), self)}
	w.cmd.Env = append(os.Environ(), writerHost+"="+config.Host, writerToken+"="+config.BearerToken,
		writerTerm+"="+term)
	w.cmd.Stdout, w.cmd.Stderr = w, w
	must(t, w.cmd.Start())
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill() // it may have ended
		_ = w.cmd.Wait()
	})
	return w
}

// Write takes what the process says.
func (w *writer) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(text)
}

func (w *writer) said(line string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Count(w.out.String(), line+"\n")
}

// TestFence_stoppedLeader stops a leader that writes without a pause (SIGSTOP), lets another one
// take over, and lets the first one go on: none of its writes is done after the first one of its
// successor. The same writer without a term shows that the test would see one.
func TestFence_stoppedLeader(t *testing.T) {
	p := install(t, "20-fence")
	own := operator(t, p)
	admin, err := client.New(p.ConfigFor(t, "admin", bed.Masters), client.Options{Scheme: storeScheme(t)})
	must(t, err)
	lead := func(token string) {
		t.Helper()
		must(t, hold(t.Context(), admin, token))
		must(t, terms(t, own).Won(t.Context(), token))
	}
	lead("first")
	p.Kubectl(t, "create", "serviceaccount", "free")
	p.Kubectl(t, "create", "clusterrolebinding", "free", "--clusterrole=edit", "--serviceaccount=default:free")
	writers := []*writer{startWriter(t, own, "first"), startWriter(t, account(t, p, "default", "free", nil), "")}
	for _, w := range writers {
		eventually(t, "a writer to write", func(context.Context) bool { return w.said("written") > 20 })
		must(t, w.cmd.Process.Signal(syscall.SIGSTOP))
	}
	lead("second")
	second, err := client.New(kube.Fenced(own, "second"), client.Options{})
	must(t, err)
	first := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: "new"}}
	must(t, second.Create(t.Context(), first))
	written := writers[1].said("written")
	for _, w := range writers {
		must(t, w.cmd.Process.Signal(syscall.SIGCONT))
	}
	eventually(t, "the first leader to be refused",
		func(context.Context) bool { return writers[0].said("refused") > 20 })
	eventually(t, "the writer without a term to write",
		func(context.Context) bool { return writers[1].said("written") > written+20 })
	if late := writtenAfter(t, admin, api.SystemNamespace, "first", first); late > 0 {
		t.Errorf("%d writes of the leader that was replaced were done after the first one of its successor", late)
	}
	if late := writtenAfter(t, admin, metav1.NamespaceDefault, "", first); late == 0 {
		t.Error("no write of the writer without a term is seen, so nothing is shown")
	}
}

// writtenAfter counts what a writer wrote after an object. The resourceVersions of one etcd are in
// order.
func writtenAfter(t *testing.T, c client.Client, namespace, term string, o client.Object) int {
	t.Helper()
	var list corev1.ConfigMapList
	must(t, c.List(t.Context(), &list, client.InNamespace(namespace), client.MatchingLabels{"writer": term}))
	if len(list.Items) < 20 {
		t.Errorf("only %d objects of the writer are there", len(list.Items))
	}
	count := 0
	for i := range list.Items {
		if version(t, &list.Items[i]) > version(t, o) {
			count++
		}
	}
	return count
}

func version(t *testing.T, o client.Object) int64 {
	t.Helper()
	n, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	must(t, err)
	return n
}

// TestFence_allVerbs: an operator that was replaced creates, changes, patches and deletes nothing,
// whatever kind it is.
func TestFence_allVerbs(t *testing.T) {
	p := install(t, "20-fence")
	own := operator(t, p)
	admin, err := client.New(p.ConfigFor(t, "admin", bed.Masters), client.Options{Scheme: storeScheme(t)})
	must(t, err)
	must(t, hold(t.Context(), admin, "first"))
	must(t, terms(t, own).Won(t.Context(), "first"))
	first, second := clientOf(t, own, "first"), clientOf(t, own, "second")
	objects := func() []client.Object {
		at := metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: "verbs"}
		return []client.Object{
			&corev1.ConfigMap{ObjectMeta: at}, &corev1.Secret{ObjectMeta: at},
			&api.StorageStatus{ObjectMeta: at}, &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "verbs"}},
		}
	}
	for _, o := range objects() {
		must(t, first.Create(t.Context(), o))
	}
	must(t, hold(t.Context(), admin, "second"))
	must(t, terms(t, own).Won(t.Context(), "second"))
	label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	for _, o := range objects() {
		other := o.DeepCopyObject().(client.Object)
		other.SetName("other")
		must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		for verb, err := range map[string]error{
			"create": first.Create(t.Context(), other), "update": first.Update(t.Context(), o),
			"patch": first.Patch(t.Context(), o, label), "delete": first.Delete(t.Context(), o),
		} {
			if !fence.Lost(err) {
				t.Errorf("%s of a %T by a replaced operator: %v", verb, o, err)
			}
		}
		must(t, second.Patch(t.Context(), o, label))
	}
	if err := terms(t, own).Won(t.Context(), "first"); err == nil {
		t.Error("an operator that was paused after it won took the fence from its successor")
	}
	// Nobody else is held to the fence, also where its policies lack the Term or its kind.
	must(t, admin.Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: "theirs"}}))
	p.Kubectl(t, "-n", api.SystemNamespace, "delete", "term", api.TermName)
	p.Kubectl(t, "delete", "crd", "terms.holdfast.io")
	must(t, admin.Delete(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: "theirs"}}))
}

func clientOf(t *testing.T, own *rest.Config, token string) client.Client {
	t.Helper()
	scheme := storeScheme(t)
	c, err := client.New(kube.Fenced(own, token), client.Options{Scheme: scheme})
	must(t, err)
	return c
}

// TestFence_missing: an operator does not lead where nothing holds the fence, unless it is told to.
func TestFence_missing(t *testing.T) {
	tier.Full(t)
	p := install(t)
	own := operator(t, p)
	admin, err := client.New(p.ConfigFor(t, "admin", bed.Masters), client.Options{Scheme: storeScheme(t)})
	must(t, err)
	must(t, hold(t.Context(), admin, "first"))
	if err := terms(t, own).Won(t.Context(), "first"); !isUnfenced(err) {
		t.Errorf("an operator leads without policies: %v", err)
	}
	p.Kubectl(t, manifests("20-fence")...)
	must(t, terms(t, own).Won(t.Context(), "first"))
	p.Kubectl(t, "delete", "validatingadmissionpolicybinding", "holdfast-leader")
	eventually(t, "the fence to be gone", func(ctx context.Context) bool {
		err := clientOf(t, own, "none").Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: "probe"}})
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	if err := terms(t, own).Watch(t.Context(), "first"); !isUnfenced(err) {
		t.Errorf("the operator that leads does not see that the fence is gone: %v", err)
	}
}
