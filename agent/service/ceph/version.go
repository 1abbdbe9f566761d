package ceph

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

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
	return []service.ServiceAgent{Mon{}, Mgr{}, OSD{}, MDS{}, RGW{}}
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

func version(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, tool.Timeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("while asking %s for its version: %w", program, err)
	}
	return parseVersion(string(out))
}

// parseVersion reads "ceph version 16.2.15 (618f…) pacific (stable)".
func parseVersion(text string) (string, error) {
	f := strings.Fields(text)
	if len(f) < 3 || f[0] != "ceph" || f[1] != "version" {
		return "", fmt.Errorf("%.60q is no version of Ceph", text)
	}
	return f[2], nil
}
