// Package logs is 'holdfast logs': the log of a daemon. On its host the command reads the file;
// elsewhere it has the agent of that host read it.
package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/exit"
)

// findTimeout bounds the question which daemon is meant.
const findTimeout = 10 * time.Second

// Home is what the command takes from the command line that it is part of.
type Home struct {
	// Connect reaches the API, and does not wait for it.
	Connect func() (client.Client, error)
	// Find finds a daemon by one of its names. It refuses one that does not exist.
	Find func(ctx context.Context, c client.Client, name string) (*api.Daemon, error)
	// Namespace is where Find looks, and DataDir is the directory of Holdfast's state on this machine.
	Namespace, DataDir func() string
	Out, Err           io.Writer

	// waits are usual unless a test sets them.
	waits waits
}

// options are those of the command.
type options struct {
	follow bool
	tail   int
	since  time.Duration
}

// Command is 'holdfast logs'.
func Command(h Home) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "logs DAEMON [-f] [--tail N] [--since DURATION]",
		Short: "Print the log of a daemon",
		Long: `Prints what a daemon wrote to its log, from any machine with the kubeconfig of an administrator.
The agent of the daemon's host reads the log, takes secrets out, and passes on at most the last 48 KiB.

As root on the host of the daemon it reads the file itself: all of it, as the daemon wrote it, and
also when no server answers. At their default level the logs of Ceph have no keys. At a higher one
they may: look at such a log before you pass it on. In Kubernetes use 'kubectl logs'.`,
		Example: `  holdfast logs osd.3 -f
  holdfast logs daemon/ceph-mon-a --since 10m
  holdfast logs ceph-rgw-s3-a --tail 100`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return h.print(cmd.Context(), args[0], o) },
	}
	f := cmd.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "also print new lines when they are written")
	f.IntVar(&o.tail, "tail", -1, "how many of the last lines to print; -1: all, from another host up to 48 KiB")
	f.DurationVar(&o.since, "since", 0, "print only lines that are younger than this, such as 10m")
	return cmd
}

// print prints the log of a daemon: from this host if it is here, and otherwise by the agent of its
// host.
func (h Home) print(ctx context.Context, name string, o options) error {
	if o.tail < -1 || o.since < 0 {
		return exit.With(exit.Usage, errors.New("cannot print a log so: --tail must be a number of lines or -1, and "+
			"--since a time such as 10m; see 'holdfast logs --help'"))
	}
	d, unreached := h.find(ctx, name)
	var process string
	switch {
	case d != nil:
		process = d.Namespace + "." + d.Name
	case unreached.final:
		return unreached.error
	default:
		process = guess(h.DataDir(), h.Namespace(), name)
		if process == "" {
			return fmt.Errorf("%w; and this host has no log of a daemon %s", unreached.error, name)
		}
		fmt.Fprintf(h.Err, "warning: the API does not answer; printing the log of %s on this host\n", process)
	}
	path := pathOf(h.DataDir(), process)
	_, err := os.Stat(path)
	switch {
	case err != nil && d != nil:
		return h.elsewhere(ctx, d, name, o)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("only root may read %s: use sudo", path)
	case err != nil:
		return fmt.Errorf("while looking for the log: %w", err)
	}
	return printFile(ctx, h.Out, path, o, time.Now())
}

// notFound is why a daemon was not found; final where the API answered.
type notFound struct {
	error
	final bool
}

func (h Home) find(ctx context.Context, name string) (*api.Daemon, notFound) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	c, err := h.Connect()
	if err != nil {
		return nil, notFound{err, false}
	}
	d, err := h.Find(ctx, c, withoutKind(name))
	if err == nil {
		return d, notFound{}
	}
	var coded interface{ ExitCode() int }
	return nil, notFound{err, errors.As(err, &coded)}
}

// elsewhere reads the log on the daemon's host. If it cannot, it prints what the API has of the
// log.
func (h Home) elsewhere(ctx context.Context, d *api.Daemon, name string, o options) error {
	c, err := h.Connect()
	if err != nil {
		return err
	}
	r := &remote{Home: h, client: c, daemon: d, name: name, waits: h.waits}
	if r.waits == (waits{}) {
		r.waits = usual
	}
	err = r.read(ctx, o)
	if e := d.Status.LastExit; err != nil && ctx.Err() == nil && e != nil && e.Log != "" {
		fmt.Fprintf(h.Err, "the end of its log when it ended last, at %s (%s):\n", e.Time.UTC().Format(time.RFC3339),
			e.Reason)
		fmt.Fprintln(h.Out, e.Log)
	}
	return err
}
