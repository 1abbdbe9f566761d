package leaving

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestOnlyHost: a node names a host by its label, which in Kubernetes may differ from the host's name.
func TestOnlyHost(t *testing.T) {
	hosts := map[string]*api.Host{}
	for name, label := range map[string]string{"h1": "h1", "h2": "elsewhere"} {
		labels := map[string]string{api.LabelHostname: label}
		hosts[name] = &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	for _, tt := range []struct{ accepted, key, value, want string }{
		{"", api.LabelHostname, "h1", "h1"},
		{"", api.LabelHostname, "elsewhere", "h2"},
		{"", api.LabelHostname, "h9", "h9"},
		{"h1", api.LabelHostname, "elsewhere", "h1"},
		{"", "rack", "h1", ""},
	} {
		n := &api.StorageNode{Spec: api.StorageNodeSpec{NodeSelector: map[string]string{tt.key: tt.value}}}
		n.Status.Host = tt.accepted
		if got := OnlyHost(n, hosts); got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}
