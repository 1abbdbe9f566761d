// Package operate tests the operator's home on a real kube-apiserver without nodes: the Store, the
// fence, and who may do what.
package operate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/api/crd"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli"
	release "github.com/holdfast-storage/holdfast/internal/version"
	"github.com/holdfast-storage/holdfast/platform/kube"
	"github.com/holdfast-storage/holdfast/test/hosts"
	bed "github.com/holdfast-storage/holdfast/test/kube"
)

func TestMain(m *testing.M) {
	hosts.MaybeInit()
	if os.Getenv(writerHost) != "" {
		fmt.Fprintln(os.Stderr, write())
		os.Exit(1)
	}
	if v := os.Getenv(operatorRelease); v != "" {
		release.Version = v
		os.Exit(cli.Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}

func isUnfenced(err error) bool { return errors.Is(err, kube.ErrUnfenced) }

func storeScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		api.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme, rbacv1.AddToScheme, storagev1.AddToScheme,
	} {
		must(t, add(scheme))
	}
	return scheme
}

// manifests are the files of deploy/kubernetes that need no node.
func manifests(names ...string) []string {
	args := []string{"apply"}
	for _, name := range names {
		args = append(args, "-f", filepath.Join("..", "..", "..", "deploy", "kubernetes", name+".yaml"))
	}
	return args
}

// install makes a control plane with the kinds, the rights and some policies.
func install(t *testing.T, policies ...string) *bed.Plane {
	t.Helper()
	p := bed.Control(t)
	all, err := crd.Kubernetes()
	if err != nil {
		t.Fatal(err)
	}
	extensions, err := clientset.NewForConfig(p.ConfigFor(t, "admin", bed.Masters))
	if err != nil {
		t.Fatal(err)
	}
	options := crd.Options{Version: "v1.0.0", Definitions: all}
	if err := crd.Install(t.Context(), extensions.ApiextensionsV1().CustomResourceDefinitions(), options); err != nil {
		t.Fatal(err)
	}
	p.Kubectl(t, manifests(append([]string{"00-namespaces", "10-rbac"}, policies...)...)...)
	return p
}

// operator is the way of the operator's ServiceAccount to the API.
func operator(t *testing.T, p *bed.Plane) *rest.Config {
	t.Helper()
	return account(t, p, api.SystemNamespace, kube.OperatorAccount, nil)
}

// account is the way of a ServiceAccount, with a token that the API server made.
func account(t *testing.T, p *bed.Plane, namespace, name string,
	bound *authenticationv1.BoundObjectReference,
) *rest.Config {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: bound}}
	answer, err := p.Client().CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, request,
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(p.ConfigFor(t, "admin", bed.Masters))
	config.BearerToken, config.QPS = answer.Status.Token, -1
	return config
}

func terms(t *testing.T, config *rest.Config) *kube.Terms {
	t.Helper()
	all, err := kube.NewTerms(config, false, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits for what comes by itself.
func eventually(t *testing.T, what string, is func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !is(ctx) {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
