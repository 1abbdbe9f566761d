// Package logfile keeps the log files bounded that daemons write by themselves.
//
// A daemon holds its log open with O_APPEND and writes to it without the agent's help, so that nothing is lost, and nothing
// blocks, while there is no agent. The file can therefore not be renamed away. Rotate copies its beginning to the next
// file and then cuts the beginning out (FALLOC_FL_COLLAPSE_RANGE, on ext4 and xfs): what the daemon appends meanwhile
// stays where it is, and not a line is lost. On a file system that cannot do that, the file is truncated after the copy,
// and what was written in between is lost, as with logrotate's copytruncate.
package logfile

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Limits bound a log.
type Limits struct {
	// Size is how many bytes a file may have before it is rotated.
	Size int64
	// Keep is how many rotated files are kept: path.1 is the youngest.
	Keep int
}

// DefaultLimits keep at most 64 MiB of a daemon's output.
var DefaultLimits = Limits{Size: 16 << 20, Keep: 3}

// Rotate rotates the log at path when it is larger than its limit. A log that is not there is no error.
func Rotate(path string, lim Limits) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("while rotating a log: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("while rotating a log: %w", err)
	}
	if st.Size() <= lim.Size {
		return nil
	}
	if err := rotate(f, st, lim.Keep); err != nil {
		return fmt.Errorf("while rotating %s: %w", path, err)
	}
	return nil
}

func rotate(f *os.File, st os.FileInfo, keep int) error {
	for i := keep; i > 1; i-- {
		err := os.Rename(numbered(f.Name(), i-1), numbered(f.Name(), i))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	// Only whole blocks can be cut out, and not the last one.
	block := st.Sys().(*syscall.Stat_t).Blksize
	n := (st.Size() - 1) / block * block
	if keep > 0 {
		if err := copyStart(f, n, numbered(f.Name(), 1), st.Mode().Perm()); err != nil {
			return err
		}
	}
	if n > 0 && unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_COLLAPSE_RANGE, 0, n) == nil {
		return nil
	}
	if keep > 0 {
		if err := appendRest(f, n, numbered(f.Name(), 1)); err != nil {
			return err
		}
	}
	return f.Truncate(0)
}

// appendRest copies what follows the first n bytes to the end of another file.
func appendRest(f *os.File, n int64, to string) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.NewSectionReader(f, n, math.MaxInt64-n))
	return errors.Join(err, out.Close())
}

func numbered(path string, i int) string { return fmt.Sprintf("%s.%d", path, i) }

// copyStart copies the first n bytes. It is not synced to disk: a power cut costs old log lines at worst.
func copyStart(f *os.File, n int64, to string, perm os.FileMode) error {
	out, err := os.OpenFile(to+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.NewSectionReader(f, 0, n))
	if err := errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	return os.Rename(out.Name(), to)
}

// Tail returns the last bytes of the log, at most max of them, cut to whole lines where there are several, as valid UTF-8.
// A log that cannot be read is empty.
func Tail(path string, max int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	b, err := io.ReadAll(io.NewSectionReader(f, size-min(size, max), max))
	if err != nil {
		return ""
	}
	s := string(b)
	if _, rest, ok := strings.Cut(s, "\n"); ok && size > max && rest != "" {
		s = rest
	}
	return clean(s, int(max))
}

// clean replaces what is no text, and keeps to the limit although a replacement is longer than what it replaces.
func clean(s string, max int) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "?")
	for len(s) > max {
		_, n := utf8.DecodeRuneInString(s)
		s = s[n:]
	}
	return s
}
