package ganesha

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
)

// readTimeout bounds a reading, in which the server may have to reach a storage system; readPoll is how often its log is looked at.
const (
	readTimeout = 20 * time.Second
	readPoll    = 10 * time.Millisecond
)

// Perform has the server read its configuration again, and ends when the server says that it serves this and nothing else;
// clients of exports that stay do not notice.
func (Ganesha) Perform(ctx context.Context, l *service.Local, cmd service.Command) (string, error) {
	if cmd.Verb != ganesha.VerbReload {
		return "", fmt.Errorf("this agent does not know the command %q: upgrade Holdfast on this host", cmd.Verb)
	}
	wanted, written, err := wantedConf(l)
	if err != nil {
		return "", err
	}
	if !written {
		return "", errors.New("the agent has not written the new configuration yet")
	}
	from, err := lastReading(l)
	if err != nil {
		return "", err
	}
	for _, text := range steps(from, wanted) {
		from.number++
		if err := reread(ctx, l, text, from.number); err != nil {
			return "", err
		}
	}
	return "the server serves what its configuration says", nil
}

// reread has the server read one configuration. The text is there before the server is told of it.
func reread(parent context.Context, l *service.Local, text string, number int) error {
	pid, err := process(l)
	if err != nil {
		return err
	}
	if err := atomicfile.MkdirAll(filepath.Join(l.Run, ganesha.DirReadings), 0o755); err != nil {
		return err
	}
	loaded, given := filepath.Join(l.Run, ganesha.FileLoaded), numbered(text, number)
	if !tellsReadings(text) {
		given += untold
	}
	if err := atomicfile.Write(loaded, []byte(given), 0o644); err != nil {
		return err
	}
	tell := func() error { return syscall.Kill(pid, syscall.SIGHUP) }
	if err := atomicfile.Guarded(fmt.Sprint("/proc/", pid), tell); err != nil {
		return fmt.Errorf("while telling the process: %w", err)
	}
	if !tellsReadings(text) {
		return atomicfile.Write(loaded, []byte(text), 0o644) // the server is believed to read it
	}
	ctx, cancel := context.WithTimeout(parent, readTimeout)
	defer cancel()
	if err := await(ctx, l, number, pid); err != nil {
		return err
	}
	return forget(l, number)
}

// await waits until the server says that it serves what it was given.
func await(ctx context.Context, l *service.Local, number, pid int) error {
	for {
		log, err := said(l, number)
		if err != nil || strings.Contains(log, complete) || log == nowhere {
			return err
		}
		if err := syscall.Kill(pid, 0); err != nil {
			return fmt.Errorf("the server ended while it read its configuration: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server has not said that it read its configuration, so it may serve as before: %s", complaint(log))
		case <-time.After(readPoll):
		}
	}
}

// complaint is the first of what NFS-Ganesha finds wrong, or where to look for it.
func complaint(log string) string {
	for line := range strings.Lines(log) {
		if _, what, found := strings.Cut(line, ":CRIT :"); found {
			return strings.TrimSpace(what)
		}
	}
	return "see the log of the daemon"
}

// forget drops what the server logged of readings that have ended. A link to nowhere stands for the last one.
func forget(l *service.Local, number int) error {
	if err := atomicfile.Symlink(nowhere, readingFile(l, number)); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(l.Run, ganesha.DirReadings, "*"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if file != readingFile(l, number) {
			if err := atomicfile.Remove(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// process is the server's process, by the word of whoever runs it. The file that the server writes
// its number into has the number of a process of the server's own PID namespace, where the server
// is in a container.
func process(l *service.Local) (int, error) {
	if l.PID <= 1 {
		return 0, errors.New("no process of the server runs: see 'holdfast get daemons'")
	}
	return int(l.PID), nil
}
