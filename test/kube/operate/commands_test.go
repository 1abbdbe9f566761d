package operate

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	bed "github.com/holdfast-storage/holdfast/test/kube"
)

// commandLine has TestMain be the program holdfast.
const commandLine = "HOLDFAST_TEST_COMMAND"

// holdfast is a command with the kubeconfig of an administrator.
func holdfast(ctx context.Context, t *testing.T, p *bed.Plane, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(ctx, self, append(args, "--kubeconfig", p.Kubeconfig, "--data-dir", t.TempDir())...)
	cmd.Env = append(os.Environ(), commandLine+"=yes")
	return cmd
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

// TestCommands: the commands of Holdfast's own control plane say what Kubernetes has instead, plans are refused at once, and the
// doctor asks for the operator and not for servers.
func TestCommands(t *testing.T) {
	p := install(t, "05-term", "20-fence")
	says := func(ctx context.Context, text string) bool {
		out, _ := holdfast(ctx, t, p, "doctor").Output() // it fails until an operator leads
		return strings.Contains(string(out), text)
	}
	eventually(t, "the doctor to miss an operator", func(ctx context.Context) bool {
		return says(ctx, "FAIL  operator      no operator has led yet")
	})
	operator := holdfast(t.Context(), t, p, "operator", "--name", "only", "--listen", "")
	operator.Stdout, operator.Stderr = t.Output(), t.Output()
	must(t, operator.Start())
	t.Cleanup(func() {
		_ = operator.Process.Kill() // it may have ended
		_ = operator.Wait()
	})
	eventually(t, "an operator to lead", func(ctx context.Context) bool {
		return says(ctx, "OK    operator      the operator only_")
	})
	out, err := holdfast(t.Context(), t, p, "doctor").CombinedOutput()
	if text := string(out); err != nil || strings.Contains(text, "quorum") || strings.Contains(text, "servers") {
		t.Errorf("doctor: %v\n%s", err, text)
	}
	for _, command := range []string{"quorum", "token create", "backup " + filepath.Join(t.TempDir(), "file"), "ca show", "ca rotate"} {
		expect(t, p, 3, "this command is for Holdfast's own servers, and this is a Kubernetes cluster: ", strings.Fields(command)...)
	}
	file := filepath.Join(t.TempDir(), "pool.yaml")
	must(t, os.WriteFile(file, []byte("apiVersion: holdfast.io/v1alpha1\nkind: Pool\nmetadata: {name: data}\nspec: {cluster: ceph}\n"), 0o600))
	for _, command := range []string{"apply -f ", "plan -f ", "delete -f "} {
		expect(t, p, 3, "no plans are made in Kubernetes", strings.Fields(command+file)...)
	}
}
