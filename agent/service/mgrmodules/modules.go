// Package mgrmodules makes the directory in which a ceph-mgr finds its modules, that of 'ceph orch'
// among them.
package mgrmodules

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/orch/module"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// packages is where the packages of Ceph put the modules of ceph-mgr.
const packages = "/usr/share/ceph/mgr"

// forTests are the modules of Ceph for its own tests (doc/mgr/modules.rst). A mgr loads each module at its start, also
// one that is not enabled, in an interpreter of its own, which takes 0.1 s and more.
var forTests = map[string]bool{"selftest": true, "test_orchestrator": true}

// Make makes the directory of modules in the data directory of a mgr: ceph-mgr looks in one
// directory only (mgr_module_path). It has links to all that the packages of Ceph have in the root
// that the mgr runs in, but for what is for Ceph's tests, and the module of 'ceph orch', which calls
// the socket in the run directory. Nothing is written where the packages are. It may be cut off at
// any point and called again.
func Make(root, data, run string) error {
	dir := filepath.Join(data, module.Dir)
	if err := atomicfile.MkdirAll(filepath.Join(dir, module.Name), 0o755); err != nil {
		return fmt.Errorf("while making the directory of modules: %w", err)
	}
	own, err := writeModule(dir, filepath.Join(run, wire.SocketName))
	if err != nil {
		return fmt.Errorf("while writing the module of ceph orch: %w", err)
	}
	if err := linkModules(root, dir, own); err != nil {
		return fmt.Errorf("while linking the modules of Ceph: %w", err)
	}
	return nil
}

// writeModule writes the files of Holdfast, and returns which entries of the directory they are.
func writeModule(dir, socket string) (own map[string]bool, err error) {
	own = map[string]bool{}
	err = fs.WalkDir(module.Files(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(module.Files(), path)
		if err != nil {
			return err
		}
		if filepath.Dir(path) == "." {
			own[path] = true
		}
		return atomicfile.Write(filepath.Join(dir, path), text, 0o644)
	})
	if err != nil {
		return nil, err
	}
	own[module.Name] = true
	peer, err := json.Marshal(module.Peer{Socket: socket})
	if err != nil {
		return nil, err
	}
	return own, atomicfile.Write(filepath.Join(dir, module.PeerFile), peer, 0o644)
}

// linkModules has the directory show what the packages have now, and nothing that they had once.
func linkModules(root, dir string, own map[string]bool) error {
	entries, err := os.ReadDir(filepath.Join(root, packages))
	if err != nil {
		return err
	}
	there := map[string]bool{"__pycache__": true}
	for _, e := range entries {
		if own[e.Name()] || forTests[e.Name()] || e.Name() == "__pycache__" {
			continue
		}
		there[e.Name()] = true
		if err := atomicfile.Symlink(filepath.Join(packages, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	have, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range have {
		if own[e.Name()] || there[e.Name()] {
			continue
		}
		if err := atomicfile.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
