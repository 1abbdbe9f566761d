package torus

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/torus"
)

// Etcd runs a member of the etcd that holds Torus's metadata, or a gateway to the members.
type Etcd struct{}

var (
	_ service.ServiceAgent = Etcd{}
	_ service.Versioner    = Etcd{}
)

// Name is etcd.
func (Etcd) Name() string { return torus.TypeEtcd }

// Initialize checks that etcd is there.
func (Etcd) Initialize(context.Context, *service.Host) error {
	_, err := find("etcd", etcdHint)
	return err
}

// Version is the release of the installed etcd.
func (Etcd) Version(ctx context.Context) (string, error) {
	program, err := find("etcd", etcdHint)
	if err != nil {
		return "", err
	}
	out, err := run(ctx, program, "--version")
	if err != nil {
		return "", fmt.Errorf("while asking etcd for its version: %w", err)
	}
	for line := range strings.Lines(out) {
		if v, ok := strings.CutPrefix(line, "etcd Version:"); ok {
			return strings.TrimSpace(v), nil
		}
	}
	return "", fmt.Errorf("%.60q names no version of etcd", out)
}

// ConfigureLocalService makes the member's directory, which etcd wants for itself.
func (Etcd) ConfigureLocalService(_ context.Context, l *service.Local) error {
	if err := link(l, "etcd", etcdHint); err != nil {
		return err
	}
	if err := atomicfile.MkdirAll(filepath.Join(l.Data, "member"), 0o700); err != nil {
		return fmt.Errorf("while making the directory of the member: %w", err)
	}
	return nil
}

// DestroyLocalService has nothing to do: all lies in the daemon's own directory.
func (Etcd) DestroyLocalService(context.Context, *service.Local) error { return nil }
