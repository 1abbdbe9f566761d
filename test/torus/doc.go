// Package torus tests what Holdfast's agents do with Torus: against the real programs of v0.1.2,
// which hack/torus-programs builds, or where TORUS_BIN names a directory with other ones, against
// those; and against the stand-in of this package (see standin), which is quicker to build. The
// same test passes with all. The etcd is a real one.
package torus

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Release says whose torusd and torusctl a test runs.
type Release string

// The releases that a test can run.
const (
	StandIn Release = "stand-in"
	Last    Release = "v0.1.2" // Torus's last release, or what TORUS_BIN names
)

// Programs makes torusd, torusctl and etcd below a directory, and returns it. All lie there
// themselves: hosts of a test see no other directory below /tmp. module is the root of the Go
// module.
func Programs(ctx context.Context, dir, module string, r Release) (string, error) {
	binary := filepath.Join(dir, "standin")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./test/torus/standin")
	build.Dir = module
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("while building the stand-in: %w: %s", err, out)
	}
	real, err := r.bin(ctx, module)
	if err != nil {
		return "", err
	}
	for _, name := range []string{"etcd", "torusd", "torusctl"} {
		to := filepath.Join(dir, name)
		if real == "" || name == "etcd" {
			err = os.Link(binary, to)
		} else {
			err = copyProgram(filepath.Join(real, name), to)
		}
		if err != nil {
			return "", fmt.Errorf("while placing %s: %w", name, err)
		}
	}
	return dir, nil
}

// bin is the directory of the real programs; empty where the stand-in is to run.
func (r Release) bin(ctx context.Context, module string) (string, error) {
	if own := os.Getenv("TORUS_BIN"); own != "" && r != StandIn {
		return own, nil
	}
	if r == StandIn {
		return "", nil
	}
	build := exec.CommandContext(ctx, "hack/torus-programs")
	build.Dir, build.Stderr = module, os.Stderr
	out, err := build.Output()
	if err != nil {
		return "", fmt.Errorf("while building Torus %s with hack/torus-programs: %w", r, err)
	}
	return strings.TrimSpace(string(out)), nil
}

func copyProgram(from, to string) error {
	program, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, program, 0o755)
}
