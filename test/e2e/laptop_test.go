package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// TestLaptop runs the command line on a machine that has no librados, no agent, and no route to a
// host of the cluster, only one to a server that runs no daemon of Ceph: the leader makes the
// plans, and asks Ceph for them. A viewer reads there, and may not ask for plans.
func TestLaptop(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 4, Disks: 1})
	b := &bed{t, home.StartServers(t, lab, binary, 1)}
	for n := 2; n <= 3; n++ {
		b.StartAgent(t, n, b.Token(t, "agent"))
	}
	b.AwaitHosts(t, 3)
	spec := home.SpecFor(lab, 1, 1, 1)
	delete(spec.Devices, lab.Host(1).Name)
	delete(spec.Devices, lab.Host(4).Name)
	b.mustApply(spec.YAML())
	for _, p := range b.cephProcesses() {
		if strings.HasPrefix(p, lab.Host(1).Name) {
			t.Fatalf("the server runs %s: it would answer in place of a host of the cluster", p)
		}
	}

	l := newLaptop(b)
	l.says("kim", 0, "apply", "-f", l.file(pool), "--dry-run=server")
	out := l.says("kim", 0, "plan", "-f", l.file(pool), "--dry-run")
	if !strings.Contains(out, "osd pool create: declared with 2 copies over hosts") {
		t.Errorf("the plan does not have Ceph make the pool:\n%s", out)
	}
	l.says("kim", 0, "apply", "-f", l.file(pool), "--wait", "--timeout", "100s")
	if !strings.Contains(b.ceph("osd", "pool", "ls"), "from-afar") {
		t.Error("Ceph does not have the pool")
	}
	out = l.says("kim", 3, "delete", "pool", "from-afar", "--wait=false")
	l.says("kim", 0, "delete", "--plan", home.PlanIn(t, out))

	l.says("jo", 0, "status")
	l.says("jo", 0, "why", "osd.0")
	if out = l.says("jo", 3, "plan", "-f", l.file(pool)); !strings.Contains(out, "orbidden") {
		t.Errorf("a viewer who asks for a plan is told:\n%s", out)
	}
}

// pool is made from afar. Its data is deleted with it.
const pool = `
apiVersion: holdfast.io/v1alpha1
kind: Pool
metadata: {name: from-afar}
spec: {cluster: ceph, replicated: {size: 2}, deletionPolicy: Wipe}
`

// laptop is the machine of administrator kim and viewer jo.
type laptop struct {
	*bed
	host *hosts.Host
}

// newLaptop makes host 4 a laptop.
func newLaptop(b *bed) *laptop {
	b.Helper()
	l := &laptop{b, b.Lab.Host(4)}
	for user, role := range map[string]string{"kim": "admin", "jo": "viewer"} {
		b.run("kubeconfig", "create", user, "--role", role, "-o", "/var/lib/holdfast/"+user+".kubeconfig")
		data, err := os.ReadFile(b.Lab.Host(1).Path("/var/lib/holdfast/" + user + ".kubeconfig"))
		if err != nil {
			b.Fatal(err)
		}
		l.write(user+".kubeconfig", data)
	}
	b.Lab.Partition(b.T, []*hosts.Host{l.host}, b.Lab.Hosts()[1:3])
	libraries, err := filepath.Glob("/usr/lib/*/librados.so.2*")
	if err != nil || len(libraries) == 0 {
		b.Fatalf("this machine has no librados to hide: %v", err)
	}
	for _, file := range libraries {
		l.host.Run(b.T, context.Background(), "mount", "--bind", "/dev/null", file)
	}
	return l
}

func (l *laptop) write(name string, data []byte) {
	l.Helper()
	path := l.host.Path("/var/lib/holdfast/" + name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		l.Fatal(err)
	}
}

// file writes a manifest on the laptop, and returns its path there.
func (l *laptop) file(manifest string) string {
	l.Helper()
	l.write("manifest.yaml", []byte(manifest))
	return "/var/lib/holdfast/manifest.yaml"
}

// says runs a command on the laptop that has to end with the code.
func (l *laptop) says(user string, code int, args ...string) string {
	l.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	args = append([]string{"--kubeconfig", "/var/lib/holdfast/" + user + ".kubeconfig"}, args...)
	out, err := l.host.Command(ctx, l.Binary, args...).CombinedOutput()
	var exit *exec.ExitError
	failed := errors.As(err, &exit)
	switch {
	case err != nil && !failed:
		l.Fatalf("%s: holdfast %s: %v", user, strings.Join(args, " "), err)
	case err == nil && code != 0, failed && exit.ExitCode() != code:
		l.Fatalf("%s: holdfast %s ended with %v, and not with %d:\n%s", user, strings.Join(args, " "), err, code, out)
	}
	return string(out)
}
