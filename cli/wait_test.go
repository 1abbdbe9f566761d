package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/gone"
)

// getAnswers is a client whose Gets are answered one after the other, the last one for ever. An answer is a UID or an error.
type getAnswers struct {
	client.Client
	list []any
	asks int
}

func (a *getAnswers) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	answer := a.list[min(a.asks, len(a.list)-1)]
	a.asks++
	if err, ok := answer.(error); ok {
		return err
	}
	o.SetUID(types.UID(answer.(string)))
	return nil
}

func TestWaitGone(t *testing.T) {
	kind := schema.GroupResource{Group: "holdfast.io", Resource: "storageclusters"}
	none, away := apierrors.NewNotFound(kind, "c"), apierrors.NewInternalError(errors.New("etcd is away"))
	tests := []struct {
		name    string
		answers []any
		code    int
		says    string
	}{
		{"gone", []any{"1", "1", none}, exitOK, ""},
		{"another of its name", []any{"1", "2"}, exitOK, ""},
		{"the server is away for a moment", []any{"1", away, away, "1", none}, exitOK, ""},
		{"the server stays away", []any{"1", away}, exitTimeout, "cannot tell whether "},
		{"it stays", []any{"1"}, exitTimeout, "is not gone after 1m0s"},
		{"it may not be looked at", []any{apierrors.NewForbidden(kind, "c", nil)}, exitFailed, "forbidden"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := &unstructured.Unstructured{}
				u.SetGroupVersionKind(schema.GroupVersionKind{Group: "holdfast.io", Version: "v1alpha1", Kind: "StorageCluster"})
				u.SetName("c")
				live := u.DeepCopy()
				live.SetUID("1")
				of := target{object: object{Unstructured: u, source: "test"}, live: live}
				err := waitGone(t.Context(), &getAnswers{list: tt.answers}, of, &gone.Teller{}, time.Minute)
				code, text := exitOK, ""
				var coded *exitError
				switch {
				case errors.As(err, &coded):
					code, text = coded.code, err.Error()
				case err != nil:
					code, text = exitFailed, err.Error()
				}
				if code != tt.code || !strings.Contains(text, tt.says) {
					t.Errorf("%d, %q; want %d, %q", code, text, tt.code, tt.says)
				}
			})
		})
	}
}

// TestApply_waitsForAllClusters: what becomes of each is told, whichever comes first in the file.
func TestApply_waitsForAllClusters(t *testing.T) {
	t.Parallel()
	p := newHome(t, "several")
	for _, name := range []string{"slow", "quick"} {
		c := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "several", Name: name}, Spec: api.StorageClusterSpec{Type: api.StorageCeph, Interval: metav1.Duration{Duration: time.Minute}, Ceph: &api.CephSpec{}}}
		if err := p.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if name == "slow" {
			continue
		}
		c.Status.ObservedGeneration = c.Generation
		c.Status.Conditions = []metav1.Condition{{Type: api.ClusterReady, Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: c.Generation, LastTransitionTime: metav1.Now()}}
		if err := p.Status().Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := &until{text: "quick: ", do: cancel}
	g := &globals{kubeconfig: p.kubeconfig, namespace: "several", streams: streams{out: out}}
	var objects []object
	for _, name := range []string{"slow", "quick"} {
		u := &unstructured.Unstructured{}
		u.SetKind("StorageCluster")
		u.SetNamespace("several")
		u.SetName(name)
		objects = append(objects, object{Unstructured: u, source: "test"})
	}
	if err := g.waitReady(ctx, p, objects, applyOptions{timeout: time.Hour}, newPrinter(out, "")); err == nil || ctx.Err() != context.Canceled {
		t.Errorf("nothing was told of the second while the first was waited for: %v\n%s", err, out.String())
	}
}

// A volume of a cluster that is not there is not waited for: nobody acts on it.
func TestApply_waitsForNoCluster(t *testing.T) {
	t.Parallel()
	p := newHome(t, "nowhere")
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"cluster": "typo"}}}
	u.SetKind("Volume")
	u.SetNamespace("nowhere")
	u.SetName("v")
	g := &globals{kubeconfig: p.kubeconfig, namespace: "nowhere", streams: streams{out: &strings.Builder{}}}
	of := []object{{Unstructured: u, source: "test"}}
	err := g.waitReady(t.Context(), p, of, applyOptions{timeout: time.Hour}, newPrinter(&strings.Builder{}, ""))
	var coded *exitError
	if !errors.As(err, &coded) || coded.code != exitRefused || !strings.Contains(err.Error(), "storagecluster/typo does not exist in namespace nowhere") {
		t.Errorf("%v", err)
	}
}

// until does something when a text was written to it.
type until struct {
	strings.Builder
	text string
	do   func()
}

func (u *until) Write(p []byte) (int, error) {
	defer func() {
		if strings.Contains(u.String(), u.text) {
			u.do()
		}
	}()
	return u.Builder.Write(p)
}

// TestKubeconfig_list: KUBECONFIG may name several files, some of which are not there.
func TestKubeconfig_list(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a := write("a", "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: far, user: alice}}]\n")
	b := write("b", "apiVersion: v1\nkind: Config\nclusters: [{name: far, cluster: {server: 'https://far.example:6443'}}]\nusers: [{name: alice, user: {token: t}}]\n")
	t.Setenv("HOLDFAST_KUBECONFIG", "")
	t.Setenv("KUBECONFIG", fmt.Sprintf("%s:%s:%s", a, filepath.Join(dir, "none"), b))
	g := globals{dataDir: dir}
	config, err := g.restConfig()
	if err != nil || config.Host != "https://far.example:6443" {
		t.Fatalf("%v, %v", config, err)
	}
	if owner, err := g.owner(); err != nil || owner != "alice" {
		t.Errorf("fields would belong to %q (%v)", owner, err)
	}
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	if _, err := g.restConfig(); err == nil {
		t.Error("a file that is not there is no error")
	}
}
