package plans_test

import (
	"bytes"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/plans"
	"github.com/holdfast-storage/holdfast/engine"
)

// TestFromProjection_nothingToTell: a step that only forgets a key is not shown, and what comes after it is.
func TestFromProjection_nothingToTell(t *testing.T) {
	view := &engine.View{Cluster: &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ceph"}}}
	ask := func(verb string) *engine.Plan {
		return &engine.Plan{Commands: []engine.Command{{Verb: verb, Object: "mgr.a"}}}
	}
	p := &engine.Projection{}
	for _, plan := range []*engine.Plan{ask("auth rm"), {Secrets: []engine.SecretWant{{Name: "ceph-key-mgr.a", Gone: true}}}, ask("osd purge")} {
		p.Steps = append(p.Steps, engine.ProjectedStep{View: view, Plan: plan})
	}
	r := plans.Report{Changes: plans.FromProjection(p), Clusters: []string{"default/ceph"}}
	var b bytes.Buffer
	r.Write(&b)
	for _, want := range []string{"\n  1 ask for auth rm", "\n  2 ask for osd purge"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not shown:\n%s", want, b.String())
		}
	}
}
