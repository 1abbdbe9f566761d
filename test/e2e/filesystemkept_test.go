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

const exportYAML = "---\napiVersion: holdfast.io/v1alpha1\nkind: NFSExport\nmetadata: {name: %s}\n" +
	"spec: {cluster: ceph, filesystem: home, path: %s, squash: None}\n"

// TestFilesystemKept exports a directory that is not there, which the export says, and deletes a
// Filesystem that was exported by NFS while Ceph keeps it: Ceph stays healthy, and the file system
// serves again soon when it is declared again.
func TestFilesystemKept(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 1)
	wanted := home.SpecFor(b.Lab, 3, 2, 1)
	wanted.Interval = "2s"
	b.mustApply(wanted.YAML() + filesystemYAML() + fmt.Sprintf(exportYAML, "all", "/"))
	b.await("the export to be served", b.exported(1, "all"))
	b.nfsPut("all", "kept")
	b.exportNowhere()

	b.run("delete", "nfsexport", "all")
	b.run("delete", "filesystem", "home")
	b.await("Ceph to be healthy", func() error { return b.health(3, 3) })
	if out := b.ceph("fs", "ls"); !strings.Contains(out, "home") {
		t.Errorf("the file system is not kept: %s", out)
	}
	start := time.Now()
	b.mustApply(filesystemYAML())
	took := time.Since(start)
	t.Logf("taken up again after %.1f s", took.Seconds())
	if took > time.Minute {
		t.Error("it took longer than a minute: it waited for the client of the NFS server that is gone")
	}
	b.await("the export to be served", func() error {
		b.mustApply(fmt.Sprintf(exportYAML, "all", "/"))
		return b.exported(1, "all")()
	})
}

// exportNowhere exports a directory that is not there, and then one that is.
func (b *bed) exportNowhere() {
	b.Helper()
	out, _ := b.apply(1, fmt.Sprintf(exportYAML, "nowhere", "/not/there"))
	b.Logf("%s", out)
	b.await("the export to say that its directory is not there", func() error {
		e, err := read[api.NFSExport](b, 1, "nfsexports", "nowhere")
		if err == nil && !strings.Contains(e.Status.Message, "directory /not/there does not exist") {
			err = errors.New(string(e.Status.State) + ": " + e.Status.Message)
		}
		return err
	})
	b.run("delete", "nfsexport", "nowhere")
}
