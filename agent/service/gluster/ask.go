package gluster

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/tool"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// askTimeout bounds one run of the program gluster, which itself waits for two minutes and more when a peer does not answer.
const askTimeout = 50 * time.Second

// asker runs gluster on the daemon's own socket.
func asker(l *service.Local) glusterd.Asker {
	socket := socketOf(l)
	return func(ctx context.Context, args ...string) ([]byte, error) {
		if slices.Contains(args, "heal") && slices.Contains(args, "info") {
			return askHeal(ctx, socket, args)
		}
		// What it logs it also prints, in fewer words.
		return output(ctx, "gluster", append([]string{"--mode=script", "--xml", "--glusterd-sock=" + socket, "--log-file=/dev/null"}, args...)...)
	}
}

// askHeal asks for 'volume heal VOLUME info [summary|split-brain]'.
func askHeal(ctx context.Context, socket string, args []string) ([]byte, error) {
	words := []string{args[2]}
	switch args[len(args)-1] {
	case "summary":
		words = append(words, "info-summary")
	case "split-brain":
		words = append(words, "split-brain-info")
	}
	return runHeal(ctx, socket, append(words, "--xml")...)
}

// runHeal runs the program that gluster calls for healing. gluster does not pass on to it where the socket is (10.3), so it is called
// here. It wants the socket last of all.
func runHeal(ctx context.Context, socket string, args ...string) ([]byte, error) {
	dir, err := output(ctx, "glusterd", "--print-libexecdir")
	if err != nil {
		return nil, err
	}
	return output(ctx, filepath.Join(strings.TrimSpace(string(dir)), "glfsheal"), append(args, "--nolog", "glusterd-sock", socket)...)
}

// output returns what a program printed. Its exit status says nothing: with --xml, the answer does.
func output(ctx context.Context, program string, args ...string) ([]byte, error) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	out, err := tool.Ask(cmd)
	exit := (*exec.ExitError)(nil)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s did not answer within %s", filepath.Base(program), time.Since(start).Round(time.Second))
	case err != nil && (!errors.As(err, &exit) || len(out) == 0 && len(exit.Stderr) == 0):
		return nil, err
	case len(out) == 0 && exit != nil:
		return exit.Stderr, nil
	}
	return out, nil
}

// How often and how long a command is tried while another one has the pool's lock.
const (
	lockPause    = 200 * time.Millisecond
	lockPauseMax = 3 * time.Second
	lockTimeout  = 40 * time.Second
)

// do runs a command that changes something, and waits for its turn: a pool does one thing at a time.
func do(ctx context.Context, ask glusterd.Asker, args ...string) error {
	end := time.Now().Add(lockTimeout)
	for pause := lockPause; ; pause = min(2*pause, lockPauseMax) {
		out, err := ask(ctx, args...)
		if err == nil {
			err = glusterd.Result(out)
		}
		failure := (*glusterd.Failure)(nil)
		if err == nil || !errors.As(err, &failure) || !failure.Busy() {
			return err
		}
		if time.Now().Add(pause).After(end) {
			return fmt.Errorf("the pool is busy with something else, for %s now: %w", lockTimeout, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
