package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/kube"
	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
	"github.com/holdfast-storage/holdfast/platform/store"
)

func newCeph(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ceph [--cluster NAME] COMMAND...",
		Short: "Run a command of Ceph, adopt or recover a cluster",
		Long: `Runs a command of the program ceph as the cluster's administrator, as 'holdfast ceph shell -- ceph
COMMAND' does. Options of holdfast stand before the command.`,
		Example: `  holdfast ceph -s
  holdfast ceph osd tree
  holdfast ceph -n storage --cluster backup df`,
		DisableFlagParsing: true, // they are the command's
		Args:               cobra.ArbitraryArgs,
		RunE:               func(cmd *cobra.Command, args []string) error { return passToCeph(cmd, g, args) },
	}
	var cluster string
	shell := &cobra.Command{
		Use:   "shell [--cluster NAME] [-- COMMAND …]",
		Short: "Run Ceph's tools as the cluster's administrator",
		Long: `Runs a command, or an interactive shell, in which Ceph's tools (ceph, rados, rbd, …) connect to the
cluster as client.admin. Configuration and key are in a directory that only you can read, until the
command ends.`,
		Example: `  holdfast ceph shell -- ceph -s
  holdfast ceph shell -- rados lspools
  holdfast ceph shell`,
		RunE: func(cmd *cobra.Command, args []string) error { return g.cephShell(cmd.Context(), cluster, args) },
	}
	shell.Flags().StringVar(&cluster, "cluster", "", "the StorageCluster (default: the only one of type ceph in the namespace)")
	cmd.AddCommand(shell, newCephClientFiles(g), newCephRecoverMons(g), newCephAdopt(g), newCephMirrorToken(g))
	return cmd
}

// passToCeph runs 'ceph ARGS' as the administrator of a cluster. Options of holdfast come first.
func passToCeph(cmd *cobra.Command, g *globals, args []string) error {
	var cluster string
	own := pflag.NewFlagSet("ceph", pflag.ContinueOnError)
	own.StringVar(&cluster, "cluster", "", "")
	own.AddFlagSet(cmd.InheritedFlags())
	before := kube.LeadingFlags(own, args)
	if err := own.Parse(args[:before]); err != nil {
		return &exitError{exitUsage, err}
	}
	command := args[before:]
	if len(command) == 0 && len(args) > 0 {
		return &exitError{exitUsage, errors.New("name a command of Ceph, such as 'holdfast ceph -s'")}
	}
	if len(command) == 0 || slices.Contains([]string{"-h", "--help"}, command[0]) {
		return cmd.Help()
	}
	if !own.Changed("namespace") {
		g.namespace = contextNamespace(g)
	}
	return g.cephShell(cmd.Context(), cluster, append([]string{"ceph"}, command...))
}

func (g *globals) cephShell(ctx context.Context, cluster string, command []string) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	key, err := g.cephCluster(ctx, c, cluster)
	if err != nil {
		return err
	}
	// A terminal that goes away must not leave the key behind, so its signal is caught before there is one.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	dir, err := os.MkdirTemp(memoryDir(), "holdfast-ceph-") // made with mode 0700
	if err != nil {
		return fmt.Errorf("while making a directory for the key: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := writeClientFiles(ctx, c, key, dir); err != nil {
		return err
	}
	return g.runTool(ctx, dir, command, signals)
}

// cephCluster returns the cluster of this name, or the only one of type ceph.
func (g *globals) cephCluster(ctx context.Context, c client.Client, name string) (types.NamespacedName, error) {
	var args []string
	if name != "" {
		args = []string{name}
	}
	keys, err := g.chosen(ctx, c, args, api.StorageCeph)
	if err != nil {
		return types.NamespacedName{}, err
	}
	if len(keys) == 0 {
		return types.NamespacedName{}, &exitError{exitRefused, g.noCluster()}
	}
	if len(keys) > 1 {
		return types.NamespacedName{}, &exitError{exitUsage, fmt.Errorf("namespace %s has %d Ceph clusters: choose "+
			"one with --cluster NAME", g.namespace, len(keys))}
	}
	return keys[0], nil
}

func writeClientFiles(ctx context.Context, c client.Client, key types.NamespacedName, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	s, err := readSnapshot(ctx, c, key)
	if err != nil {
		return err
	}
	view := &engine.View{Cluster: s.Cluster, Daemons: s.Daemons}
	if s.Cluster == nil || s.Cluster.Spec.Type != api.StorageCeph {
		return fmt.Errorf("storagecluster/%s is not a Ceph cluster", key.Name)
	}
	keyringPath := filepath.Join(dir, "keyring")
	conf, keyring, err := ceph.ClientFiles(ctx, view, &store.Secrets{Reader: c, Namespace: key.Namespace}, keyringPath)
	if err != nil {
		return fmt.Errorf("cannot reach storagecluster/%s: %w", key.Name, err)
	}
	if err := os.WriteFile(keyringPath, keyring, 0o600); err != nil {
		return fmt.Errorf("while writing the key: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "ceph.conf"), conf, 0o600)
}

// endGrace is how long a command may take to end when it is told to.
const endGrace = 5 * time.Second

// runTool runs the command with the cluster's configuration in its environment.
func (g *globals) runTool(ctx context.Context, dir string, command []string, signals <-chan os.Signal) error {
	if len(command) == 0 {
		command = []string{envOr("SHELL", "/bin/sh")}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // it is told of signals by passOn; a person ends it
	cmd.Env = append(os.Environ(), "CEPH_CONF="+filepath.Join(dir, "ceph.conf"))
	// What the program writes is data, such as an object that 'rados get' reads, or is for the terminal itself.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = g.in, words.Unwrap(g.out), words.Unwrap(g.err)
	err := cmd.Start()
	if err == nil {
		ended := make(chan struct{})
		go passOn(cmd.Process, signals, ended)
		err = cmd.Wait()
		close(ended)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return &exitError{exitCodeOf(exit.ProcessState), fmt.Errorf("%s: %w", command[0], err)}
	}
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%s is not installed on this machine: install it with 'apt-get install ceph-common'", command[0])
	}
	return err
}

// passOn passes signals on to the command. An interrupt may mean what the command does at the moment; anything else ends it:
// an interactive shell ends by SIGHUP alone, and what does not end is killed.
func passOn(p *os.Process, signals <-chan os.Signal, ended <-chan struct{}) {
	var kill <-chan time.Time
	for {
		select {
		case <-ended:
			return
		case s := <-signals:
			_ = p.Signal(s) // fails only for a command that has ended
			if s != os.Interrupt && kill == nil {
				_ = p.Signal(syscall.SIGHUP)
				kill = time.After(endGrace)
			}
		case <-kill:
			_ = p.Kill()
		}
	}
}

// exitCodeOf is the exit code as shells tell it: 128 and the number of the signal for a command that a signal ended.
func exitCodeOf(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// memoryDir is a directory in memory, where one can be had: what is left there when this program is killed is gone with the
// next boot, and was never on a disk.
func memoryDir() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return dir
	}
	if os.Geteuid() == 0 {
		return "/run"
	}
	return "" // the system's own choice
}
