// Package ganesha is the host's side of NFS-Ganesha, the NFS server in user space.
package ganesha

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/tool"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
)

// Ganesha runs an NFS server.
type Ganesha struct{}

var (
	_ service.ServiceAgent = Ganesha{}
	_ service.Versioner    = Ganesha{}
	_ service.Reporter     = Ganesha{}
	_ service.Performer    = Ganesha{}
)

// versionTimeout bounds a question to the program, lookTimeout all questions to the server.
const (
	versionTimeout = 10 * time.Second
	lookTimeout    = 5 * time.Second
)

// Agents returns the service agent of NFS-Ganesha.
func Agents() []service.ServiceAgent { return []service.ServiceAgent{Ganesha{}} }

// Name is nfs-ganesha.
func (Ganesha) Name() string { return ganesha.Type }

// Initialize checks that NFS-Ganesha is there.
func (Ganesha) Initialize(context.Context, *service.Host) error {
	return tool.Require("ganesha.nfsd", "nfs-ganesha nfs-ganesha-gluster")
}

// Version is the installed release.
func (Ganesha) Version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ganesha.nfsd", "-v").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("while asking ganesha.nfsd for its version: %w", err)
	}
	return parseVersion(string(out))
}

// parseVersion reads "NFS-Ganesha Release = V4.3".
func parseVersion(out string) (string, error) {
	for line := range strings.Lines(out) {
		if v, ok := strings.CutPrefix(line, "NFS-Ganesha Release = V"); ok {
			return strings.TrimSpace(v), nil
		}
	}
	return "", fmt.Errorf("%.60q names no version of NFS-Ganesha", out)
}

// libraries are where packages put what serves a kind of storage.
const libraries = "/usr/lib*/ganesha/libfsal%[1]s.so /usr/lib/*/ganesha/libfsal%[1]s.so"

// ConfigureLocalService checks that NFS-Ganesha can serve this kind of storage: each is a package of its own.
func (Ganesha) ConfigureLocalService(_ context.Context, l *service.Local) error {
	fsal := l.Parameters[ganesha.ParamFSAL]
	for pattern := range strings.FieldsSeq(fmt.Sprintf(libraries, fsal)) {
		// A pattern of ours is well-formed.
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return nil
		}
	}
	return fmt.Errorf("NFS-Ganesha cannot serve %[1]s on this host: install it with 'apt-get install nfs-ganesha-%[1]s'", fsal)
}

// DestroyLocalService has nothing to do: all lies in the daemon's own directories.
func (Ganesha) DestroyLocalService(context.Context, *service.Local) error { return nil }

// Report says what the server serves, by its own word.
func (Ganesha) Report(parent context.Context, l *service.Local) (string, error) {
	wanted, written, err := wantedConf(l)
	if err != nil {
		return "", err
	}
	last, err := lastReading(l)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(parent, lookTimeout)
	defer cancel()
	r := ganesha.Report{Generation: l.Daemon.Generation}
	address := net.JoinHostPort(l.Parameters[ganesha.ParamAddress], strconv.Itoa(ganesha.Port))
	r.Starting = errors.Is(lookup(ctx, address, "/"), errDeaf)
	r.Exports = lookups(ctx, address, strings.Fields(l.Parameters[ganesha.ParamExports]))
	if parent.Err() != nil {
		return "", fmt.Errorf("while asking the server what it serves: %w", context.Cause(parent))
	}
	r.Current = written && last.serves(wanted, r.Starting)
	text, err := json.Marshal(r)
	return string(text), err
}
