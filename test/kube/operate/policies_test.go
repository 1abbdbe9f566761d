package operate

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/hosttoken"
	"github.com/holdfast-storage/holdfast/platform/kube"
	bed "github.com/holdfast-storage/holdfast/test/kube"
)

// attempt is a write, and what the refusal says; empty where it is done.
type attempt struct {
	name, refusal string
	do            func(ctx context.Context) error
}

func tryAll(t *testing.T, attempts []attempt) {
	t.Helper()
	for _, a := range attempts {
		err := a.do(t.Context())
		switch {
		case a.refusal == "" && err != nil:
			t.Errorf("%s: %v", a.name, err)
		case a.refusal != "" && (!apierrors.IsForbidden(err) || !strings.Contains(fmt.Sprint(err), a.refusal)):
			t.Errorf("%s: %v, want a refusal that says %q", a.name, err, a.refusal)
		}
	}
}

func merged(text string) client.Patch {
	return client.RawPatch("application/merge-patch+json", []byte(text))
}

// TestPolicies_hosts sends what an agent of host h1 may send, and what it may not, with the real
// identities.
func TestPolicies_hosts(t *testing.T) {
	p := install(t, "20-fence", "21-hosts")
	keep(t, p)
	declared(t, p)
	h1, err := client.New(account(t, p, hosttoken.Namespace, "h1", nil), client.Options{Scheme: storeScheme(t)})
	must(t, err)
	operator := clientOf(t, operator(t, p), "first")
	host := func(name string) *api.Host { return &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	its := func(name string) *api.Daemon {
		return &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	}
	lease := func(name, holder string) *coordinationv1.Lease {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: name}}
		l.Spec.HolderIdentity = &holder
		return l
	}
	p.Kubectl(t, "create", "serviceaccount", "free")
	uid := its("mon-h1")
	must(t, operator.Get(t.Context(), client.ObjectKeyFromObject(uid), uid))
	status := func(o client.Object, text string) func(context.Context) error {
		return func(ctx context.Context) error { return h1.Status().Patch(ctx, o, merged(text)) }
	}
	pod := func(change func(*corev1.Pod)) func(context.Context) error {
		return func(ctx context.Context) error {
			o := daemonPod(uid)
			change(o)
			return h1.Create(ctx, o)
		}
	}
	action := func(name, host string, state api.ActionState) *api.Action {
		a := &api.Action{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		a.Spec.Kind, a.Spec.Host, a.Spec.Want, a.Spec.Target = "test.work", host, api.WantDone, "host/"+host
		must(t, operator.Create(t.Context(), a))
		a.Status.State, a.Status.Executor = state, api.ByAgent
		must(t, operator.Status().Update(t.Context(), a))
		return a
	}
	tryAll(t, []attempt{
		{"its own status", "", status(host("h1"), `{"status":{"agentVersion":"1"}}`)},
		{
			"another host's status", "may write the status of the Host h1 alone",
			status(host("h2"), `{"status":{"agentVersion":"1"}}`),
		},
		{
			"the generation that was seen", "status.observedGeneration",
			status(host("h1"), `{"status":{"observedGeneration":7}}`),
		},
		{"a condition of the leader's", "may write only the conditions", status(host("h1"),
			`{"status":{"conditions":[{"type":"AgentConnected","status":"True","reason":"Connected","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)},
		{"the status of its daemon", "", status(its("mon-h1"), `{"status":{"state":"Running"}}`)},
		{
			"the status of another one's daemon", "of its own daemons alone",
			status(its("mon-h2"), `{"status":{"state":"Running"}}`),
		},
		{"the spec of its daemon", "may change only the status of a daemon", func(ctx context.Context) error {
			return h1.Patch(ctx, its("mon-h1"), merged(`{"spec":{"command":["sh"]}}`))
		}},
		{"a label of its daemon", "may change only the status of a daemon", func(ctx context.Context) error {
			return h1.Patch(ctx, its("mon-h1"), merged(`{"metadata":{"labels":{"a":"b"}}}`))
		}},
		{"a finalizer of its own", "may change only the status of a daemon", func(ctx context.Context) error {
			return h1.Patch(ctx, its("mon-h1"), merged(`{"metadata":{"finalizers":["holdfast.io/daemon","a/b"]}}`))
		}},
		{"the agent's finalizer", "", func(ctx context.Context) error {
			return h1.Patch(ctx, its("mon-h1"), merged(`{"metadata":{"finalizers":[]}}`))
		}},
		{"the finalizer of another one's", "of its own daemons alone", func(ctx context.Context) error {
			return h1.Patch(ctx, its("mon-h2"), merged(`{"metadata":{"finalizers":[]}}`))
		}},
		{"its lease", "", func(ctx context.Context) error { return h1.Create(ctx, lease("host-h1", "h1")) }},
		{"its lease for another one", "holds the lease host-h1 itself", func(ctx context.Context) error {
			return h1.Patch(ctx, lease("host-h1", ""), merged(`{"spec":{"holderIdentity":"h2"}}`))
		}},
		{"a label of its lease", "no labels", func(ctx context.Context) error {
			return h1.Patch(ctx, lease("host-h1", ""), merged(`{"metadata":{"labels":{"a":"b"}}}`))
		}},
		{
			"another one's lease", "may write the lease host-h1 alone",
			func(ctx context.Context) error { return h1.Create(ctx, lease("host-h2", "h1")) },
		},
		{"the leader's lease", "may write the lease host-h1 alone", func(ctx context.Context) error {
			return h1.Patch(ctx, lease("leader", ""), merged(`{"spec":{"holderIdentity":"h1"}}`))
		}},
		{"its turn", "", status(action("turn", "h1", api.ActionNew), `{"status":{"state":"Running"}}`)},
		{
			"another one's action", "of its own actions alone",
			status(action("theirs", "h2", api.ActionNew), `{"status":{"state":"Running"}}`),
		},
		{
			"an action that has ended", "it is not its host's turn",
			status(action("ended", "h1", api.ActionDone), `{"status":{"state":"Running"}}`),
		},
		{
			"a state that is not its own", "cannot make an action PendingApproval",
			status(action("state", "h1", api.ActionRunning), `{"status":{"state":"PendingApproval"}}`),
		},

		{"a pod of its daemon", "", pod(func(*corev1.Pod) {})},
		{"a pod on another node", "pods of its own node alone", pod(func(o *corev1.Pod) { o.Spec.NodeName = "h2" })},
		{"a pod for the scheduler", "pods of its own node alone", pod(func(o *corev1.Pod) { o.Spec.NodeName = "" })},
		{"a pod without a daemon", "pods of its Daemons alone", pod(func(o *corev1.Pod) { o.OwnerReferences = nil })},
		{"a pod with a Secret", "volumes of hostPath alone", pod(func(o *corev1.Pod) {
			o.Spec.Volumes = append(o.Spec.Volumes, corev1.Volume{
				Name:         "s",
				VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "key-h2"}},
			})
		})},
		{
			"a pod with an account", "the account default",
			pod(func(o *corev1.Pod) { o.Spec.ServiceAccountName = "free" }),
		},
		{
			"a pod with a token", "no token of it",
			pod(func(o *corev1.Pod) { o.Spec.AutomountServiceAccountToken = nil }),
		},
		{"a pod with a Secret in its environment", "no environment from Secrets", pod(func(o *corev1.Pod) {
			o.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "key-h2"}}}}
		})},
	})
}

// daemonPod is a pod as the agent makes it.
func daemonPod(d *api.Daemon) *corev1.Pod {
	yes, no := true, false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, GenerateName: d.Name + "-",
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: api.GroupVersion.String(), Kind: "Daemon", Name: d.Name, UID: d.UID, Controller: &yes,
				BlockOwnerDeletion: &no,
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: d.Spec.Host, HostNetwork: true, AutomountServiceAccountToken: &no,
			Containers: []corev1.Container{{Name: "d", Image: "i", Command: d.Spec.Command}},
			Volumes:    []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/holdfast"}}}},
		},
	}
}

// TestPolicies_token: the agent's pod gets the token of its own node's host, and none other, and
// only one that ends with the Node.
func TestPolicies_token(t *testing.T) {
	p := install(t, "20-fence", "21-hosts")
	keep(t, p)
	declared(t, p)
	no := false
	own := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: "agent"},
		Spec: corev1.PodSpec{
			NodeName: "h1", ServiceAccountName: "holdfast-agent", AutomountServiceAccountToken: &no,
			Containers: []corev1.Container{{Name: "agent", Image: "i"}},
		},
	}
	must(t, clientAs(t, p, "admin", bed.Masters).Create(t.Context(), own))
	bound := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: own.Name, UID: own.UID}
	inPod := account(t, p, api.SystemNamespace, "holdfast-agent", bound)
	agent, err := kubernetes.NewForConfig(inPod)
	must(t, err)
	ask := func(host string, to *authenticationv1.BoundObjectReference) func(context.Context) error {
		return func(ctx context.Context) error {
			request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: to}}
			_, err := agent.CoreV1().ServiceAccounts(hosttoken.Namespace).CreateToken(ctx, host, request,
				metav1.CreateOptions{})
			return err
		}
	}
	node := func(name string) *authenticationv1.BoundObjectReference {
		return &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Node", Name: name}
	}
	tryAll(t, []attempt{
		{"its own", "", ask("h1", node("h1"))},
		{"another one's", "and no other", ask("h2", node("h2"))},
		{"its own without an end", "bound to its Node", ask("h1", nil)},
	})
	outside, err := kubernetes.NewForConfig(account(t, p, api.SystemNamespace, "holdfast-agent", nil))
	must(t, err)
	agent = outside
	tryAll(t, []attempt{{"with a token of no pod", "and no other", ask("h1", node("h1"))}})

	config, err := hosttoken.Config(t.Context(), inPod, "h1")
	must(t, err)
	h1, err := client.New(config, client.Options{Scheme: storeScheme(t)})
	must(t, err)
	must(t, h1.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "key-h1"}, &corev1.Secret{}))
	if err := h1.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "key-h2"}, &corev1.Secret{}); !apierrors.IsForbidden(err) {
		t.Errorf("a host reads the key of another one: %v", err)
	}
}

// TestPolicies_people: what people may not do by hand is refused, with what to do instead; nobody
// else's work is.
func TestPolicies_people(t *testing.T) {
	p := install(t, "20-fence", "21-hosts", "22-people")
	keep(t, p)
	declared(t, p)
	p.Kubectl(t, "create", "clusterrolebinding", "a", "--clusterrole=holdfast-admin", "--user=manager")
	p.Kubectl(t, "create", "clusterrolebinding", "e", "--clusterrole=edit", "--user=editor")
	p.Kubectl(t, "create", "clusterrole", "cancels", "--verb=get,update,patch,create", "--resource=actions.holdfast.io")
	p.Kubectl(t, "create", "clusterrolebinding", "c", "--clusterrole=cancels", "--user=editor")
	admin, manager, editor := clientAs(t, p, "admin", bed.Masters), clientAs(t, p, "manager"), clientAs(t, p, "editor")
	must(t, admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "storage"}}))
	must(t, admin.Create(t.Context(), cluster("storage")))
	at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	eventually(t, "the namespace to be marked", func(ctx context.Context) bool {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "storage"}}
		must(t, admin.Get(ctx, client.ObjectKeyFromObject(ns), ns))
		_, marked := ns.Labels[kube.LabelProtected]
		return marked
	})
	kind := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "daemons.holdfast.io"}}
	kind.SetGroupVersionKind(extensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	ask := func(c client.Client, name string, change func(*api.Action)) func(context.Context) error {
		return func(ctx context.Context) error {
			a := &api.Action{ObjectMeta: at(name)}
			a.Spec.Kind, a.Spec.Target, a.Spec.Cluster, a.Spec.Want = "test.work", "cluster/c", "c", api.WantDone
			change(a)
			return c.Create(ctx, a)
		}
	}
	approve := func(c client.Client, name string) func(context.Context) error {
		return func(ctx context.Context) error {
			return c.Patch(ctx, &api.Action{ObjectMeta: at(name)}, merged(`{"spec":{"approval":"Granted"}}`))
		}
	}
	tryAll(t, []attempt{
		{
			"delete a daemon", "the operator removes daemons",
			func(ctx context.Context) error { return manager.Delete(ctx, daemon("h1")) },
		},
		{"change a daemon's spec", "the operator writes the spec of daemons", func(ctx context.Context) error {
			return manager.Patch(ctx, daemon("h1"), merged(`{"spec":{"command":["sh"]}}`))
		}},
		{"label a daemon", "", func(ctx context.Context) error {
			return manager.Patch(ctx, daemon("h1"), merged(`{"metadata":{"labels":{"mine":"yes"}}}`))
		}},
		{"delete a host", `run "holdfast host remove h1"`, func(ctx context.Context) error {
			return manager.Delete(ctx, &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "h1"}})
		}},
		{"write the Term", "writes the Term", func(ctx context.Context) error {
			term := &api.Term{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: api.TermName}}
			return admin.Patch(ctx, term, merged(`{"spec":{"leader":"x"}}`))
		}},
		{
			"delete a key", "keys of a storage system",
			func(ctx context.Context) error { return editor.Delete(ctx, &corev1.Secret{ObjectMeta: at("key-h1")}) },
		},
		{"change a key", "the storage system knows no others", func(ctx context.Context) error {
			return editor.Patch(ctx, &corev1.Secret{ObjectMeta: at("key-h1")}, merged(`{"data":{"key":"eA=="}}`))
		}},
		{"take a key from its cluster", "the storage system knows no others", func(ctx context.Context) error {
			return editor.Patch(ctx, &corev1.Secret{ObjectMeta: at("key-h1")},
				merged(`{"metadata":{"labels":{"holdfast.io/cluster":"d"}}}`))
		}},
		{"label a key", "", func(ctx context.Context) error {
			return editor.Patch(ctx, &corev1.Secret{ObjectMeta: at("key-h1")},
				merged(`{"metadata":{"labels":{"mine":"yes"}}}`))
		}},
		{"delete the namespace", "delete storagecluster --all", func(ctx context.Context) error {
			return admin.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "storage"}})
		}},
		{
			"delete a kind", "all its objects would be deleted",
			func(ctx context.Context) error { return admin.Delete(ctx, kind) },
		},
		{"delete a kind on purpose", "", func(ctx context.Context) error {
			if err := admin.Patch(ctx, kind, merged(`{"metadata":{"annotations":{"holdfast.io/unprotected":"yes"}}}`)); err != nil {
				return err
			}
			return admin.Delete(ctx, kind, client.DryRunAll)
		}},
		{"delete a key on purpose", "", func(ctx context.Context) error {
			o := &corev1.Secret{ObjectMeta: at("key-h2")}
			if err := editor.Patch(ctx, o, merged(`{"metadata":{"annotations":{"holdfast.io/unprotected":"yes"}}}`)); err != nil {
				return err
			}
			return editor.Delete(ctx, o)
		}},
		{"ask for an action", "", ask(editor, "asked", func(*api.Action) {})},
		{"ask in another name", "", ask(editor, "other", func(a *api.Action) { a.Spec.Requester = "manager" })},
		{
			"approve beforehand", "spec.approval of a new action",
			ask(editor, "granted", func(a *api.Action) { a.Spec.Approval = api.ApprovalGranted }),
		},
		{
			"ask for a command of a plan", "only the operator creates",
			ask(manager, "cmd", func(a *api.Action) { a.Spec.Kind = api.ActionServiceCommand }),
		},
		{"approve without the right", "needs the verb approve", approve(editor, "asked")},
		{"approve with it", "", approve(manager, "asked")},
	})
	for _, name := range []string{"asked", "other"} {
		asked := &api.Action{ObjectMeta: at(name)}
		must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(asked), asked))
		if asked.Spec.Requester != "editor" {
			t.Errorf("the requester of %s is %q", name, asked.Spec.Requester)
		}
	}
	others(t, p)
}

// others shows that policies of ours stop nobody else's work, also when our kinds, the Term and the
// operator are gone.
func others(t *testing.T, p *bed.Plane) {
	t.Helper()
	admin := clientAs(t, p, "admin", bed.Masters)
	work := func(when string) {
		t.Helper()
		for _, o := range []client.Object{
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "theirs"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "theirs"}},
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "theirs"}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "theirs-" + when}},
		} {
			if err := admin.Create(t.Context(), o); err != nil {
				t.Errorf("%s: %v", when, err)
				continue
			}
			if err := admin.Patch(t.Context(), o, merged(`{"metadata":{"labels":{"a":"b"}}}`)); err != nil {
				t.Errorf("%s: %v", when, err)
			}
			if err := admin.Delete(t.Context(), o); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
	}
	work("before")
	p.Kubectl(t, "-n", api.SystemNamespace, "annotate", "term", api.TermName, "holdfast.io/unprotected=yes")
	p.Kubectl(t, "-n", api.SystemNamespace, "delete", "term", api.TermName)
	work("term")
	p.Kubectl(t, "delete", "crd", "terms.holdfast.io")
	work("kind")
	p.Kubectl(t, "delete", "namespace", api.SystemNamespace, "--wait=false")
	work("namespace")
}
