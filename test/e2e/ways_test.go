package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/fence"
	"github.com/holdfast-storage/holdfast/test/linear"
)

// patience is how long an answer is waited for. Whoever gave up does not know whether a write was done, or will be.
const patience = 2 * time.Second

// way is a client's way to the API over one server.
type way struct {
	kube.Client
	server string
	// answers counts the answers that came over it.
	answers atomic.Int64
}

// ways are ways over all servers. They do not share connections with other ways.
type ways []*way

// ways makes them, with the rights of a server, whose writes alone may have a fence, or with those of an administrator. They send no
// request twice: an answer that asks for that is one.
func (b *bed) ways(rights func(dir string, port int) (*rest.Config, error)) ways {
	b.Helper()
	var all ways
	for _, h := range b.Lab.Hosts() {
		config, err := rights(h.Path(dataDir), 0)
		if err != nil {
			b.Fatalf("while making a certificate of host %s: %v", h.Name, err)
		}
		config.Host = "https://" + h.IP + ":7440"
		c, err := dial(config)
		if err != nil {
			b.Fatalf("while preparing to reach the server of host %s: %v", h.Name, err)
		}
		all = append(all, &way{Client: c, server: h.Name})
	}
	return all
}

func dial(config *rest.Config) (kube.Client, error) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return once{next} })
	scheme, mapper := runtime.NewScheme(), meta.NewDefaultRESTMapper(nil)
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	// Who asked a server for its kinds could not begin without it.
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	mapper.Add(api.GroupVersion.WithKind("Action"), meta.RESTScopeNamespace)
	mapper.Add(api.GroupVersion.WithKind("StorageCluster"), meta.RESTScopeNamespace)
	mapper.Add(api.GroupVersion.WithKind("Host"), meta.RESTScopeRoot)
	return kube.New(fence.Config(config), kube.Options{Scheme: scheme, Mapper: mapper})
}

// once hides from the library that a server asks to be asked again: it would send a write twice that may have been done.
type once struct{ next http.RoundTripper }

func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := o.next.RoundTrip(r)
	if err == nil {
		answer.Header.Del("Retry-After")
	}
	return answer, err
}

// ask does something over one of the ways, chosen by chance.
func (w ways) ask(do func(ctx context.Context, c kube.Client) error) error {
	return w.askOver(w[rand.IntN(len(w))], do)
}

func (ways) askOver(one *way, do func(ctx context.Context, c kube.Client) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := do(ctx, one)
	if err == nil {
		one.answers.Add(1)
	}
	return err
}

// setUp makes something that is not recorded, over the first way: the servers have just begun, and may be slow to answer.
func (w ways) setUp(t *testing.T, do func(ctx context.Context, c kube.Client) error) {
	t.Helper()
	began := time.Now()
	for {
		err := w.askOver(w[0], do)
		if err == nil || apierrors.IsAlreadyExists(err) {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// answerTo is the answer to a write.
func answerTo(t *testing.T, err error) any {
	t.Helper()
	switch {
	case err == nil:
		return linear.Done{}
	case fence.Lost(err):
		return linear.Refused{}
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return linear.Overtaken{}
	case errors.Is(err, syscall.ECONNREFUSED), apierrors.IsServiceUnavailable(err): // it does not run, or is not ready yet
		return linear.Moot{}
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err), apierrors.IsUnauthorized(err):
		t.Errorf("an answer that nobody expected: %v", err)
	}
	return linear.Unknown{}
}

// leader asks over a way who leads, and returns the number of the server.
func (b *bed) leaderOver(w ways, over int) (number int, err error) {
	var lease coordinationv1.Lease
	err = w.askOver(w[over-1], func(ctx context.Context, c kube.Client) error {
		return c.Get(ctx, kube.ObjectKey{Namespace: "holdfast-system", Name: "leader"}, &lease)
	})
	if err != nil {
		return 0, err
	}
	holder, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	for i, h := range b.Lab.Hosts() {
		if h.Name == holder {
			return i + 1, nil
		}
	}
	return 0, fmt.Errorf("the leader is %q", holder)
}

// versionOf is the number of an object's version.
func versionOf(o kube.Object) int64 {
	n, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return -1
	}
	return n
}
