package operate

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	bed "github.com/holdfast-storage/holdfast/test/kube"
)

// binary is what 'make build' makes.
const binary = "../../../bin/holdfast"

// lead starts the real operator, which ends with the test.
func lead(t *testing.T, p *bed.Plane, name string) *exec.Cmd {
	t.Helper()
	own := operator(t, p)
	cmd := exec.CommandContext(t.Context(), binary, "operator", "--kubeconfig", kubeconfig(t, p, own), "--name",
		name, "--listen", "")
	cmd.Stderr = t.Output()
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	eventually(t, name+" to lead", func(ctx context.Context) bool {
		out, err := p.Try(ctx, "", "-n", api.SystemNamespace, "get", "term", "leader", "-o",
			"jsonpath={.spec.leader}")
		return err == nil && strings.HasPrefix(out, name+"_")
	})
	return cmd
}

// kubeconfig writes one with the token of a Config.
func kubeconfig(t *testing.T, p *bed.Plane, c *rest.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	ca := filepath.Join(filepath.Dir(path), "ca.crt")
	must(t, os.WriteFile(ca, c.CAData, 0o600))
	for _, args := range [][]string{
		{"set-cluster", "c", "--server=" + c.Host, "--certificate-authority=" + ca},
		{
			"set-credentials", "u",
			"--token=" + c.BearerToken,
		},
		{"set-context", "x", "--cluster=c", "--user=u"},
		{"use-context", "x"},
	} {
		p.Kubectl(t, append([]string{"--kubeconfig", path, "config"}, args...)...)
	}
	return path
}

// TestPlans: the operator answers plans with what their requester may do, and cannot act as others.
func TestPlans(t *testing.T) {
	p := install(t, "20-fence", "21-hosts", "22-people")
	lead(t, p, "op-1")
	p.Kubectl(t, "create", "namespace", "other")
	p.Kubectl(t, "create", "rolebinding", "e", "--clusterrole=holdfast-admin", "--user=editor", "-n", "default")
	user := p.KubeconfigFor(t, "editor")
	plan := func(namespace string) (string, error) {
		cmd := exec.CommandContext(t.Context(), binary, "--kubeconfig", user, "-n", namespace, "plan", "-f", "-")
		cmd.Stdin = strings.NewReader("apiVersion: holdfast.io/v1alpha1\nkind: StorageCluster\nmetadata: {name: " +
			"c}\nspec: {type: ceph, ceph: {}}\n")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := plan("default"); err != nil || !strings.Contains(out, "storagecluster/default/c  new") {
		t.Errorf("a plan of what the user may do: %v\n%s", err, out)
	}
	if out, err := plan("other"); err == nil || !strings.Contains(out, "cannot") {
		t.Errorf("a plan of what the user may not do: %v\n%s", err, out)
	}
	forged := "apiVersion: holdfast.io/v1alpha1\nkind: Plan\nmetadata: {name: forged}\nspec:\n  requester: admin\n " +
		" groups: [\"system:masters\"]\n" +
		"  manifest: |\n    apiVersion: holdfast.io/v1alpha1\n    kind: StorageCluster\n    metadata: {name: d, " +
		"namespace: other}\n    spec: {type: ceph, ceph: {}}\n"
	if _, err := p.Try(t.Context(), forged, "--kubeconfig", user, "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if who := p.Kubectl(t, "get", "plan", "forged", "-o", "jsonpath={.spec.requester} {.spec.groups}"); who != `editor ["system:authenticated"]` {
		t.Errorf("the requester of a forged plan is %s", who)
	}
}
