package torus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/tool"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// BinVariable names the directory with the programs, where they do not lie in PATH.
const BinVariable = "TORUS_BIN"

// find says where a program is.
func find(program, hint string) (string, error) {
	if dir := os.Getenv(BinVariable); dir != "" {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return filepath.Abs(path)
		}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("%s is not installed on this host: %s%s", program, notInBin(), hint)
	}
	return filepath.Abs(path)
}

// notInBin says what is wrong with the directory of BinVariable. Services and hosts in namespaces
// often have a /tmp of their own.
func notInBin() string {
	dir := os.Getenv(BinVariable)
	if dir == "" {
		return ""
	}
	if _, err := os.Stat(dir); err != nil {
		return fmt.Sprintf("the agent does not see the directory %s of %s (%v; does the agent have its own /tmp?); ",
			dir, BinVariable, errors.Unwrap(err))
	}
	return fmt.Sprintf("the directory %s of %s has no such program; ", dir, BinVariable)
}

// No package carries Torus.
const torusHint = "put torusd and torusctl into /usr/local/bin, or into the directory that the agent's environment names in " + BinVariable

const etcdHint = "install it with 'apt-get install etcd-server', or put it beside torusd"

// link makes the program reachable where the Daemon's command has it: below the daemon's own directory.
func link(l *service.Local, program, hint string) error {
	target, err := find(program, hint)
	if err != nil {
		return err
	}
	path := filepath.Join(l.Data, "bin", program)
	if err := atomicfile.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("while making a directory for programs: %w", err)
	}
	if err := atomicfile.Symlink(target, path); err != nil {
		return fmt.Errorf("while linking %s: %w", program, err)
	}
	return nil
}

// askTimeout bounds one run of a program. torusctl waits for ever for an etcd that does not answer.
const askTimeout = 20 * time.Second

// failure is what torusctl said when it failed.
type failure struct{ words string }

func (f *failure) Error() string { return f.words }

// ctl runs torusctl and returns what it printed.
func ctl(ctx context.Context, etcd string, args ...string) (string, error) {
	program, err := find("torusctl", torusHint)
	if err != nil {
		return "", err
	}
	return run(ctx, program, append(args, "--etcd", etcd)...)
}

func run(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := tool.Ask(cmd)
	name := filepath.Base(program)
	switch words := strings.TrimSpace(said.String()); {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s did not answer within %s: does the cluster's etcd run?", name, askTimeout)
	case err != nil && words != "":
		return "", &failure{words}
	case err != nil:
		return "", fmt.Errorf("while running %s: %w", name, err)
	}
	return string(out), nil
}
