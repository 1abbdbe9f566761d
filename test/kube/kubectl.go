package kube

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/test/hosts"
)

// Kubectl runs kubectl as an administrator. It must not fail. What it writes to its standard output
// is returned without blanks at the end.
func (p *Plane) Kubectl(t hosts.T, args ...string) string {
	t.Helper()
	return p.kubectl(t, "", args...)
}

// Apply applies a manifest.
func (p *Plane) Apply(t hosts.T, manifest string, args ...string) string {
	t.Helper()
	return p.kubectl(t, manifest, append([]string{"apply", "-f", "-"}, args...)...)
}

func (p *Plane) kubectl(t hosts.T, stdin string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	out, err := p.Try(ctx, stdin, args...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return out
}

// Try runs kubectl as an administrator, or as the user of another kubeconfig by --kubeconfig, with
// a standard input. The error has what it complained of.
func (p *Plane) Try(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, "kubectl"), args...)
	// Nothing of the person who runs the test has a say, or is written to.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.Kubeconfig, "KUBECACHEDIR="+p.path("kubectl"), "KUBERC=off")
	cmd.WaitDelay = 5 * time.Second
	var complaint strings.Builder
	cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), &complaint
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimRight(string(out), " \n"), err
}
