package operate

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/api/crd"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/platform/kube"
	bed "github.com/holdfast-storage/holdfast/test/kube"
)

// keep has a Keeper of a leader keep the rights of hosts until the test ends.
func keep(t *testing.T, p *bed.Plane) {
	t.Helper()
	own := operator(t, p)
	must(t, hold(t.Context(), clientAs(t, p, "admin", bed.Masters), "first"))
	must(t, terms(t, own).Won(t.Context(), "first"))
	said := &log{t: t}
	k, err := kube.NewKeeper(kube.Fenced(own, "first"), labels.Everything(), slog.New(slog.NewTextHandler(said, nil)))
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if said.has("while creating *v1.RoleBinding") {
			t.Error("the keeper binds a Role before it is there")
		}
	})
}

// log is what somebody logs.
type log struct {
	t    *testing.T
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *log) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(text)
	return l.t.Output().Write(text)
}

func (l *log) has(words string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), words)
}

func clientAs(t *testing.T, p *bed.Plane, user string, groups ...string) client.Client {
	t.Helper()
	c, err := client.New(p.ConfigFor(t, user, groups...), client.Options{Scheme: storeScheme(t)})
	must(t, err)
	return c
}

// declared makes two nodes, a cluster, and a daemon with a Secret on each.
func declared(t *testing.T, p *bed.Plane) {
	t.Helper()
	admin := clientOf(t, operator(t, p), "first")
	people := clientAs(t, p, "admin", bed.Masters)
	for _, name := range []string{"h1", "h2"} {
		must(t, people.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{"rack": "r1"},
		}}))
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "key-" + name}}
		secret.Labels = map[string]string{api.LabelCluster: "c"}
		secret.Annotations = map[string]string{api.AnnotationEntity: "mon."}
		secret.Data = map[string][]byte{"key": []byte("k")}
		must(t, admin.Create(t.Context(), secret))
		must(t, admin.Create(t.Context(), daemon(name)))
	}
	must(t, people.Create(t.Context(), cluster("default")))
	eventually(t, "the accounts and rights of the hosts", func(ctx context.Context) bool {
		return may(ctx, t, p, "h2", "get secrets default/key-h2") && may(ctx, t, p, "h1",
			"get secrets default/key-h1") &&
			may(ctx, t, p, "h1", "create pods default/")
	})
}

func cluster(namespace string) *api.StorageCluster {
	c := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}}
	c.Spec.Type, c.Spec.Ceph = api.StorageCeph, &api.CephSpec{}
	c.Spec.Interval = metav1.Duration{Duration: time.Minute}
	return c
}

func daemon(host string) *api.Daemon {
	source := api.FileSource{Secret: &api.SecretKey{Name: "key-" + host, Key: "key"}}
	return &api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mon-" + host, Finalizers: []string{api.FinalizerDaemon}},
		Spec: api.DaemonSpec{
			Cluster: "c", Type: "ceph-mon", ID: host, Host: host, State: api.WantRunning, Command: []string{"ceph-mon"},
			Files: []api.DaemonFile{{Path: "keyring", Sources: []api.FileSource{source}}},
		},
	}
}

// may asks the API server whether a user may do something: "verb resource.group/sub
// namespace/name".
func may(ctx context.Context, t *testing.T, p *bed.Plane, who, request string) bool {
	t.Helper()
	words := strings.Fields(request)
	at := &authorizationv1.ResourceAttributes{Verb: words[0]}
	resource, sub, _ := strings.Cut(words[1], "/")
	at.Resource, at.Group, _ = strings.Cut(resource, ".")
	at.Subresource = sub
	at.Namespace, at.Name, _ = strings.Cut(words[2], "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: at}}
	review.Spec.User, review.Spec.Groups = who, []string{"system:authenticated"}
	if who == "h1" || who == "h2" {
		review.Spec.User = "system:serviceaccount:holdfast-hosts:" + who
		review.Spec.Groups = append(review.Spec.Groups, "system:serviceaccounts",
			"system:serviceaccounts:holdfast-hosts")
	}
	answer, err := p.Client().AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	must(t, err)
	return answer.Status.Allowed
}

// TestRights asks a real API server what control/access's test of its authorizer asks. Where the
// answer differs from that of Holdfast's own servers, a comment says why.
func TestRights(t *testing.T) {
	p := install(t, "20-fence")
	keep(t, p)
	declared(t, p)
	p.Kubectl(t, "create", "clusterrolebinding", "v", "--clusterrole=holdfast-viewer", "--user=viewer")
	p.Kubectl(t, "create", "clusterrolebinding", "a", "--clusterrole=holdfast-admin", "--user=manager")
	p.Kubectl(t, "create", "rolebinding", "v", "--clusterrole=view", "--user=reader")
	for _, test := range []struct {
		who, request string
		allowed      bool
	}{
		{"manager", "create storageclusters.holdfast.io ns/", true},
		{"manager", "approve actions.holdfast.io ns/a", true},
		{"manager", "update daemons.holdfast.io/status ns/a", false},
		{"manager", "update terms.holdfast.io holdfast-system/leader", false},
		{"viewer", "list daemons.holdfast.io /", true},
		{"viewer", "watch hosts.holdfast.io /", true},
		{"viewer", "get secrets ns/a", false},
		{"viewer", "update daemons.holdfast.io/status ns/a", false},
		{"viewer", "delete hosts.holdfast.io /h1", false},
		{"viewer", "approve actions.holdfast.io ns/a", false},
		{"reader", "get pools.holdfast.io default/a", true},
		{"reader", "get pools.holdfast.io other/a", false},
		{"reader", "get hosts.holdfast.io /h1", false}, // a role of a namespace holds for what is in namespaces

		// RBAC binds no reads to a field selector: a host reads the Hosts, Daemons and Actions of
		// the others. No secret is in them.
		{"h1", "list hosts.holdfast.io /", true},
		{"h1", "list daemons.holdfast.io /", true},
		{"h1", "get storageclusters.holdfast.io default/c", true},
		{"h1", "create hosts.holdfast.io /", false},
		{"h1", "update hosts.holdfast.io /h1", false},
		{"h1", "delete hosts.holdfast.io /h1", false},
		{"h1", "patch hosts.holdfast.io/status /h1", true},
		{"h1", "create daemons.holdfast.io default/", false},
		{"h1", "delete daemons.holdfast.io default/a", false},
		{"h1", "deletecollection daemons.holdfast.io default/", false},
		{"h1", "patch daemons.holdfast.io default/a", true}, // the policy looks at what is patched
		{"h1", "update daemons.holdfast.io/status default/a", true},
		{"h1", "create actions.holdfast.io default/", false},
		{"h1", "update actions.holdfast.io default/a", false},

		{"h1", "get secrets default/key-h1", true},
		{"h1", "get secrets default/key-h2", false},
		{"h1", "get secrets kube-system/key-h1", false},
		{"h1", "list secrets default/", false},
		{"h1", "watch secrets default/key-h1", false},
		{"h1", "update secrets default/key-h1", false},

		{"h1", "create leases.coordination.k8s.io holdfast-system/", true},
		{"h1", "create leases.coordination.k8s.io default/", false},
		{"h1", "delete leases.coordination.k8s.io holdfast-system/host-h1", false},
		{"h1", "create pods default/", true},
		{"h1", "create pods kube-system/", false}, // there is no cluster
		{"h1", "get configmaps holdfast-system/told-default.c", false},
		{"h1", "impersonate users /admin", false},
		{"h1", "create serviceaccounts/token holdfast-hosts/h1", false},

		{
			"system:serviceaccount:holdfast-system:holdfast-agent", "create serviceaccounts/token holdfast-hosts/h1",
			true,
		},
		{"system:serviceaccount:holdfast-system:holdfast-agent", "create serviceaccounts/token " +
			"holdfast-system/holdfast-operator", false},
		{"system:serviceaccount:holdfast-system:holdfast-agent", "watch serviceaccounts holdfast-hosts/h1", true},
		{"system:serviceaccount:holdfast-system:holdfast-agent", "watch serviceaccounts holdfast-system/", false},
		{"system:serviceaccount:holdfast-system:holdfast-agent", "update serviceaccounts holdfast-hosts/h1", false},
		{"system:serviceaccount:holdfast-system:holdfast-agent", "get secrets default/key-h1", false},
		{"system:serviceaccount:holdfast-system:holdfast-agent", "get hosts.holdfast.io /h1", false},
		{kube.Operator, "impersonate users /admin", false},
		{kube.Operator, "impersonate serviceaccounts kube-system/namespace-controller", false},
		{kube.Operator, "escalate clusterroles.rbac.authorization.k8s.io /x", false},
		{kube.Operator, "bind clusterroles.rbac.authorization.k8s.io /cluster-admin", false},
		{kube.Operator, "create pods default/", false},
		{kube.Operator, "create nodes /", false},
		{kube.Operator, "update customresourcedefinitions.apiextensions.k8s.io /others.example.com", false},
		{kube.Operator, "delete customresourcedefinitions.apiextensions.k8s.io /pools.holdfast.io", false},
		{kube.Operator, "create events default/", true},
		{kube.Operator, "create events kube-system/", false},
		{"other", "list hosts.holdfast.io /", false},
	} {
		if got := may(t.Context(), t, p, test.who, test.request); got != test.allowed {
			t.Errorf("%s may %s: %v, want %v", test.who, test.request, got, test.allowed)
		}
	}
	all, err := crd.Kubernetes()
	must(t, err)
	for _, definition := range all {
		if !may(t.Context(), t, p, kube.Operator, "update customresourcedefinitions.apiextensions.k8s.io /"+definition.Name) {
			t.Errorf("the operator may not bring %s to its release", definition.Name)
		}
	}
}
