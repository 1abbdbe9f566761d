package e2e

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
)

const exportsYAML = "---\napiVersion: holdfast.io/v1alpha1\nkind: NFSExport\nmetadata: {name: home}\nspec: {cluster: ceph, filesystem: home, squash: None}\n"

const otherExportYAML = "---\napiVersion: holdfast.io/v1alpha1\nkind: NFSExport\nmetadata: {name: other}\nspec: {cluster: ceph, filesystem: home, squash: None}\n"

// TestFilesystemServes changes a filesystem that is exported by NFS, deletes one of its exports,
// and declares it again while it is being deleted: the NFS server serves the export all the while,
// as the same process.
func TestFilesystemServes(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 1)
	wanted := home.SpecFor(b.Lab, 3, 2, 1)
	wanted.Interval = "2s"
	placed := []string{`placement: {pattern: "*"}`}
	b.mustApply(wanted.YAML() + filesystemYAML(placed...) + exportsYAML + otherExportYAML)
	b.await("the exports to be served", func() error { return errors.Join(b.exported(1, "home")(), b.exported(1, "other")()) })
	b.nfsPut("home", "kept")
	server, err := b.nfsServer(1)
	if err != nil {
		b.Fatal(err)
	}
	b.mustApply(filesystemYAML(append(placed, "dataPools: [{}, {name: cold}]", "activeMDS: 2")...))
	b.servesUntil("home", server, "the filesystem to have three pools and two MDS at work", func() error {
		return b.filesystemIs(func(s api.FilesystemStatus) bool { return len(s.Pools) == 3 && strings.Contains(s.Active, ",") })()
	})
	b.holdfast(0, "delete", "nfsexport", "other", "--wait=false")
	b.servesUntil("home", server, "the other export to be gone", func() error {
		if n := len(list[api.NFSExport](b, "nfsexports")); n != 1 {
			return fmt.Errorf("there are %d exports", n)
		}
		return nil
	})
	b.declaredAgain(server, placed)
}

// servesUntil waits for something, and fails the test if the NFS server does not serve an export before.
func (b *bed) servesUntil(export string, server *api.Daemon, what string, is func() error) {
	b.Helper()
	b.await(what, func() error {
		if out, err := b.nfs(export, "kept", "nfs-cat"); err != nil || out != "kept" {
			b.Fatalf("while waiting for %s: the export reads %q: %v", what, out, err)
		}
		now, err := b.nfsServer(1)
		if err != nil || now.Status.PID != server.Status.PID {
			b.Fatalf("while waiting for %s: the NFS server was process %d: %+v, %v", what, server.Status.PID, now, err)
		}
		return is()
	})
}

func (b *bed) declaredAgain(server *api.Daemon, placed []string) {
	all := filesystemYAML(append(placed, "dataPools: [{}, {name: cold}]", "activeMDS: 2")...) + exportsYAML
	for _, pause := range []time.Duration{0, 2 * time.Second} {
		b.Lab.Host(1).Run(b, b.Context(), kubectl, "--kubeconfig", "/var/lib/holdfast/admin.kubeconfig", "delete", "filesystem/home", "nfsexport/home", "--wait=false")
		start := time.Now()
		was := ""
		b.Logf("PAUSE %v", pause)
		time.Sleep(pause)
		well := 0
		for time.Since(start) < 130*time.Second && well < 3 {
			out, code := b.apply(1, all)
			fs, ferr := b.filesystem()
			e, eerr := b.export(1, "home")
			text := fmt.Sprintf("apply %d %.150q; fs %s %s %v; ", code, out, fs.State, fs.Message, ferr)
			if eerr == nil {
				text += fmt.Sprintf("export %s %s del %v", e.Status.State, e.Status.Message, e.DeletionTimestamp)
			}
			_, cat := b.nfs("home", "kept", "nfs-cat")
			text += fmt.Sprintf(" read %v", cat == nil)
			if cat == nil && e.Status.State == api.ResourceOnline {
				well++
			} else {
				well = 0
			}
			if d, err := b.nfsServer(1); err == nil {
				text += fmt.Sprintf(" server %d", d.Status.PID)
			}
			if text != was {
				b.Logf("%.1f s: %s", time.Since(start).Seconds(), text)
				b.Logf("id %d, sessions %v", e.Status.ExportID, regexp.MustCompile(`"(entity_name|state|uuid|request_load_avg)": [^,]*|id": [0-9]+|client\.[0-9]+`).FindAllString(b.ceph("tell", "mds.home:0", "session", "ls"), -1))
				h := b.hostNamed("h1")
				out, err := h.Try(b.Context(), "bash", "-c", "cat /run/holdfast/default.ceph-nfs-h1/readings/* | tail -n 8; ls -la /var/log/holdfast /var/lib/holdfast/agent/daemons/default.ceph-nfs-h1; tail -n 15 /var/lib/holdfast/agent/daemons/default.ceph-nfs-h1/*log* /var/log/holdfast/*nfs*")
				b.Logf("%v %s", err, out)
			}
			was = text
		}
	}
}
