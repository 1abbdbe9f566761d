package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/holdfast-storage/holdfast/internal/daemonlog"
)

const (
	// rotated is how many older files a log may have.
	rotated = 9
	// look is how often a log that is followed is looked at.
	look = 300 * time.Millisecond
	// longest is how long a line may be, in bytes; a longer one is several.
	longest = 64 << 10
	// mostAppended is how much of what was appended is read at once, in bytes.
	mostAppended = 1 << 20
)

// printFile prints a log, and follows it where that is asked for.
func printFile(ctx context.Context, out io.Writer, path string, o options, now time.Time) error {
	start, err := daemonlog.Start(path)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("while reading a log: %w", err)
	}
	defer f.Close()
	p := &printer{out: bufio.NewWriter(out), tail: o.tail}
	if o.since > 0 {
		p.since = now.Add(-o.since)
		if err := p.older(path); err != nil {
			return err
		}
	}
	start.Offset, err = p.copy(f)
	if err := errors.Join(err, p.flush()); err != nil {
		return fmt.Errorf("while reading %s: %w", path, err)
	}
	if !o.follow {
		return nil
	}
	return follow(ctx, out, path, start)
}

// printer prints lines, or keeps the last ones of them.
type printer struct {
	out   *bufio.Writer
	since time.Time
	// tail is how many lines of the end are printed; all where it is negative.
	tail int
	kept []string
	// young is set while the lines are not too old: one without a time is of the moment of the one before.
	young bool
}

// older reads the rotated files that were written to since then, the oldest first.
func (p *printer) older(path string) error {
	for i := rotated; i > 0; i-- {
		name := fmt.Sprintf("%s.%d", path, i)
		info, err := os.Stat(name)
		if err != nil || info.ModTime().Before(p.since) {
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			continue // it was rotated away at this moment
		}
		_, err = p.copy(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("while reading %s: %w", name, err)
		}
	}
	return nil
}

// copy takes all lines of a file, and returns where it ended.
func (p *printer) copy(f *os.File) (at int64, err error) {
	r := bufio.NewReaderSize(f, longest)
	for {
		line, err := r.ReadSlice('\n')
		at += int64(len(line))
		if len(line) > 0 {
			if err := p.line(string(line)); err != nil {
				return at, err
			}
		}
		if errors.Is(err, io.EOF) {
			return at, nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return at, err
		}
	}
}

func (p *printer) line(line string) error {
	if !p.since.IsZero() {
		if at, ok := daemonlog.TimeOf(line); ok {
			p.young = !at.Before(p.since)
		}
		if !p.young {
			return nil
		}
	}
	if p.tail < 0 {
		_, err := p.out.WriteString(line)
		return err
	}
	p.kept = append(p.kept, line)
	if len(p.kept) > 2*p.tail {
		p.kept = append([]string(nil), p.kept[len(p.kept)-p.tail:]...)
	}
	return nil
}

func (p *printer) flush() error {
	for _, line := range p.kept[max(0, len(p.kept)-max(p.tail, 0)):] {
		if _, err := p.out.WriteString(line); err != nil {
			return err
		}
	}
	return p.out.Flush()
}

// follow prints what comes after a place, line by line, until ctx ends.
func follow(ctx context.Context, out io.Writer, path string, at daemonlog.Place) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		var err error
		if at, err = appended(out, path, at); err != nil {
			return fmt.Errorf("while following %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// appended prints what was appended after a place, and returns the next one.
func appended(out io.Writer, path string, at daemonlog.Place) (daemonlog.Place, error) {
	for {
		c, err := daemonlog.Continue(path, at, mostAppended)
		if errors.Is(err, os.ErrNotExist) {
			return at, nil // the daemon was removed, and may come back
		}
		if err != nil || c.Text == "" {
			return at, err
		}
		if _, err := io.WriteString(out, c.Text); err != nil {
			return at, err
		}
		at = c.Next
	}
}
