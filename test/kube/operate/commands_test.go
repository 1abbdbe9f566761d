package operate

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	bed "github.com/holdfast-storage/holdfast/test/kube"
	"github.com/holdfast-storage/holdfast/test/tier"
)

// holdfast is a command with the kubeconfig of an administrator.
func holdfast(ctx context.Context, t *testing.T, p *bed.Plane, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(ctx, binary, append(args, "--kubeconfig", p.Kubeconfig, "--data-dir", t.TempDir())...)
}

// expect runs a command, which ends with code and says text.
func expect(t *testing.T, p *bed.Plane, code int, text string, args ...string) {
	t.Helper()
	cmd := holdfast(t.Context(), t, p, args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(string(out), text) {
		t.Errorf("%s: exit code %d, want %d and %q:\n%s", strings.Join(args, " "), got, code, text, out)
	}
}

// TestCommands: the commands of Holdfast's own control plane say what Kubernetes has instead, and
// the doctor asks for the operator and not for servers.
func TestCommands(t *testing.T) {
	p := install(t, "05-term", "20-fence", "21-hosts")
	says := func(ctx context.Context, text string) bool {
		out, _ := holdfast(ctx, t, p, "doctor").Output() // it fails until an operator leads
		return strings.Contains(string(out), text)
	}
	eventually(t, "the doctor to miss an operator", func(ctx context.Context) bool {
		return says(ctx, "FAIL  operator      no operator has led yet")
	})
	lead(t, p, "only")
	eventually(t, "an operator to lead", func(ctx context.Context) bool {
		return says(ctx, "OK    operator      the operator only_")
	})
	out, err := holdfast(t.Context(), t, p, "doctor").CombinedOutput()
	if text := string(out); err != nil || strings.Contains(text, "quorum") || strings.Contains(text, "servers") {
		t.Errorf("doctor: %v\n%s", err, text)
	}
	const refused = "this command is for Holdfast's own servers, and this is a Kubernetes cluster: "
	file := filepath.Join(t.TempDir(), "file")
	for _, command := range []string{"quorum", "token create", "backup " + file, "ca show", "ca rotate"} {
		expect(t, p, 3, refused, strings.Fields(command)...)
	}
}

// TestHostReturns: a Host that is removed while its Node is selected is made again, as the docs
// say.
func TestHostReturns(t *testing.T) {
	tier.Full(t)
	p := install(t, "05-term", "20-fence", "21-hosts")
	lead(t, p, "only")
	node := "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {kubernetes.io/os: linux}}\n"
	if _, err := p.Try(t.Context(), node, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	uid := func(ctx context.Context) string {
		out, _ := p.Try(ctx, "", "get", "host", "n1", "-o", "jsonpath={.metadata.uid}",
			"--ignore-not-found") // none yet
		return out
	}
	eventually(t, "the Host", func(ctx context.Context) bool { return uid(ctx) != "" })
	first := uid(t.Context())
	p.Kubectl(t, "delete", "host", "n1")
	eventually(t, "another Host", func(ctx context.Context) bool { return uid(ctx) != "" && uid(ctx) != first })
}
