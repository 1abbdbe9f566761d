package propose

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// deleted is a request to delete an object.
func deleted(apiVersion, kind, name string) Target {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace("default")
	u.SetName(name)
	return Target{Unstructured: u, Live: u}
}

// TestMake_foreignKinds: an object of another group takes the place of none of Holdfast's with the
// same kind and name, neither in the plan nor in what it is based on.
func TestMake_foreignKinds(t *testing.T) {
	home, r := severalClusters("a")
	home.Objects.Daemons = make([]api.Daemon, 1)
	d := &home.Objects.Daemons[0]
	d.Namespace, d.Name, d.Spec.Cluster = "default", "d", "a"
	r.Operation, r.Targets = api.PlanDelete, []Target{
		deleted("example.com/v1", engine.KindCluster, "a"), deleted("example.com/v1", engine.KindDaemon, "d"),
	}
	p, err := Make(t.Context(), home, r)
	if err != nil || len(p.Report.Clusters) > 0 || len(p.Destroys()) > 0 {
		t.Errorf("foreign objects touch %v: %v", p.Report.Clusters, err)
	}
	if name := p.Report.Changes[1].Object; name != "daemon.example.com/default/d" || p.Report.Changes[1].Risk != "" {
		t.Errorf("%+v", p.Report.Changes[1])
	}
	ours := deleted(api.GroupVersion.String(), engine.KindDaemon, "d")
	r.Targets = append(r.Targets, ours)
	if p, err = Make(t.Context(), home, r); err != nil || len(p.Report.Clusters) != 1 {
		t.Errorf("ours touches %v: %v", p.Report.Clusters, err)
	}
	for _, name := range []string{plans.NameOf(ours.Unstructured), "daemon.example.com/default/d"} {
		if _, ok := p.Basis[name]; !ok {
			t.Errorf("the plan is not based on %s: %v", name, p.Basis)
		}
	}
}
