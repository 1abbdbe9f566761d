package control_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/pki"
)

// keepBench is a namespace with an active cluster named a, seen by a person and by the servers.
type keepBench struct {
	*testing.T
	ns            string
	person, leads client.Client
}

func newKeepBench(t *testing.T) *keepBench {
	s, config := sharedServer(t)
	b := &keepBench{T: t, leads: newClient(t, s.Config())}
	b.person = as(t, s, config, pki.Leaf{User: "alice", Groups: []string{access.GroupAdmins}})
	b.ns = newNamespace(t, b.leads)
	b.must(b.leads.Create(t.Context(), object(t, b.ns, validCluster)))
	return b
}

func (b *keepBench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// refused wants an error of code 403 with these words, or none at all when there are none.
func (b *keepBench) refused(name string, err error, words string) {
	b.Helper()
	if words == "" && err != nil || words != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), words)) {
		b.Errorf("%s: got %v, want a refusal with %q", name, err, words)
	}
}

func (b *keepBench) mode(mode api.ClusterMode) {
	b.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"mode":"`+string(mode)+`"}}`))
	b.must(b.person.Patch(b.Context(), object(b.T, b.ns, validCluster), patch))
}

func (b *keepBench) secret(name, entity string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.ns, Name: name, Labels: map[string]string{api.LabelCluster: "a"}, Annotations: map[string]string{"holdfast.io/ceph-entity": entity},
		},
		Data: map[string][]byte{"key": []byte("AQ1"), "keyring": []byte("key = AQ1"), "luks": []byte("l")},
	}
}

// patched changes a Secret as a person would.
func (b *keepBench) patched(s *corev1.Secret, change func(s *corev1.Secret)) error {
	was := s.DeepCopy()
	after := s.DeepCopy()
	change(after)
	return b.person.Patch(b.Context(), after, client.MergeFrom(was))
}

// TestKeep_secrets: a person takes no key from a cluster that runs with it; the servers do, and what nothing runs with is the person's.
func TestKeep_secrets(t *testing.T) {
	b := newKeepBench(t)
	const reason = "there is no other copy of them"
	watched := daemonOn(b.ns, "a-mon-a", "h1", "a-key-client.gw")
	watched.Spec.State = api.WantWatched
	b.must(b.leads.Create(t.Context(), watched))
	undone := b.secret("undone", "osd.9")
	b.must(b.leads.Create(t.Context(), undone))
	b.refused("of a cluster that is only watched", b.person.Delete(t.Context(), undone), "")
	b.must(b.leads.Create(t.Context(), daemonOn(b.ns, "a-mon-b", "h1", "a-key-client.gw")))
	for _, test := range []struct{ entity, words string }{
		{"client.admin", reason}, {"osd.1", reason}, {"mon.", reason}, {"client.gw", reason}, {"client.app", ""}, {"", ""},
	} {
		s := b.secret("a-key-"+test.entity+"x", test.entity)
		if test.entity == "client.gw" {
			s.Name = "a-key-client.gw"
		}
		b.must(b.leads.Create(t.Context(), s))
		b.refused("dry run for "+test.entity, b.person.Delete(t.Context(), s, client.DryRunAll), test.words)
		b.refused("key of "+test.entity, b.person.Delete(t.Context(), s), test.words)
		if test.words != "" {
			b.must(b.leads.Delete(t.Context(), s))
		}
	}
}

// TestKeep_secretData: nor does a person change what such a Secret holds while the cluster is active.
func TestKeep_secretData(t *testing.T) {
	b := newKeepBench(t)
	b.must(b.leads.Create(t.Context(), daemonOn(b.ns, "a-mon-a", "h1", "s")))
	s := b.secret("a-key-osd.1", "osd.1")
	b.must(b.leads.Create(t.Context(), s))
	const reason = "set spec.mode of the cluster to Observed first"
	another := func(s *corev1.Secret) { s.Data["key"] = []byte("AQ2") }
	b.refused("another key", b.patched(s, another), reason)
	b.refused("more than the key", b.patched(s, func(s *corev1.Secret) { s.Data["key"] = []byte("AQ1\n") }), reason)
	b.refused("another passphrase, with the key", b.patched(s, func(s *corev1.Secret) { s.Data["luks"] = []byte("AQ1") }), reason)
	b.refused("no luks", b.patched(s, func(s *corev1.Secret) { delete(s.Data, "luks") }), reason)
	b.refused("no label", b.patched(s, func(s *corev1.Secret) { delete(s.Labels, api.LabelCluster) }), reason)
	b.refused("more", b.patched(s, func(s *corev1.Secret) { s.Data["more"] = []byte("x"); s.Labels["mine"] = "1" }), "")
	b.refused("other capabilities", b.patched(s, func(s *corev1.Secret) { s.Data["keyring"] = []byte("key = AQ1\ncaps") }), "")
	b.mode(api.ClusterObserved)
	b.refused("another key while it is only observed", b.patched(s, another), "")
	b.refused("deleted while it is only observed", b.person.Delete(t.Context(), s), "there is no other copy of them")
	b.must(b.leads.Delete(t.Context(), object(t, b.ns, validCluster)))
	b.refused("deleted without a cluster", b.person.Delete(t.Context(), s), "")
}

// TestKeep_certificate: what a gateway shows is its owner's, who renews it, whatever its labels.
func TestKeep_certificate(t *testing.T) {
	b := newKeepBench(t)
	b.must(b.leads.Create(t.Context(), daemonOn(b.ns, "a-rgw-a", "h1", "cert")))
	s := b.secret("cert", "")
	s.Data = map[string][]byte{"tls.crt": []byte("old"), "tls.key": []byte("old")}
	b.must(b.leads.Create(t.Context(), s))
	b.refused("renewed", b.patched(s, func(s *corev1.Secret) { s.Data["tls.crt"], s.Data["tls.key"] = []byte("new"), []byte("new") }), "")
	b.refused("taken away", b.person.Delete(t.Context(), s), "daemons of storagecluster a use its keys")
}

// TestKeep_many: a request for many is refused for the one that it may not delete, by its name.
func TestKeep_many(t *testing.T) {
	b := newKeepBench(t)
	b.must(b.leads.Create(t.Context(), daemonOn(b.ns, "a-mon-a", "h1", "s")))
	b.refused("all daemons", b.person.DeleteAllOf(t.Context(), &api.Daemon{}, client.InNamespace(b.ns)), "'holdfast daemon restart a-mon-a'")
}

// TestKeep_hosts: a person deletes no Host that is in service, and may delete one that is silent and has nothing.
func TestKeep_hosts(t *testing.T) {
	b := newKeepBench(t)
	b.must(b.leads.Create(t.Context(), daemonOn(b.ns, "a-mon-a", "keep-daemons", "s")))
	for _, test := range []struct {
		name           string
		server, silent bool
		words          string
	}{
		{"keep-daemons", false, true, "it has daemons (1, such as a-mon-a): run 'holdfast host remove keep-daemons --gone'"},
		{"keep-server", true, true, "'holdfast host remove keep-server --gone'"},
		{"keep-heard", false, false, "its agent is connected, and would lose access at once: run 'holdfast host remove keep-heard'"},
		{"keep-silent", false, true, ""},
	} {
		h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: test.name, Labels: map[string]string{api.LabelHostname: test.name}}}
		if test.server {
			h.Labels[api.LabelServer] = ""
		}
		b.must(b.leads.Create(t.Context(), h))
		if test.silent {
			h.Status.Conditions = []metav1.Condition{{
				Type: api.HostAgentConnected, Status: metav1.ConditionFalse, Reason: "Silent", LastTransitionTime: metav1.Now(),
			}}
			b.must(b.leads.Status().Update(t.Context(), h))
		}
		b.refused(test.name, b.person.Delete(t.Context(), h), test.words)
		b.must(client.IgnoreNotFound(b.leads.Delete(t.Context(), h)))
	}
}

// TestKeep_daemons: a person deletes a Daemon when its cluster is not active, is being deleted, or is gone.
func TestKeep_daemons(t *testing.T) {
	b := newKeepBench(t)
	d := daemonOn(b.ns, "a-mon-a", "h1", "s")
	b.must(b.leads.Create(t.Context(), d))
	refused := func(name, words string) {
		t.Helper()
		b.refused(name, b.person.Delete(t.Context(), d, client.DryRunAll), words)
	}
	refused("active", "'holdfast daemon restart a-mon-a'")
	refused("active", "If a message of Holdfast says to delete it, set spec.mode of the cluster to Observed before")
	b.mode(api.ClusterObserved)
	refused("observed", "")
	b.mode(api.ClusterPaused)
	refused("paused", "")
	b.mode(api.ClusterActive)
	cluster := object(t, b.ns, validCluster)
	b.must(b.leads.Patch(t.Context(), cluster, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["holdfast.io/cluster"]}}`))))
	b.must(b.leads.Delete(t.Context(), cluster))
	refused("being deleted", "")
	b.must(b.leads.Patch(t.Context(), cluster, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
	refused("gone", "")
	b.must(b.person.Delete(t.Context(), d))
}

// TestKeep_daemonSpec: a person changes no daemon of an active cluster and nothing that the leader
// noted of it, and may label it; with one that is only observed the person does what it likes.
func TestKeep_daemonSpec(t *testing.T) {
	b := newKeepBench(t)
	d := daemonOn(b.ns, "a-mon-a", "h1", "s")
	b.must(b.leads.Create(t.Context(), d))
	patch := func(by client.Client, what string) error {
		return by.Patch(t.Context(), d.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(what)))
	}
	const stop = `{"spec":{"state":"Stopped"}}`
	b.refused("stopped", patch(b.person, stop), "to stop all daemons of its host, 'holdfast host maintenance enter h1'")
	b.refused("labelled", patch(b.person, `{"metadata":{"labels":{"mine":"1"}}}`), "")
	b.refused("the same", patch(b.person, `{"spec":{"host":"h1"}}`), "")
	const note = `{"metadata":{"annotations":{"memory.holdfast.io/monNewest":"c"}}}`
	const forget = `{"metadata":{"annotations":{"memory.holdfast.io/monNewest":null}}}`
	b.refused("noted", patch(b.person, note), "only the leader writes the annotation memory.holdfast.io/monNewest")
	b.must(patch(b.leads, note))
	b.refused("forgotten", patch(b.person, forget), "set spec.mode of storagecluster a to Observed first")
	b.refused("asked to start", patch(b.person, `{"metadata":{"annotations":{"holdfast.io/start-requested":"now"}}}`), "")
	b.must(patch(b.leads, stop))
	b.mode(api.ClusterObserved)
	b.refused("observed", patch(b.person, `{"spec":{"state":"Running"}}`), "")
	b.refused("observed", patch(b.person, forget), "")
}
