package control_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/pki"
)

// as returns a client with a certificate that the server's authority signed for leaf.
func as(t *testing.T, s *control.Server, c control.Config, leaf pki.Leaf) client.Client {
	t.Helper()
	return newClient(t, configAs(t, s, c, leaf))
}

func configAs(t *testing.T, s *control.Server, c control.Config, leaf pki.Leaf) *rest.Config {
	t.Helper()
	authority, err := pki.OpenAuthority(filepath.Join(c.DataDir, "pki"))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.NewPair(leaf, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key, err := pair.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	return &rest.Config{
		Host: "https://" + s.Endpoint(),
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: endpoints.ServerName, CAData: authority.CertPEM(), CertData: pair.CertPEM(), KeyData: key,
		},
	}
}

func daemonOn(namespace, name, host, secret string) *api.Daemon {
	return &api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: []string{api.FinalizerDaemon}},
		Spec: api.DaemonSpec{
			Cluster: "a", Type: "t", ID: name, Host: host, State: api.WantRunning, Command: []string{"true"},
			Files: []api.DaemonFile{{Path: "keyring", Sources: []api.FileSource{{Secret: &api.SecretKey{Name: secret, Key: "k"}}}}},
		},
	}
}

// TestHost_rights: over real TLS, a host can do what its agent needs, and nothing to what is not its own.
func TestHost_rights(t *testing.T) {
	s, config := sharedServer(t)
	admin, ctx := newClient(t, s.Config()), t.Context()
	ns := newNamespace(t, admin)
	mine, other := daemonOn(ns, "mine", "h1", "s1"), daemonOn(ns, "other", "h2", "s2")
	for _, o := range []client.Object{
		mine, other,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "s1"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "s2"}},
	} {
		if err := admin.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	h1 := newClient(t, newHost(t, s, config, "h1").config)

	lease := func(name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "holdfast-system", Name: name}}
	}
	host := func(name string, labels map[string]string) *api.Host {
		return &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	patch := func(o client.Object, text string) error {
		return h1.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(text)))
	}
	status := func(o client.Object, text string) error {
		return h1.Status().Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(text)))
	}
	for _, test := range []struct {
		name    string
		allowed bool
		do      func() error
	}{
		{"create another host", false, func() error { return h1.Create(ctx, host("h9", nil)) }},
		{"create itself", false, func() error { return h1.Create(ctx, host("h1", map[string]string{api.LabelHostname: "h1"})) }},
		{"write its own status", true, func() error { return status(host("h1", nil), `{"status":{"agentVersion":"1"}}`) }},
		{"say that its spec was seen", false, func() error { return status(host("h1", nil), `{"status":{"observedGeneration":7}}`) }},
		{"label itself", false, func() error { return patch(host("h1", nil), `{"metadata":{"labels":{"rack":"1"}}}`) }},
		{"list all daemons", false, func() error { return h1.List(ctx, &api.DaemonList{}) }},
		{"list its daemons", true, func() error {
			list := &api.DaemonList{}
			if err := h1.List(ctx, list, client.MatchingFields{"spec.host": "h1"}); err != nil {
				return err
			}
			if len(list.Items) != 1 || list.Items[0].Name != "mine" {
				return fmt.Errorf("got %d daemons", len(list.Items))
			}
			return nil
		}},
		{"create a daemon", false, func() error { return h1.Create(ctx, daemonOn(ns, "new", "h1", "s1")) }},
		{"write the status of its daemon", true, func() error { return status(mine.DeepCopy(), `{"status":{"state":"Running"}}`) }},
		{"write the status of another's daemon", false, func() error { return status(other.DeepCopy(), `{"status":{"state":"Running"}}`) }},
		{"change the spec of its daemon", false, func() error { return patch(mine.DeepCopy(), `{"spec":{"command":["sh"]}}`) }},
		{"label its daemon", false, func() error { return patch(mine.DeepCopy(), `{"metadata":{"labels":{"a":"b"}}}`) }},
		{"take the finalizer of another's daemon", false, func() error { return patch(other.DeepCopy(), `{"metadata":{"finalizers":null}}`) }},
		{"read the secret of its daemon", true, func() error {
			return h1.Get(ctx, client.ObjectKey{Namespace: ns, Name: "s1"}, &corev1.Secret{})
		}},
		{"read another secret", false, func() error {
			return h1.Get(ctx, client.ObjectKey{Namespace: ns, Name: "s2"}, &corev1.Secret{})
		}},
		{"list secrets", false, func() error { return h1.List(ctx, &corev1.SecretList{}) }},
		{"create its lease", true, func() error { return h1.Create(ctx, lease("host-h1")) }},
		{"create the leader's lease", false, func() error { return h1.Create(ctx, lease("leader")) }},
		{"renew its lease", true, func() error { return patch(lease("host-h1"), `{"spec":{"holderIdentity":"h1"}}`) }},
		{"delete its daemon", false, func() error { return h1.Delete(ctx, mine.DeepCopy()) }},
	} {
		if err := test.do(); (err == nil) != test.allowed || err != nil && test.allowed != !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v, want allowed %v", test.name, err, test.allowed)
		}
	}
	if err := admin.Delete(ctx, mine); err != nil {
		t.Fatal(err)
	}
	before := mine.DeepCopy()
	if !controllerutil.RemoveFinalizer(mine, api.FinalizerDaemon) {
		t.Fatal("the daemon has no finalizer")
	}
	if err := h1.Patch(ctx, mine, client.MergeFrom(before)); err != nil {
		t.Errorf("taking the finalizer of a deleted daemon of its own: %v", err)
	}
	if err := admin.Get(ctx, client.ObjectKeyFromObject(before), &api.Daemon{}); !apierrors.IsNotFound(err) {
		t.Errorf("the daemon should be gone, got %v", err)
	}
}

// TestServer_knowsWhoAsks: nothing is answered in clear text, and nothing of the API to one who shows no certificate, or one that
// another authority signed.
func TestServer_knowsWhoAsks(t *testing.T) {
	s, config := sharedServer(t)
	admin := configAs(t, s, config, pki.Leaf{User: "a", Groups: []string{"holdfast:admins"}})
	plain, nobody, stranger := rest.AnonymousClientConfig(admin), rest.AnonymousClientConfig(admin), rest.CopyConfig(admin)
	plain.Host, plain.TLSClientConfig = "http://"+s.Endpoint(), rest.TLSClientConfig{}
	stranger.CertData, stranger.KeyData = strangers(t, pki.Leaf{User: "a", Groups: []string{"holdfast:admins"}})
	for _, test := range []struct {
		name string
		as   *rest.Config
		want int
	}{
		{"an administrator", admin, http.StatusOK},
		{"clear text", plain, http.StatusBadRequest},
		{"no certificate", nobody, http.StatusUnauthorized},
		{"a certificate of another authority", stranger, http.StatusUnauthorized},
	} {
		if got := listHosts(t, test.as); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}

// listHosts returns with which status a list of the Hosts is answered.
func listHosts(t *testing.T, c *rest.Config) int {
	t.Helper()
	c.Timeout = time.Minute
	h, err := rest.HTTPClientFor(c)
	if err != nil {
		t.Fatal(err)
	}
	defer h.CloseIdleConnections()
	answer, err := h.Get(c.Host + "/apis/" + api.GroupVersion.String() + "/hosts")
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Error(err)
	}
	return answer.StatusCode
}

// strangers returns a certificate by an authority that no server knows, and its key.
func strangers(t *testing.T, leaf pki.Leaf) (cert, key []byte) {
	t.Helper()
	authority, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.NewPair(leaf, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if key, err = pair.KeyPEM(); err != nil {
		t.Fatal(err)
	}
	return pair.CertPEM(), key
}

func TestViewer_rights(t *testing.T) {
	s, config := sharedServer(t)
	viewer := as(t, s, config, pki.Leaf{User: "v", Groups: []string{"holdfast:viewers"}})
	if err := viewer.List(t.Context(), &api.HostList{}); err != nil {
		t.Errorf("listing hosts: %v", err)
	}
	if err := viewer.List(t.Context(), &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing secrets: got %v, want forbidden", err)
	}
}

// TestSecrets_encryptedAtRest reads etcd itself, and finds the Secret but not what it holds. Hosts cannot reach etcd,
// although the same authority signed their certificates.
func TestSecrets_encryptedAtRest(t *testing.T) {
	t.Parallel()
	s, config := sharedServer(t)
	admin := newClient(t, s.Config())
	ns := newNamespace(t, admin)
	const plain = "AQDplaintextthatmustnotbeseen"
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "key"}, StringData: map[string]string{"key": plain},
	}
	if err := admin.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	raw, err := fromEtcd(t, config, filepath.Join(config.DataDir, "pki"), "etcd", "/registry/secrets/"+ns+"/key")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(raw, []byte("k8s:enc:secretbox:v1:")) || bytes.Contains(raw, []byte(plain)) || bytes.Contains(raw, []byte("data")) {
		t.Errorf("etcd holds %q, want it encrypted", raw)
	}
	if _, err := fromEtcd(t, config, filepath.Join(config.DataDir, "host"), "host", "/registry/secrets/"+ns+"/key"); err == nil {
		t.Error("a host's certificate opened etcd")
	}
}

func fromEtcd(t *testing.T, config control.Config, dir, name, key string) ([]byte, error) {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(pki.CertFile(dir, name), pki.KeyFile(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(config.DataDir, "pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{fmt.Sprintf("127.0.0.1:%d", config.EtcdClientPort)}, DialTimeout: 3 * time.Second,
		TLS: &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: roots},
	})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := timeoutOf(10 * time.Second)
	defer cancel()
	got, err := c.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	if len(got.Kvs) != 1 {
		t.Fatalf("etcd holds %d values of %s", len(got.Kvs), key)
	}
	return got.Kvs[0].Value, nil
}

// TestFiles_private: nobody but the owner can read anything of the data directory.
func TestFiles_private(t *testing.T) {
	_, config := sharedServer(t)
	err := filepath.WalkDir(config.DataDir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 && !strings.Contains(path, "/etcd") {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
