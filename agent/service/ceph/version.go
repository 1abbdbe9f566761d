package ceph

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/tool"
)

var (
	_ service.Versioner = Mon{}
	_ service.Versioner = Mgr{}
	_ service.Versioner = OSD{}
	_ service.Versioner = MDS{}
	_ service.Versioner = RGW{}
)

// Agents returns the service agents of all of Ceph's daemons.
func Agents() []service.ServiceAgent {
	return []service.ServiceAgent{Mon{}, Mgr{}, OSD{}, MDS{}, RGW{}, RBDMirror{}}
}

// Version is the release of ceph-mon.
func (Mon) Version(ctx context.Context) (string, error) { return version(ctx, "ceph-mon") }

// Version is the release of ceph-mgr.
func (Mgr) Version(ctx context.Context) (string, error) { return version(ctx, "ceph-mgr") }

// Version is the release of ceph-osd.
func (OSD) Version(ctx context.Context) (string, error) { return version(ctx, "ceph-osd") }

// Version is the release of ceph-mds.
func (MDS) Version(ctx context.Context) (string, error) { return version(ctx, "ceph-mds") }

// Version is the release of radosgw.
func (RGW) Version(ctx context.Context) (string, error) { return version(ctx, "radosgw") }

// release is what a program said of itself, and the file that it was then.
type release struct {
	file os.FileInfo
	text string
}

// releases are those of programs, by their paths.
var releases sync.Map

// version asks a program for its release, again only when its file is another one.
func version(ctx context.Context, program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("while looking for %s: %w", program, err)
	}
	now, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("while looking at %s: %w", program, err)
	}
	if was, ok := releases.Load(path); ok && sameFile(was.(release).file, now) {
		return was.(release).text, nil
	}
	ctx, cancel := context.WithTimeout(ctx, tool.Timeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("while asking %s for its version: %w", program, err)
	}
	text, err := parseVersion(string(out))
	if err == nil {
		releases.Store(path, release{now, text})
	}
	return text, err
}

// sameFile says whether a file was neither replaced nor written to.
func sameFile(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// parseVersion reads "ceph version 16.2.15 (618f…) pacific (stable)".
func parseVersion(text string) (string, error) {
	f := strings.Fields(text)
	if len(f) < 3 || f[0] != "ceph" || f[1] != "version" {
		return "", fmt.Errorf("%.60q is no version of Ceph", text)
	}
	return f[2], nil
}
