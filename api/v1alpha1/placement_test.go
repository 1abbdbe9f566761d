package v1alpha1

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestHostSelection(t *testing.T) {
	h := &Host{ObjectMeta: metav1.ObjectMeta{Name: "store-1", Labels: map[string]string{"rack": "s"}}}
	for _, tt := range []struct {
		name string
		p    HostSelection
		want bool
	}{
		{"nothing selects nothing", HostSelection{}, false},
		{"name", HostSelection{Hosts: []string{"store-2", "store-1"}}, true},
		{"another name", HostSelection{Hosts: []string{"store-2"}}, false},
		{"pattern", HostSelection{Pattern: "store-*"}, true},
		{"another pattern", HostSelection{Pattern: "db-*"}, false},
		{"a broken pattern", HostSelection{Pattern: "["}, false},
		{"label", HostSelection{Labels: map[string]string{"rack": "s"}}, true},
		{"label and another name", HostSelection{Labels: map[string]string{"rack": "s"}, Hosts: []string{"x"}}, false},
	} {
		if got := tt.p.Selects(h); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
