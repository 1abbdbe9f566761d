package e2e

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/test/home"
)

// TestBringUp is the main job: three hosts, a spec, and Ceph is well; data is written and read; the same spec again
// changes nothing; the cluster goes and nothing of it is left.
func TestBringUp(t *testing.T) {
	b := newBed(t, 3, 1)
	wanted := home.SpecFor(b.Lab, 3, 2, 1)
	wanted.Interval = "2s"
	spec := wanted.YAML()
	b.mustApply(spec)
	b.cephHealthy(3, 3)
	b.noOrphans()
	t.Run("data", b.writeAndRead)
	t.Run("again", func(t *testing.T) { applyAgainChangesNothing(t, b, spec) })
	t.Run("kubectl", b.kubectlWorks)
	t.Run("secrets", b.secretsStaySecret)
	t.Run("teardown", func(t *testing.T) { b.teardown(t, spec) })
	t.Run("second bootstrap", func(*testing.T) {
		b.mustApply(spec)
		b.cephHealthy(3, 3)
	})
}

// writeAndRead writes 64 MiB with the stock client of one host and reads them with that of another.
func (b *bed) writeAndRead(t *testing.T) {
	b.ceph("osd", "pool", "create", "data", "8")
	b.ceph("osd", "pool", "application", "enable", "data", "test")
	data := make([]byte, 64<<20)
	rand.Read(data)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	put := b.Lab.Host(1).Command(ctx, b.Binary, "ceph", "shell", "--", "rados", "-p", "data", "put", "object", "-")
	put.Stdin = strings.NewReader(string(data))
	if out, err := put.CombinedOutput(); err != nil {
		t.Fatalf("rados put: %v: %s", err, out)
	}
	got, err := b.Lab.Host(3).Command(ctx, b.Binary, "ceph", "shell", "--", "rados", "-p", "data", "get", "object", "-").Output()
	if err != nil {
		t.Fatalf("rados get: %v", err)
	}
	if sha256.Sum256(got) != sha256.Sum256(data) {
		t.Errorf("read %d bytes that are not the %d bytes written", len(got), len(data))
	}
}

// versions maps each object that an orchestration could write to its resource version.
func (b *bed) versions() map[string]string {
	all := map[string]string{}
	for _, kind := range []string{"daemons", "storagenodes", "storagestatuses", "secrets", "clusterevents"} {
		for _, o := range list[metav1.PartialObjectMetadata](b, kind) {
			all[kind+"/"+o.Name] = o.ResourceVersion
		}
	}
	return all
}

func (b *bed) pids() map[string]int32 {
	pids := map[string]int32{}
	for _, d := range b.daemons() {
		pids[d.Name] = d.Status.PID
	}
	return pids
}

// applyAgainChangesNothing applies the same spec again and lets two regular orchestrations pass: nothing is written, no
// process is started anew.
func applyAgainChangesNothing(t *testing.T, b *bed, spec string) {
	versions, pids := b.versions(), b.pids()
	out, code := b.apply(2, spec, "--wait")
	if code != 0 {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	for _, line := range strings.Split(out, "\n") {
		if strings.HasPrefix(line, "storage") && !strings.HasSuffix(line, " unchanged") {
			t.Errorf("applied again: %q, want it unchanged", line)
		}
	}
	b.await("two more orchestrations", b.orchestrations(2))
	if got := b.versions(); fmt.Sprint(got) != fmt.Sprint(versions) {
		t.Errorf("objects were written:\n got %v\nwant %v", got, versions)
	}
	if got := b.pids(); fmt.Sprint(got) != fmt.Sprint(pids) {
		t.Errorf("processes were restarted:\n got %v\nwant %v", got, pids)
	}
}

// orchestrations returns a check that is satisfied when the expected next orchestration has moved so many times.
func (b *bed) orchestrations(count int) func() error {
	next := func() string { return b.run("get", "storageclusters", "ceph", "-o", "json") }
	moved, last := 0, nextOrchestration(next())
	return func() error {
		if now := nextOrchestration(next()); now != last {
			last = now
			moved++
		}
		if moved < count {
			return fmt.Errorf("status.nextOrchestration is %s after %d moves", last, moved)
		}
		return nil
	}
}

func nextOrchestration(object string) string {
	_, after, _ := strings.Cut(object, `"nextOrchestration": "`)
	value, _, _ := strings.Cut(after, `"`)
	return value
}

// kubectlWorks tries the real kubectl on the real API.
func (b *bed) kubectlWorks(t *testing.T) {
	h := b.Lab.Host(1)
	run := func(args ...string) string {
		t.Helper()
		return h.Run(t, t.Context(), kubectl, append([]string{"--kubeconfig", "/var/lib/holdfast/admin.kubeconfig"}, args...)...)
	}
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"get", "storagestatus"}, []string{"STATUS", "HEALTH", "ONLINE", "HEALTH_OK"}},
		{[]string{"get", "sts,dm,ho,stn,stc"}, []string{"storagestatus.holdfast.io/ceph", "daemon.holdfast.io/ceph-mon-a", "host.holdfast.io/h1"}},
		{[]string{"explain", "storagecluster.spec.ceph.mon.count"}, []string{"Count is the number of monitors"}},
		{[]string{"describe", "daemon", "ceph-osd-0"}, []string{"ceph-osd", "Running"}},
		{[]string{"get", "--raw", "/metrics"}, []string{"holdfast_orchestrations_total"}},
		{[]string{"label", "host", "h1", "rack=r1"}, []string{"labeled"}},
		{[]string{"annotate", "storagecluster", "ceph", "who=me"}, []string{"annotated"}},
	} {
		out := run(tt.args...)
		for _, want := range tt.want {
			if !strings.Contains(out, want) {
				t.Errorf("kubectl %s: %q is not in\n%s", strings.Join(tt.args, " "), want, out)
			}
		}
	}
}

// secretsStaySecret looks for the admin key where it must not be: in arguments, logs, events, and files that others may read.
func (b *bed) secretsStaySecret(t *testing.T) {
	key := strings.TrimSpace(b.ceph("auth", "get-key", "client.admin"))
	if len(key) < 40 {
		t.Fatalf("the admin key is %d characters long", len(key))
	}
	for _, h := range b.Lab.Hosts() {
		// The pattern comes on standard input: in grep's own arguments it would find itself.
		look := func(what, script string) {
			t.Helper()
			cmd := h.Command(t.Context(), "bash", "-c", script)
			cmd.Stdin = strings.NewReader(key + "\n")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%s: looking in %s: %v: %s", h.Name, what, err, out)
			}
			if len(out) > 0 {
				t.Errorf("%s: the admin key is in %s: %s", h.Name, what, out)
			}
		}
		look("arguments", `IFS= read -r key; for f in /proc/[0-9]*/cmdline /proc/[0-9]*/environ; do tr '\0' '\n' <"$f" 2>/dev/null | grep -qF -f <(printf '%s\n' "$key") && echo "$f"; done; true`)
		look("arguments, or a token is", `for f in /proc/[0-9]*/cmdline; do tr '\0' '\n' <"$f" 2>/dev/null | grep -q '^hf1\.' && echo "$f"; done; true`)
		look("files that others may read", `setpriv --reuid=65534 --clear-groups grep -rlF -f - /var/lib/holdfast /run/holdfast /var/log /tmp 2>/dev/null; true`)
	}
	logs, err := os.ReadDir(b.Lab.Host(1).Dir() + "/logs")
	if err != nil || len(logs) == 0 {
		t.Fatalf("there are no logs to look into: %v", err)
	}
	for _, h := range b.Lab.Hosts() {
		data, err := os.ReadFile(h.Dir() + "/logs/holdfast.log")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), key) {
			t.Errorf("%s: the admin key is in the server's log", h.Name)
		}
	}
	if strings.Contains(b.run("get", "clusterevents", "-o", "yaml"), key) {
		t.Error("the admin key is in an event")
	}
}

// teardown deletes the cluster: no process, no Daemon, no Secret, no file of it is left, and the disks are empty.
func (b *bed) teardown(t *testing.T, spec string) {
	b.Wipe(t, spec)
	if left := b.cephProcesses(); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	for _, kind := range []string{"daemons", "storageclusters", "storagenodes", "storagestatuses", "secrets", "clusterevents"} {
		for _, o := range list[metav1.PartialObjectMetadata](b, kind) {
			t.Errorf("%s/%s is left", kind, o.Name)
		}
	}
	for _, h := range b.Lab.Hosts() {
		out := h.Run(t, t.Context(), "bash", "-c", "find /var/lib/holdfast/agent/daemons /run/holdfast -mindepth 1 2>/dev/null | grep ceph; true")
		if out != "" {
			t.Errorf("%s: files are left:\n%s", h.Name, out)
		}
		b.await("an empty disk on "+h.Name, func() error {
			out := b.run("get", "hosts", h.Name, "-o", "yaml")
			if !strings.Contains(out, "availability: Available") {
				return fmt.Errorf("the disk is not available:\n%s", out)
			}
			return nil
		})
	}
}
