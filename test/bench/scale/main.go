// Command scale measures what a large fleet costs the leader: simulated hosts, on each of which the real agent runs with a
// runtime, an inventory and a Ceph that are simulated, over the real API of the real server in a process of its own. Each agent
// has its own identity, joined with its own token, and its own connection.
//
// It prints how old the newest report of each host is as the leader sees it, the leader's CPU time and memory, what is written
// while nothing changes, how the database grows, and how long it takes from the end of a daemon to its event and to the
// decision about it. With -unchanged it prints instead what an orchestration costs in which nothing changes. It fails where a bound of the
// design is not kept.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/holdfast-storage/holdfast/cli"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// options are the command line.
type options struct {
	hosts, disks, clusters int
	wave                   int
	watch                  time.Duration
	deaths                 int
	dir, profile           string
	unchanged              bool
	json, noBound          bool
}

// asServer is the first argument of the process that is the server.
const asServer = "holdfast"

func main() {
	rados.MaybeServeBy(forward)
	if len(os.Args) > 1 && os.Args[1] == asServer {
		os.Exit(cli.Main(os.Args[2:]))
	}
	o := options{}
	flag.IntVar(&o.hosts, "hosts", 1000, "how many hosts are simulated")
	flag.IntVar(&o.disks, "disks", 10, "how many disks each has; each becomes an OSD")
	flag.IntVar(&o.clusters, "clusters", 4, "how many StorageClusters share the hosts")
	flag.IntVar(&o.wave, "wave", 50, "how many hosts are given to the clusters at once; the next follow when they are ready")
	flag.DurationVar(&o.watch, "watch", time.Minute, "how long the fleet is watched while nothing happens")
	flag.BoolVar(&o.unchanged, "unchanged", false, "measure only what an orchestration costs in which nothing changes")
	flag.IntVar(&o.deaths, "deaths", 20, "how many daemons end, one after the other, to measure reactions")
	flag.StringVar(&o.dir, "dir", "", "where everything is kept while it runs (default: a new directory that is removed)")
	flag.StringVar(&o.profile, "profile", "", "write CPU profiles of the server to this file name with .up (the last wave), .quiet and .react (-unchanged: .before, .busy and .after) appended, of the agents with .agents after that, and a heap profile with .heap")
	flag.BoolVar(&o.json, "json", false, "print one JSON object instead of a table")
	flag.BoolVar(&o.noBound, "no-bound", false, "end well also where a bound is not kept")
	flag.Parse()
	o.wave = max(o.wave, 1)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "holdfast-scale-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	r, failed := measure(ctx, o)
	if r == nil || r.Rest.Cores == 0 && r.Unchanged == nil { // it did not come to rest
		return failed
	}
	if o.json {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		err = r.print(os.Stdout)
	}
	if err = errors.Join(failed, err); !o.noBound {
		err = errors.Join(err, r.judge())
	}
	return err
}

// forward is the server's child for librados. It hands everything on to the Ceph that the parent of both simulates; where that
// listens it knows by its working directory, which is the server's.
func forward(in io.Reader, out io.Writer) error {
	c, err := net.Dial("unix", cephSocket) //nolint:noctx // on this machine: it answers at once or not at all
	if err != nil {
		return fmt.Errorf("while connecting to the simulated Ceph: %w", err)
	}
	defer c.Close()
	go func() {
		_, _ = io.Copy(out, c) // ends with the process
	}()
	_, err = io.Copy(c, in)
	return err
}

func note(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

func within(dir string, parts ...string) string {
	return filepath.Join(append([]string{dir}, parts...)...)
}
