// Package torus tests what Holdfast's agents do with Torus: against the stand-in of this package (see standin), or, where TORUS_BIN
// names a directory with the real torusd and torusctl, against those, with the same test. The etcd is a real one in both cases.
package torus

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Programs builds the stand-in below a directory, and returns the directory with torusd, torusctl and etcd. Where TORUS_BIN is set,
// torusd and torusctl are the real ones. module is the root of the Go module.
func Programs(ctx context.Context, dir, module string) (string, error) {
	binary := filepath.Join(dir, "standin")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./test/torus/standin")
	build.Dir = module
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("while building the stand-in: %w: %s", err, out)
	}
	programs := map[string]string{"etcd": binary, "torusd": binary, "torusctl": binary}
	if real := os.Getenv("TORUS_BIN"); real != "" {
		for _, name := range []string{"torusd", "torusctl"} {
			programs[name] = filepath.Join(real, name)
		}
	}
	for name, target := range programs {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("while linking %s: %w", name, err)
		}
	}
	return dir, nil
}
