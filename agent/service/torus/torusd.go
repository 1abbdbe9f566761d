package torus

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/heir"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/torus"
)

// Agents returns the service agents of Torus.
func Agents() []service.ServiceAgent {
	return []service.ServiceAgent{&Torusd{watches: map[string]*watch{}}, Etcd{}}
}

// Torusd runs the peer of a StorageNode, which stores blocks.
type Torusd struct {
	mu      sync.Mutex
	watches map[string]*watch // of rings and of peers, by the directory of the daemon
}

var (
	_ service.ServiceAgent = (*Torusd)(nil)
	_ service.Versioner    = (*Torusd)(nil)
	_ service.Reporter     = (*Torusd)(nil)
	_ service.Performer    = (*Torusd)(nil)
	_ service.Inheritor    = (*Torusd)(nil)
	_ service.Confined     = (*Torusd)(nil)
)

// Name is torusd.
func (*Torusd) Name() string { return torus.TypeTorusd }

// Foreign says whether an earlier torusd, which the ring knows nothing of, left the directory.
func (*Torusd) Foreign(l *service.Local) (bool, error) { return heir.Foreign(l, "") }

// Needs is the directory in which it stores blocks.
func (*Torusd) Needs(l *service.Local) runtime.Needs {
	store := l.Parameters[torus.ParamStore]
	if store == "" || strings.HasPrefix(store, filepath.Dir(l.Data)+"/") {
		return runtime.Needs{}
	}
	return runtime.Needs{Directories: []runtime.Directory{{Path: store, Make: true}}}
}

// Initialize checks that Torus is there.
func (*Torusd) Initialize(context.Context, *service.Host) error {
	_, errDaemon := find("torusd", torusHint)
	_, errCtl := find("torusctl", torusHint)
	return errors.Join(errDaemon, errCtl)
}

// Version is the release of the installed torusd.
func (*Torusd) Version(ctx context.Context) (string, error) {
	program, err := find("torusd", torusHint)
	if err != nil {
		return "", err
	}
	out, err := run(ctx, program, "--version")
	if err != nil {
		return "", fmt.Errorf("while asking torusd for its version: %w", err)
	}
	for line := range strings.Lines(out) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "Version:"); ok {
			return strings.TrimSpace(v), nil
		}
	}
	return "", fmt.Errorf("%.60q names no version of torusd", out)
}

// uuidFile keeps the peer's identity, as Torus told it.
const uuidFile = "uuid"

// ConfigureLocalService makes the store, and the cluster's first metadata where this is the node to do that.
func (*Torusd) ConfigureLocalService(ctx context.Context, l *service.Local) error {
	if err := errors.Join(link(l, "torusd", torusHint), heir.Inherit(l, "")); err != nil {
		return err
	}
	store := l.Parameters[torus.ParamStore]
	fresh, err := isFresh(store)
	if err != nil {
		return fmt.Errorf("while looking at the store %s: %w", store, err)
	}
	uuid, err := readUUID(l)
	if err != nil {
		return err
	}
	if fresh && uuid != "" {
		return fmt.Errorf("the store %s is empty, and it held the blocks of peer %s: is its file system mounted? If the data is lost, "+
			"delete the StorageNode, wait until it is gone, and declare it again", store, uuid)
	}
	if err := atomicfile.Guarded(store, func() error { return os.Mkdir(store, 0o700) }); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("while making the store: %w", err)
	}
	if size := l.Parameters[torus.ParamInit]; fresh && size != "" {
		return initialize(ctx, l.Parameters[torus.ParamEtcd], size)
	}
	return nil
}

// isFresh says whether a store was never used.
func isFresh(store string) (bool, error) {
	entries, err := os.ReadDir(store)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return len(entries) == 0, err
}

// initialize writes the first metadata. What another one wrote before stays.
func initialize(ctx context.Context, etcd, blockSize string) error {
	args := []string{"init"}
	if blockSize != "default" {
		args = append(args, "--block-size", blockSize+"B")
	}
	_, err := ctl(ctx, etcd, args...)
	if f := (*failure)(nil); errors.As(err, &f) && strings.Contains(f.words, "already exists") {
		return nil
	}
	if err != nil {
		return fmt.Errorf("torusctl init: %w", err)
	}
	return nil
}

func readUUID(l *service.Local) (string, error) {
	text, err := os.ReadFile(filepath.Join(l.Data, uuidFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("while reading the peer's identity: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
