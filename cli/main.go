package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/cli/bundle"
	"github.com/holdfast-storage/holdfast/cli/complete"
	"github.com/holdfast-storage/holdfast/cli/convert"
	"github.com/holdfast-storage/holdfast/cli/csi"
	"github.com/holdfast-storage/holdfast/cli/device"
	"github.com/holdfast-storage/holdfast/cli/exit"
	"github.com/holdfast-storage/holdfast/cli/logs"
	"github.com/holdfast-storage/holdfast/cli/versions"
	"github.com/holdfast-storage/holdfast/internal/version"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Exit codes of the program; package exit says what they mean.
const (
	exitOK      = exit.OK
	exitFailed  = exit.Failed
	exitUsage   = exit.Usage
	exitRefused = exit.Refused
	exitTimeout = exit.Timeout
)

// exitError carries the exit code that an error ends the program with.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// ExitCode is the exit code of the program.
func (e *exitError) ExitCode() int { return e.code }

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
	// firstWordTime is less than the constant of this name for tests without a leader; 0 is the constant.
	firstWordTime time.Duration
}

// Main runs the program with these arguments and returns its exit code.
func Main(args []string) int {
	quietLibraries()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, args, streams{in: os.Stdin, out: os.Stdout, err: os.Stderr})
}

// run writes nothing that a terminal would act on, but for what printer.draw does: what hosts and
// daemons say of themselves is in most of what is printed.
func run(ctx context.Context, args []string, io streams) int {
	io.out, io.err = words.NewVisibleWriter(io.out), words.NewVisibleWriter(io.err)
	root := newRoot(io)
	root.SetArgs(args)
	root.InitDefaultCompletionCmd(args...)
	refuseUnknown(root)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) && coded.ExitCode() == exit.Changes {
		return exit.Changes // which is no fault
	}
	err = toldUnanswered(cmd, toldLockedOut(cmd, err))
	fmt.Fprintf(io.err, "holdfast: %v\n", err)
	switch {
	case errors.As(err, &coded):
		return coded.ExitCode()
	case strings.HasPrefix(err.Error(), "unknown command"): // cobra has no type for it
		fmt.Fprintln(io.err, "See 'holdfast --help'.")
		return exitUsage
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return exitRefused
	}
	return exitFailed
}

func newRoot(io streams) *cobra.Command {
	g := &globals{streams: io}
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Declare and run distributed storage clusters",
		Long: `Holdfast runs distributed storage. You declare a cluster; Holdfast builds it, watches it and repairs it.

On a new machine:
  holdfast server --init                       start the first server, which is also an agent
  holdfast token create                        create a token for another machine
  holdfast apply -f cluster.yaml --wait        create a storage cluster
  holdfast status --watch                      show its progress`,
		PersistentPreRunE: g.prepare,

		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.Version,
	}
	root.SetIn(io.in)
	root.SetOut(io.out)
	root.SetErr(io.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &exitError{exitUsage, fmt.Errorf("%w: see '%s --help'", err, cmd.CommandPath())}
	})
	g.bind(root.PersistentFlags())
	root.AddCommand(
		newServer(g), newAgent(g), newOperator(g), newToken(g), newKubeconfig(g),
		newBackup(g), newRestore(g), newQuorum(g), newDoctor(g), newCA(g),
		newHost(g), newAction(g), newDaemon(g), newVolume(g), newRecreate(g), newApply(g), newDelete(g), newGet(g),
		newStatus(g), newOrchestrate(g), newWhy(g), newPlan(g), newCeph(g),
		csi.New(csi.Home{Log: func() *slog.Logger { return newLog(g) }, REST: g.clusterConfig}),
		versions.Command(versions.Home{Connect: impatient(g), REST: g.readConfig, Out: g.out, Err: g.err}),
	)
	addBelow(root, g)
	checkArgs(root)
	leaveNothing(root, g)
	return root
}

// addBelow adds the commands of the packages below this one.
func addBelow(root *cobra.Command, g *globals) {
	namespace, dataDir := func() string { return g.namespace }, func() string { return g.dataDir }
	root.AddCommand(
		convert.Command(convert.Home{In: g.in, Out: g.out}),
		device.Command(device.Home{Connect: impatient(g), Act: g.act, Out: g.out, Err: g.err}),
		logs.Command(logs.Home{
			Connect: impatient(g), Find: g.findDaemon, Namespace: namespace, DataDir: dataDir, Out: g.out, Err: g.err,
		}),
		bundle.Command(bundle.Home{
			Connect: impatient(g), REST: g.readConfig, Run: runOther(g), DataDir: dataDir, Out: g.out, Err: g.err,
		}),
	)
	complete.Add(root, complete.Home{Connect: impatient(g), Namespace: func() string {
		return cmp.Or(g.namespace, contextNamespace(g)) // nothing is prepared for a shell
	}})
}

// runOther runs another command against the same API. Its arguments may name another namespace.
func runOther(g *globals) func(ctx context.Context, out io.Writer, args ...string) error {
	return func(ctx context.Context, out io.Writer, args ...string) error {
		args = append(args, "--kubeconfig", g.kubeconfig, "--context", g.context, "--data-dir", g.dataDir)
		if code := run(ctx, args, streams{in: strings.NewReader(""), out: out, err: out}); code != exitOK {
			return fmt.Errorf("the command %s ended with exit code %d", args[0], code)
		}
		return nil
	}
}

// leaveNothing has each command, however it ends, remove the plans that it only asked with.
func leaveNothing(cmd *cobra.Command, g *globals) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			defer g.dropAsked()
			return run(cmd, args)
		}
	}
	for _, c := range cmd.Commands() {
		leaveNothing(c, g)
	}
}

// checkArgs makes arguments that a command does not take an error of the command line.
func checkArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return &exitError{exitUsage, fmt.Errorf("%w: see '%s --help'", err, cmd.CommandPath())}
			}
			return nil
		}
	}
	for _, c := range cmd.Commands() {
		checkArgs(c)
	}
}

// impatient connects to the API for a command that does not wait for it.
func impatient(g *globals) func() (client.Client, error) {
	return func() (client.Client, error) {
		quiet := &globals{
			streams: streams{in: g.in, out: g.out}, kubeconfig: g.kubeconfig, context: g.context, namespace: g.namespace,
			dataDir: g.dataDir, waits: g.waits,
		}
		return quiet.client()
	}
}
