package ceph

import (
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

func clientOf(name string, caps api.ClientCaps) *api.Client {
	return &api.Client{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1}, Spec: api.ClientSpec{Cluster: "c", Caps: caps},
	}
}

// A client gets a key of its own and the capabilities that are declared, and loses both when it is deleted: the key is not given again.
func TestClients(t *testing.T) {
	f := poolsOn(3)
	f.clients = append(f.clients, clientOf("app", api.ClientCaps{"mon": "allow r"}))
	f.settle(t)
	s := f.clients[0].Status
	if s.State != api.ResourceOnline || s.Entity != "client.app" || s.Secret != "c-key-client.app" || s.MonHost == "" || s.FSID == "" {
		t.Fatalf("%+v", s)
	}
	key := string(f.secrets[s.Secret].data[secretKey])
	if got := f.ceph.Caps("client.app"); !maps.Equal(got, map[string]string{"mon": "allow r"}) || key == "" {
		t.Fatalf("caps %v", got)
	}
	f.clients[0].Spec.Caps = api.ClientCaps{"mon": "allow r", "osd": "allow rw pool=p"}
	f.settle(t)
	if got := f.ceph.Caps("client.app"); got["osd"] != "allow rw pool=p" {
		t.Errorf("caps %v", got)
	}
	now := metav1.NewTime(f.now)
	f.clients[0].DeletionTimestamp = &now
	f.settle(t)
	if _, kept := f.secrets[s.Secret]; kept || len(f.clients) > 0 || f.ceph.Caps("client.app") != nil {
		t.Fatalf("kept: %v, %v, %v", kept, f.clients, f.ceph.Caps("client.app"))
	}
	f.clients = append(f.clients, clientOf("app", api.ClientCaps{"mon": "allow r"}))
	f.settle(t)
	if again := string(f.secrets[s.Secret].data[secretKey]); again == key || again == "" {
		t.Error("a key that was taken away is given again")
	}
}

// Who deletes the Secret of a client takes its key away, and not its word: it gets another key, and its deletion ends its access.
func TestClients_withoutSecret(t *testing.T) {
	f := poolsOn(3)
	f.clients = append(f.clients, clientOf("app", api.ClientCaps{"mon": "allow r"}))
	f.settle(t)
	name := f.clients[0].Status.Secret
	key := string(f.secrets[name].data[secretKey])
	delete(f.secrets, name)
	f.settle(t)
	if again := string(f.secrets[name].data[secretKey]); again == "" || again == key || f.clients[0].Status.State != api.ResourceOnline {
		t.Errorf("%q, %+v", again, f.clients[0].Status)
	}
	delete(f.secrets, name)
	now := metav1.NewTime(f.now)
	f.clients[0].DeletionTimestamp = &now
	if f.settle(t); len(f.clients) > 0 || f.ceph.Caps("client.app") != nil {
		t.Errorf("%v, %v", f.clients, f.ceph.Caps("client.app"))
	}
}

// One that somebody else made is not taken over, and stays when the Client is deleted.
func TestClients_taken(t *testing.T) {
	f := poolsOn(3)
	f.settle(t)
	f.ceph.Authorize("client.app")
	f.clients = append(f.clients, clientOf("app", api.ClientCaps{"mon": "allow *"}))
	p := f.settle(t)
	if reason := reasonOf(p, api.VerdictRefuse, "client/app"); reason != api.ReasonConflict {
		t.Errorf("refused for the reason %q", reason)
	}
	now := metav1.NewTime(f.now)
	f.clients[0].DeletionTimestamp = &now
	f.settle(t)
	if len(f.clients) > 0 || len(f.secrets) == 0 || f.ceph.Calls("auth rm")+f.ceph.Calls("auth caps") > 0 {
		t.Errorf("%v", f.clients)
	}
}

// Capabilities that Ceph does not understand are refused in its words, and those that are declared instead are not.
func TestClients_badCaps(t *testing.T) {
	f := poolsOn(3)
	f.settle(t)
	f.clients = append(f.clients, clientOf("app", api.ClientCaps{"osd": "everything"}))
	f.round(t)
	v, p, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	failed := f.apply(t.Context(), v, p)
	if failed == nil || !strings.Contains(failed.Error(), "osd capability parse failed") {
		t.Fatal(failed)
	}
	last := p.Commands[len(p.Commands)-1]
	f.failures = []engine.CommandFailure{{Command: last, Message: failed.Error()}}
	if _, p, err = f.observed(t.Context()); err != nil {
		t.Fatal(err)
	}
	if reason := reasonOf(p, api.VerdictRefuse, "client/app"); reason != api.ReasonInvalidSpec {
		t.Errorf("refused for the reason %q", reason)
	}
	f.clients[0].Spec.Caps = api.ClientCaps{"osd": "allow r"}
	f.clients[0].Generation++
	if _, p, err = f.observed(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := word(decisions(p, api.VerdictRefuse), "client/app"); got != "" {
		t.Errorf("refused for %q, which was said of other capabilities", got)
	}
}
