// Command demo shows Holdfast on one machine: three hosts made of namespaces, a server on each, a real Ceph cluster.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/holdfast-storage/holdfast/test/hosts"
)

// labDir is where everything of the demo lies. The example's device ids contain it.
const labDir = "/var/tmp/holdfast-demo"

const usage = `usage: demo up                    make three hosts and a Ceph cluster on them
       demo sh HOST [COMMAND …]   run a command (or a shell) on a host: h1, h2, h3
       demo down                  remove everything again`

func main() {
	hosts.MaybeInit()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if exit := (*exitStatus)(nil); errors.As(err, &exit) {
		os.Exit(exit.code)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "up":
		return up(ctx)
	case len(args) == 1 && args[0] == "down":
		return down()
	case len(args) >= 2 && args[0] == "sh":
		return shell(ctx, args[1], args[2:])
	}
	return errors.New(usage)
}

// program is the holdfast that 'make build' has made.
func program() (string, error) {
	path, err := filepath.Abs("bin/holdfast")
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("there is no %s: run 'make build' first", path)
	}
	return path, nil
}
