package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
)

const exportsYAML = "---\napiVersion: holdfast.io/v1alpha1\nkind: NFSExport\nmetadata: {name: home}\n" +
	"spec: {cluster: ceph, filesystem: home, squash: None}\n"

// TestFilesystemServes changes a filesystem that is exported by NFS, deletes one of its exports,
// and declares it again while it is being deleted: the NFS server serves the export all the while,
// as the same process.
func TestFilesystemServes(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 1)
	wanted := home.SpecFor(b.Lab, 3, 2, 1)
	wanted.Interval = "2s"
	placed := []string{`placement: {pattern: "*"}`}
	other := strings.Replace(exportsYAML, "name: home", "name: other", 1)
	b.mustApply(wanted.YAML() + filesystemYAML(placed...) + exportsYAML + other)
	b.await("the exports to be served", func() error {
		return errors.Join(b.exported(1, "home")(), b.exported(1, "other")())
	})
	b.nfsPut("home", "kept")
	server, err := b.nfsServer(1)
	if err != nil {
		b.Fatal(err)
	}
	b.mustApply(filesystemYAML(append(placed, "dataPools: [{}, {name: cold}]", "activeMDS: 2")...))
	b.servesUntil("home", server, "the filesystem to have three pools and two MDS at work", func() error {
		return b.filesystemIs(func(s api.FilesystemStatus) bool {
			return len(s.Pools) == 3 && strings.Contains(s.Active, ",")
		})()
	})
	b.holdfast(0, "delete", "nfsexport", "other", "--wait=false")
	b.servesUntil("home", server, "the other export to be gone", func() error {
		if n := len(list[api.NFSExport](b, "nfsexports")); n != 1 {
			return fmt.Errorf("there are %d exports", n)
		}
		return nil
	})
	b.declaredAgain(placed)
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

// declaredAgain deletes the filesystem and its export, and declares them again at once: both come back, with
// the data.
func (b *bed) declaredAgain(placed []string) {
	all := filesystemYAML(append(placed, "dataPools: [{}, {name: cold}]", "activeMDS: 2")...) + exportsYAML
	b.Lab.Host(1).Run(b, b.Context(), kubectl, "--kubeconfig", "/var/lib/holdfast/admin.kubeconfig", "delete",
		"filesystem/home", "nfsexport/home", "--wait=false")
	start, was := time.Now(), ""
	b.await("the export to be served again", func() error {
		out, code := b.apply(1, all)
		fs, err := b.filesystem()
		text := fmt.Sprintf("apply: %d %.80q; filesystem: %s %s %v", code, out, fs.State, fs.Message, err)
		served := b.exported(1, "home")()
		if text = fmt.Sprintf("%s; export: %v", text, served); text != was {
			b.Logf("%.1f s: %s", time.Since(start).Seconds(), text)
		}
		was = text
		if out, err := b.nfs("home", "kept", "nfs-cat"); err != nil || out != "kept" {
			return errors.Join(served, fmt.Errorf("it reads %q: %w", out, err))
		}
		return served
	})
	b.Logf("the export was served again after %.1f s", time.Since(start).Seconds())
}
