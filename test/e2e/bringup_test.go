package e2e

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
)

// TestBringUp is the main job: three hosts, a spec, its plan is done as it was shown, and Ceph is well; data is written and read; the same spec again
// changes nothing; the cluster goes and nothing of it is left.
func TestBringUp(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 1)
	wanted := home.SpecFor(b.Lab, 3, 2, 1)
	wanted.Interval = "2s"
	spec := wanted.YAML()
	b.applyPlanned(spec)
	b.await("Ceph to be well", func() error { return b.health(3, 3) }) // what the mons tell of placement groups is behind what the mgr has told already
	b.noOrphans()
	t.Run("data", b.writeAndRead)
	b.seesPGs(dataPGs)
	t.Run("again", func(t *testing.T) { applyAgainChangesNothing(t, b, spec) })
	t.Run("kubectl", b.kubectlWorks)
	t.Run("kubectl of a viewer", b.viewerAsks)
	t.Run("secrets", b.secretsStaySecret)
	t.Run("teardown", func(t *testing.T) { b.teardown(t, spec) })
	t.Run("second bootstrap", func(*testing.T) {
		b.mustApply(spec)
		b.cephHealthy(3, 3)
	})
}

// dataPGs is the number of placement groups of the pool that writeAndRead makes.
const dataPGs = 8

// writeAndRead writes 64 MiB with the stock client of one host and reads them with that of another. The pool is made by hand, and
// Ceph leaves the number of its placement groups alone. The data goes from file to file: the race detector would take seconds over so
// much in memory.
func (b *bed) writeAndRead(t *testing.T) {
	b.ceph("osd", "pool", "create", "data", strconv.Itoa(dataPGs), "--autoscale-mode", "off")
	b.ceph("osd", "pool", "application", "enable", "data", "test")
	written, read := tempFile(t), tempFile(t)
	if _, err := io.CopyN(written, rand.Reader, 64<<20); err != nil {
		t.Fatal(err)
	}
	b.rados(t, 1, written, nil, "put", "object", "-")
	b.rados(t, 3, nil, read, "get", "object", "-")
	if sumOf(t, read) != sumOf(t, written) {
		t.Error("what was read is not what was written")
	}
}

// rados runs Ceph's rados on a host with the pool of writeAndRead. in is read from its start.
func (b *bed) rados(t *testing.T, host int, in, out *os.File, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := b.Lab.Host(host).Command(ctx, b.Binary, append([]string{"ceph", "shell", "--", "rados", "-p", "data"}, args...)...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	if in != nil {
		rewind(t, in)
		cmd.Stdin = in
	}
	if out != nil {
		cmd.Stdout = out
	}
	if err := cmd.Run(); err != nil {
		t.Fatalf("rados %s: %v: %s", args[0], err, complaint.String())
	}
}

func tempFile(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func rewind(t *testing.T, f *os.File) {
	t.Helper()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
}

// sumOf is the checksum of a file's content.
func sumOf(t *testing.T, f *os.File) string {
	t.Helper()
	rewind(t, f)
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// seesPGs waits until the status tells that a pool's placement groups, which the mgr reports seconds after they are made, are there
// beside others and well, and until whatever told so has ended.
func (b *bed) seesPGs(count int32) {
	b.await("the status to tell of the pool's placement groups", func() error {
		s, err := read[api.StorageStatus](b, 1, "storagestatuses", "ceph")
		if c := s.Status.Ceph; err == nil && (c == nil || c.PGs <= count || c.PGsClean != c.PGs || s.Status.Status != api.StorageOnline) {
			err = fmt.Errorf("the status is %s, Ceph's %+v", s.Status.Status, c)
		}
		return err
	})
	b.await("another orchestration", b.orchestrations(1))
}

// figuresSettle waits until the StorageStatus has had its figures for longer than the leader waits
// before it writes others, and the orchestration after that.
func (b *bed) figuresSettle() {
	b.await("the figures to settle", func() error {
		s, err := read[api.StorageStatus](b, 1, "storagestatuses", "ceph")
		if f := s.Status.Figures; err == nil && (f == nil || time.Since(f.Time.Time) < 12*time.Second) {
			err = fmt.Errorf("they are %+v", f)
		}
		return err
	})
	b.await("another orchestration", b.orchestrations(1))
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
	b.figuresSettle()
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

// viewerAsks has the real kubectl say what a viewer may do, and that it is so.
func (b *bed) viewerAsks(t *testing.T) {
	h := b.Lab.Host(1)
	b.run("kubeconfig", "create", "jo", "--role", "viewer", "-o", "/var/lib/holdfast/jo.kubeconfig")
	kubectl := func(want string, args ...string) {
		t.Helper()
		args = append([]string{"--kubeconfig", "/var/lib/holdfast/jo.kubeconfig"}, args...)
		cmd := h.Command(t.Context(), kubectl, args...)
		out, _ := cmd.CombinedOutput() // kubectl ends with 1 after a no
		if !strings.Contains(string(out), want) {
			t.Errorf("kubectl %s: %q is not in\n%s", strings.Join(args, " "), want, out)
		}
	}
	kubectl("holdfast:viewers", "auth", "whoami")
	kubectl("yes", "auth", "can-i", "list", "pools")
	kubectl("no - viewers may read", "auth", "can-i", "get", "secrets")
	kubectl("daemons.holdfast.io", "auth", "can-i", "--list")
	kubectl("ClusterOnline", "get", "events")
	kubectl("Forbidden", "get", "secrets")
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
		{[]string{"get", "sst,dm,ho,stn,stc"}, []string{"storagestatus.holdfast.io/ceph", "daemon.holdfast.io/ceph-mon-a", "host.holdfast.io/h1"}},
		{[]string{"get", "holdfast"}, []string{"storagestatus.holdfast.io/ceph", "daemon.holdfast.io/ceph-mon-a", "READY"}},
		{[]string{"explain", "storagecluster.spec.ceph.mon.count"}, []string{"Count is the number of monitors"}},
		{[]string{"describe", "daemon", "ceph-osd-0"}, []string{"ceph-osd", "Running"}},
		{[]string{"get", "--raw", "/metrics"}, []string{"holdfast_orchestrations_total"}},
		{
			[]string{"wait", "--for=condition=Ready", "--timeout=60s", "storagecluster/ceph", "storagenode/ceph-h1", "host/h1"},
			[]string{"storagecluster.holdfast.io/ceph condition met", "storagenode.holdfast.io/ceph-h1 condition met", "host.holdfast.io/h1 condition met"},
		},
		{[]string{"auth", "can-i", "*", "*"}, []string{"yes"}},
		{[]string{"auth", "can-i", "--list"}, []string{"*.*", "[*]"}},
		{[]string{"auth", "whoami"}, []string{"holdfast:admin", "holdfast:admins"}},
		{[]string{"get", "events"}, []string{"LAST SEEN", "StorageCluster/ceph", "ClusterOnline", "Daemon/ceph-mon-a"}},
		{[]string{"events", "--for", "storagecluster/ceph", "--types=Normal"}, []string{"ClusterNew"}},
		{[]string{"describe", "storagecluster", "ceph"}, []string{"Events:", "ClusterOnline", "holdfast"}},
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
		look("arguments", `IFS= read -r key; for f in /proc/[0-9]*/cmdline /proc/[0-9]*/environ; do tr '\0' '\n' 2>/dev/null <"$f" | grep -qF -f <(printf '%s\n' "$key") && echo "$f"; done; true`)
		look("arguments, or a token is", `for f in /proc/[0-9]*/cmdline; do tr '\0' '\n' 2>/dev/null <"$f" | grep -q '^hf1\.' && echo "$f"; done; true`)
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
