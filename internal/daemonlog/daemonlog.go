// Package daemonlog reads the log of a daemon while the daemon appends to it and the agent rotates
// it. Of a place at which a read ended the next one continues, so that no line is lost and none
// comes twice.
package daemonlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

const (
	// rotated is how many older files a log may have.
	rotated = 9
	// attempts bounds how often a read is tried again because the agent rotated the log meanwhile.
	attempts = 5
	// head is how many bytes of two files are compared.
	head = 4096
)

// Place is where a read ended.
type Place struct {
	// File is the inode of the log. One that was made anew is read from its beginning.
	File uint64
	// After is the inode of the rotated file before the place; 0 for none.
	After uint64
	// Offset is how many bytes after that file the place is.
	Offset int64
}

// String writes a place for Parse.
func (p Place) String() string { return fmt.Sprintf("%x.%x.%x", p.File, p.After, p.Offset) }

// Parse reads what String has written.
func Parse(text string) (p Place, err error) {
	n, err := fmt.Sscanf(text, "%x.%x.%x", &p.File, &p.After, &p.Offset)
	if err != nil || n != 3 || p.Offset < 0 {
		return Place{}, fmt.Errorf("%q is no place in a log", text)
	}
	return p, nil
}

// Chunk is what a read brings.
type Chunk struct {
	Text string
	// Next is where the text ends.
	Next Place
	// Of is how many bytes there were to read, of which Text has at most as many as were asked for.
	Of int64
}

// Tail reads the end of a log and of the files before it, at most most bytes, from the beginning of
// a line on.
func Tail(path string, most int64) (Chunk, error) {
	return steadily(path, func(l *log) (Chunk, error) {
		size := l.size()
		text, err := l.read(max(0, size-most), most)
		if err != nil {
			return Chunk{}, err
		}
		if _, rest, ok := strings.Cut(text, "\n"); ok && size > most && rest != "" {
			text = rest
		}
		return Chunk{Text: text, Next: l.place(0, size), Of: size}, nil
	})
}

// Continue reads what comes after a place: whole lines, at most most bytes. The text is empty if
// there is no more.
func Continue(path string, from Place, most int64) (Chunk, error) {
	return steadily(path, func(l *log) (Chunk, error) {
		first, offset := l.find(from)
		left := l.sizeFrom(first) - offset
		text, err := l.read(l.size()-left, most)
		if err != nil {
			return Chunk{}, err
		}
		text = whole(text, most)
		return Chunk{Text: text, Next: l.place(first, offset+int64(len(text))), Of: left}, nil
	})
}

// Start is the place of the beginning of a log, without the files before it.
func Start(path string) (Place, error) {
	c, err := steadily(path, func(l *log) (Chunk, error) { return Chunk{Next: l.place(len(l.parts)-1, 0)}, nil })
	return c.Next, err
}

// whole cuts a line off that has no end yet, or that does not fit. A line that is longer than a
// whole read is cut behind a word, so that what has to be recognized in it stays together.
func whole(text string, most int64) string {
	if end := strings.LastIndexByte(text, '\n'); end >= 0 {
		return text[:end+1]
	}
	if int64(len(text)) < most {
		return ""
	}
	if end := strings.LastIndexByte(text, ' '); end >= 0 {
		return text[:end+1]
	}
	return text
}

// log is a log with its older files, the oldest first, as they are at one moment.
type log struct {
	parts []part
	// turning is set while the agent rotates: the youngest older file is a copy of the beginning of
	// the last one.
	turning bool
}

type part struct {
	*os.File
	inode uint64
	size  int64
}

// steadily reads until the files stayed the same meanwhile.
func steadily(path string, read func(*log) (Chunk, error)) (c Chunk, err error) {
	for range attempts {
		l, err := open(path)
		if err != nil {
			return Chunk{}, fmt.Errorf("while opening a log: %w", err)
		}
		c, err = read(l)
		steady := l.steady(path)
		l.close()
		if err != nil {
			return Chunk{}, fmt.Errorf("while reading %s: %w", path, err)
		}
		if steady {
			return c, nil
		}
	}
	return Chunk{}, fmt.Errorf("cannot read %s: it was rotated during each of %d attempts", path, attempts)
}

func open(path string) (*log, error) {
	l := &log{}
	for i := rotated; i >= 0; i-- {
		name := path
		if i > 0 {
			name = fmt.Sprintf("%s.%d", path, i)
		}
		p, err := openPart(name)
		if err == nil {
			l.parts = append(l.parts, p)
		} else if i == 0 || !errors.Is(err, os.ErrNotExist) {
			l.close()
			return nil, err
		}
	}
	var err error
	if l.turning, err = l.copied(); err != nil {
		l.close()
		return nil, err
	}
	if n := len(l.parts); l.turning {
		l.parts[n-2].Close()
		l.parts = append(l.parts[:n-2], l.parts[n-1])
	}
	return l, nil
}

func openPart(path string) (part, error) {
	f, err := os.Open(path)
	if err != nil {
		return part{}, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return part{}, err
	}
	return part{f, info.Sys().(*syscall.Stat_t).Ino, info.Size()}, nil
}

// copied says whether the last file still begins with what was copied to the one before: the agent
// has yet to cut it.
func (l *log) copied() (bool, error) {
	n := len(l.parts)
	if n < 2 || l.parts[n-2].size == 0 || l.parts[n-1].size < l.parts[n-2].size {
		return false, nil
	}
	was, is := make([]byte, min(head, l.parts[n-2].size)), make([]byte, min(head, l.parts[n-2].size))
	_, err := l.parts[n-2].ReadAt(was, 0)
	_, err2 := l.parts[n-1].ReadAt(is, 0)
	if err := errors.Join(err, err2); errors.Is(err, io.EOF) {
		return false, nil // it was cut at this moment: steady sees that
	} else if err != nil {
		return false, err
	}
	return bytes.Equal(was, is), nil
}

// steady says whether the files are the same as when they were opened, but for what was appended.
func (l *log) steady(path string) bool {
	now, err := open(path)
	if err != nil {
		return false
	}
	defer now.close()
	if len(now.parts) != len(l.parts) || now.turning != l.turning {
		return false
	}
	for i, p := range l.parts {
		if p.inode != now.parts[i].inode || p.size > now.parts[i].size {
			return false
		}
	}
	return true
}

func (l *log) close() {
	for _, p := range l.parts {
		p.Close()
	}
}

// size is that of all files together, and sizeFrom that of one and what comes after it.
func (l *log) size() int64 { return l.sizeFrom(0) }

func (l *log) sizeFrom(first int) (n int64) {
	for _, p := range l.parts[first:] {
		n += p.size
	}
	return n
}

// read reads from a place on that is counted from the beginning of the oldest file.
func (l *log) read(at, most int64) (string, error) {
	var b strings.Builder
	for _, p := range l.parts {
		if at < p.size {
			n := min(p.size-at, most-int64(b.Len()))
			if _, err := io.Copy(&b, io.NewSectionReader(p, at, n)); err != nil {
				return "", err
			}
		}
		at = max(0, at-p.size)
	}
	return b.String(), nil
}

// find is the file behind the one that a place comes after, and how far behind its beginning the
// place is.
func (l *log) find(from Place) (first int, offset int64) {
	last := len(l.parts) - 1
	if from.File != l.parts[last].inode {
		return 0, 0
	}
	for i, p := range l.parts[:last] {
		if p.inode == from.After {
			first = i + 1
		}
	}
	switch lost := first == 0 && from.After != 0; {
	case lost:
		return 0, 0 // it was rotated more often than files are kept
	case from.Offset > l.sizeFrom(first):
		return last, 0 // a person has truncated it
	}
	return first, from.Offset
}

// place writes an offset behind the beginning of a file as a place.
func (l *log) place(first int, offset int64) Place {
	last := len(l.parts) - 1
	for first < last && offset >= l.parts[first].size {
		offset -= l.parts[first].size
		first++
	}
	p := Place{File: l.parts[last].inode, Offset: offset}
	if first > 0 {
		p.After = l.parts[first-1].inode
	}
	return p
}
