// Package ganesha is the host's side of NFS-Ganesha, the NFS server in user space.
package ganesha

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/tool"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
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

// versionTimeout bounds a question to the program, lookTimeout one to the server.
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
	current, err := isCurrent(l)
	if err != nil {
		return "", err
	}
	r := ganesha.Report{Generation: l.Daemon.Generation, Current: current, Exports: map[string]string{}}
	ctx, cancel := context.WithTimeout(parent, lookTimeout)
	defer cancel()
	for pseudo := range strings.FieldsSeq(l.Parameters[ganesha.ParamExports]) {
		r.Exports[pseudo] = ""
		if err := lookup(ctx, net.JoinHostPort(l.Parameters[ganesha.ParamAddress], strconv.Itoa(ganesha.Port)), pseudo); err != nil {
			r.Exports[pseudo] = err.Error()
		}
	}
	if parent.Err() != nil {
		return "", fmt.Errorf("while asking the server what it serves: %w", context.Cause(parent))
	}
	text, err := json.Marshal(r)
	return string(text), err
}

// isCurrent says whether the process has read the configuration that is wanted.
func isCurrent(l *service.Local) (bool, error) {
	wanted, err := os.ReadFile(filepath.Join(l.Data, ganesha.FileConf))
	if err != nil {
		return false, fmt.Errorf("while reading the configuration: %w", err)
	}
	loaded, err := os.ReadFile(filepath.Join(l.Run, ganesha.FileLoaded))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("while reading the configuration that is loaded: %w", err)
	}
	return bytes.Equal(wanted, loaded), nil
}

// Perform has the server read its configuration again; clients of exports that stay do not notice.
func (Ganesha) Perform(_ context.Context, l *service.Local, cmd service.Command) (string, error) {
	if cmd.Verb != ganesha.VerbReload {
		return "", fmt.Errorf("this agent does not know the command %q: upgrade Holdfast on this host", cmd.Verb)
	}
	text, err := os.ReadFile(filepath.Join(l.Data, ganesha.FileConf))
	if err != nil {
		return "", fmt.Errorf("while reading the configuration: %w", err)
	}
	pid, err := os.ReadFile(filepath.Join(l.Run, "ganesha.pid"))
	if err != nil {
		return "", fmt.Errorf("while looking for the process: %w", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil || n <= 1 {
		return "", fmt.Errorf("%q is no process", pid)
	}
	if err := atomicfile.Guarded(fmt.Sprint("/proc/", n), func() error { return syscall.Kill(n, syscall.SIGHUP) }); err != nil {
		return "", fmt.Errorf("while telling the process: %w", err)
	}
	// After that: who is cut off in between has it told once more, and not believe that it reads what nobody told it of.
	if err := atomicfile.Write(filepath.Join(l.Run, ganesha.FileLoaded), text, 0o644); err != nil {
		return "", err
	}
	return "the server reads its configuration again", nil
}
