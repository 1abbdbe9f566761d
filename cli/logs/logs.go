// Package logs is 'holdfast logs': the log of a daemon, on the host on which it runs.
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
		Short: "Print the log of a daemon of this host",
		Long: `Prints what a daemon wrote to its log, also when the servers do not answer. Run it as root on the host
of the daemon. Elsewhere it names that host, and prints what the agent reported of the daemon's last
end. In Kubernetes use 'kubectl logs'.

At their default level the logs of Ceph have no keys. At a higher one they may: look at a log before
you pass it on, or use 'holdfast support-bundle', which takes them out.`,
		Example: `  holdfast logs osd.3 -f
  holdfast logs daemon/ceph-mon-a --since 10m
  holdfast logs ceph-rgw-s3-a --tail 100`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return h.print(cmd.Context(), args[0], o) },
	}
	f := cmd.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "also print new lines when they are written")
	f.IntVar(&o.tail, "tail", -1, "how many of the last lines to print; -1: all")
	f.DurationVar(&o.since, "since", 0, "print only lines that are younger than this, such as 10m")
	return cmd
}

// print prints the log of a daemon that is on this host, or says where it is.
func (h Home) print(ctx context.Context, name string, o options) error {
	d, unreached := h.find(ctx, name)
	process := ""
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
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("only root may read %s: use sudo", path)
	case errors.Is(err, os.ErrNotExist) && d != nil:
		return h.elsewhere(ctx, d, name)
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

// elsewhere says where the log is, after what the API has of it.
func (h Home) elsewhere(ctx context.Context, d *api.Daemon, name string) error {
	if e := d.Status.LastExit; e != nil && e.Log != "" {
		fmt.Fprintf(h.Err, "the end of its log when it ended last, at %s (%s):\n", e.Time.UTC().Format(time.RFC3339),
			e.Reason)
		fmt.Fprintln(h.Out, e.Log)
	}
	if h.inPod(ctx, d) {
		return fmt.Errorf("daemon %s runs in a pod on node %s: use 'kubectl -n %s logs %s'", d.Name, d.Spec.Host,
			d.Namespace, d.Name)
	}
	return fmt.Errorf("daemon %s has its log on host %s: run 'holdfast logs %s' there as root", d.Name, d.Spec.Host,
		name)
}

// inPod says whether the daemon's host runs daemons as pods. It is false where that is not known.
func (h Home) inPod(ctx context.Context, d *api.Daemon) bool {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	c, err := h.Connect()
	if err != nil {
		return false
	}
	var host api.Host
	err = c.Get(ctx, client.ObjectKey{Name: d.Spec.Host}, &host)
	return err == nil && host.Status.Runtime == api.RuntimePod
}
