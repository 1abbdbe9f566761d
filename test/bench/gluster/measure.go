package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/holdfast-storage/holdfast/test/bench/pair"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

const (
	// count is how many hosts there are, each with one disk and one copy.
	count    = 3
	diskSize = 2 << 30
	// roundTimeout bounds one bring-up.
	roundTimeout = 3 * time.Minute
	volume       = "vol1"
)

//go:embed bringup.sh
var bringUpScript string

// bench is one benchmark under way. The same hosts and disks serve both sides, and Holdfast's servers run all the time, so that both
// sides have them in the background.
type bench struct {
	lab *hosts.Lab
	// home is nil when only the script is measured.
	home *home.Home
	// spec is what is applied.
	spec string
}

// measure does all rounds.
func measure(t hosts.T, o options, binary string) pair.Times {
	lab := hosts.New(t, hosts.Options{Count: count, Disks: 1, DiskSize: diskSize, Share: []string{filepath.Dir(binary)}})
	b := &bench{lab: lab, spec: spec(lab)}
	if o.side != pair.Script {
		b.home = home.Start(t, lab, binary)
	}
	times := pair.Times{}
	for n, side := range pair.Turns(o.rounds, o.side) {
		took := b.round(t, side)
		if n > 0 {
			times[side] = append(times[side], took.Seconds())
		}
		fmt.Fprintf(os.Stderr, "round %d of %d: %s %.2f s\n", n, o.rounds, side, took.Seconds())
	}
	return times
}

// round makes the volume from nothing, mounts it and writes to it, and removes everything.
func (b *bench) round(t hosts.T, side string) time.Duration {
	ctx, cancel := context.WithTimeout(context.Background(), roundTimeout)
	defer cancel()
	bringUp, remove := b.script, b.removeScript
	if side == pair.Holdfast {
		bringUp, remove = b.apply, func(context.Context) error { return b.wipe(t) }
	}
	if err := b.freshDisks(ctx, t); err != nil {
		t.Fatalf("%v", err)
	}
	start := time.Now()
	err := bringUp(ctx)
	if err == nil {
		err = b.mount(ctx)
	}
	took := time.Since(start)
	if err == nil {
		err = b.unmount(ctx)
	}
	if err = errors.Join(err, remove(ctx)); err != nil {
		t.Fatalf("%s: %v", side, err)
	}
	return took
}

// freshDisks empties the disks, and waits until Holdfast's servers know.
func (b *bench) freshDisks(ctx context.Context, t hosts.T) error {
	for _, h := range b.lab.Hosts() {
		if err := h.Disk(0).Discard(ctx); err != nil {
			return err
		}
	}
	if b.home != nil {
		b.home.AwaitFreeDisks(t)
	}
	return nil
}

// script makes the volume by hand.
func (b *bench) script(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "bash", "-c", bringUpScript, "bringup.sh", volume)
	cmd.Env = os.Environ()
	for i, h := range b.lab.Hosts() {
		cmd.Env = append(cmd.Env, fmt.Sprintf("HOST%d=%d", i+1, h.PID()), fmt.Sprintf("IP%d=%s", i+1, h.IP),
			fmt.Sprintf("DISK%d=%s", i+1, h.Disk(0).Path()))
	}
	// To a file and not to a pipe: the daemons keep it open.
	log, err := os.Create(filepath.Join(b.lab.Dir, "bringup.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(log.Name())
		return fmt.Errorf("the script failed: %w\n%s", err, said)
	}
	return nil
}

// remove is what undoes the script on a host. All of GlusterFS that runs there is the script's: the other side's is gone.
const remove = `pkill -KILL '^gluster(d|fs|fsd)$'
until ! pgrep '^gluster(d|fs|fsd)$' >/dev/null; do sleep 0.05; done
umount /var/brick && rm -r /var/lib/glusterd /var/brick`

func (b *bench) removeScript(ctx context.Context) error {
	var errs []error
	for _, h := range b.lab.Hosts() {
		_, err := h.Try(ctx, "sh", "-c", remove)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
