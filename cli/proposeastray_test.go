package cli

import (
	"strings"
	"testing"
)

// TestAstray: what names a cluster that there is not is told of by plan and apply, and is made all the same.
func TestAstray(t *testing.T) {
	t.Parallel()
	p := newHome(t, "astray")
	const pool = "apiVersion: holdfast.io/v1alpha1\nkind: Pool\nmetadata: {name: images}\nspec: {cluster: cephh}\n"
	const word = "storagecluster/cephh does not exist in namespace astray (yet)"
	p.must(t, exitOK, pool, []string{"plan", "-f", "-"}, "cluster cephh in namespace astray:\n  - "+word)
	p.must(t, exitOK, pool, []string{"apply", "-f", "-"}, "pool/images created", "warning: pool/images: "+word)
	p.must(t, exitRefused, pool, []string{"apply", "-f", "-", "--wait"}, "storagecluster/cephh does not exist in namespace astray")

	const cluster = "---\napiVersion: holdfast.io/v1alpha1\nkind: StorageCluster\nmetadata: {name: %}\nspec: {type: ceph, mode: Paused, ceph: {mon: {count: 1}, mgr: {count: 1}}}\n"
	named := strings.ReplaceAll(cluster, "%", "ceph")
	if _, out := p.do(pool+named, "plan", "-f", "-", "--dry-run"); !strings.Contains(out, word) || !strings.Contains(out, "did you mean ceph?") {
		t.Errorf("%s", out) // the cluster itself may be refused: it has no hosts
	}
	if _, out := p.do(pool+strings.ReplaceAll(cluster, "%", "cephh"), "plan", "-f", "-", "--dry-run"); strings.Contains(out, word) || !strings.Contains(out, "cluster cephh") {
		t.Errorf("the cluster is in the file:\n%s", out)
	}
}
