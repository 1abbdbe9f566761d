package daemonlog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/agent/runtime/logfile"
	"github.com/holdfast-storage/holdfast/internal/daemonlog"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func rotate(t *testing.T, path string) {
	t.Helper()
	if err := logfile.Rotate(path, logfile.Limits{Size: 4096, Keep: 3}); err != nil {
		t.Fatal(err)
	}
}

// lines are lines of a log, each with its number.
func lines(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "2026-11-27T03:00:00.000+0000 7f 0 line %06d\n", i)
	}
	return b.String()
}

// through reads on until there is no more.
func through(t *testing.T, path string, at daemonlog.Place, most int64) (string, daemonlog.Place) {
	t.Helper()
	var b strings.Builder
	for {
		parsed, err := daemonlog.Parse(at.String())
		if err != nil || parsed != at {
			t.Fatalf("%v, %+v of %+v", err, parsed, at)
		}
		c, err := daemonlog.Continue(path, at, most)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(c.Text)) > most || c.Text != "" && c.Next == at {
			t.Fatalf("%d bytes, %+v after %+v", len(c.Text), c.Next, at)
		}
		if b.WriteString(c.Text); c.Text == "" {
			return b.String(), c.Next
		}
		at = c.Next
	}
}

// TestContinue reads on over any number of rotations since the last read, and over several in one
// read.
func TestContinue(t *testing.T) {
	for rotations := range 4 {
		for _, most := range []int64{100, 1000, 1 << 20} {
			path := filepath.Join(t.TempDir(), "daemon.log")
			write(t, path, lines(0, 300))
			c, err := daemonlog.Tail(path, 1<<20)
			if err != nil || c.Text != lines(0, 300) {
				t.Fatal(err, len(c.Text))
			}
			want := ""
			for i := range rotations {
				more := lines(300+200*i, 500+200*i)
				want += more
				write(t, path, more)
				rotate(t, path)
			}
			write(t, path, "unfinished")
			got, at := through(t, path, c.Next, most)
			if got != want {
				t.Fatalf("%d rotations, %d at once: %d bytes of %d", rotations, most, len(got), len(want))
			}
			write(t, path, " line\n")
			if got, _ := through(t, path, at, most); got != "unfinished line\n" {
				t.Errorf("%q", got)
			}
		}
	}
}

// TestContinue_whileRotating: not a line is lost or comes twice, at whatever moment of a rotation
// it is read.
func TestContinue_whileRotating(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daemon.log")
	write(t, path, lines(0, 1))
	at, err := daemonlog.Start(path)
	if err != nil {
		t.Fatal(err)
	}
	const all = 8000
	var ended atomic.Bool
	var seen, rotations atomic.Int64
	var writer sync.WaitGroup
	writer.Go(func() {
		defer ended.Store(true)
		rotatedAt := 0
		for i := 1; i < all && !t.Failed(); i += 10 {
			write(t, path, lines(i, min(i+10, all)))
			// The reader is never further behind than files are kept.
			if i-rotatedAt > 200 && seen.Load() >= int64(len(lines(0, rotatedAt))) {
				rotate(t, path)
				rotatedAt = i
				rotations.Add(1)
			}
		}
	})
	var b strings.Builder
	for last := false; !last; {
		last = ended.Load()
		text, next := through(t, path, at, 5000)
		b.WriteString(text)
		seen.Store(int64(b.Len()))
		at = next
	}
	writer.Wait()
	if b.String() != lines(0, all) || rotations.Load() == 0 {
		t.Errorf("%d bytes were read, and %d written; %d rotations", b.Len(), len(lines(0, all)), rotations.Load())
	}
	t.Logf("%d rotations", rotations.Load())
}

// TestContinue_other: a log that was made anew, truncated, or rotated away is read from where it is
// sure that nothing comes twice.
func TestContinue_other(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daemon.log")
	write(t, path, lines(0, 200))
	c, err := daemonlog.Tail(path, 10000)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	write(t, path, lines(0, 3))
	got, at := through(t, path, c.Next, 1<<20)
	if got != lines(0, 3) {
		t.Errorf("truncated: %s", got)
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if _, err := daemonlog.Continue(path, at, 100); !os.IsNotExist(err) && err == nil {
		t.Error("there is none")
	}
	write(t, path, lines(7, 9))
	if got, _ := through(t, path, at, 1<<20); got != lines(7, 9) {
		t.Errorf("made anew: %s", got)
	}
}

// TestContinue_turning: while the agent has copied the beginning and not yet cut it, nothing comes
// twice.
func TestContinue_turning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daemon.log")
	write(t, path, lines(0, 200))
	c, err := daemonlog.Tail(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, lines(200, 210))
	write(t, path+".1", lines(0, 190))
	if got, _ := through(t, path, c.Next, 1<<20); got != lines(200, 210) {
		t.Errorf("%d bytes: %.200s", len(got), got)
	}
	if c, err := daemonlog.Tail(path, 1<<20); err != nil || c.Text != lines(0, 210) || c.Of != int64(len(c.Text)) {
		t.Errorf("%v, %d bytes", err, len(c.Text))
	}
}

// TestTail reads the end over a rotation, from the beginning of a line on.
func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daemon.log")
	write(t, path, lines(0, 300))
	rotate(t, path)
	write(t, path, lines(300, 310))
	c, err := daemonlog.Tail(path, 10000)
	all := lines(0, 310)
	if err != nil || !strings.HasSuffix(all, "\n"+c.Text) || len(c.Text) < 9900 || c.Of != int64(len(all)) {
		t.Errorf("%v: %d bytes of %d", err, len(c.Text), c.Of)
	}
	if _, err := daemonlog.Tail(filepath.Join(t.TempDir(), "none"), 10); err == nil {
		t.Error("there is none")
	}
}

// TestContinue_long: a line that is longer than a read is cut behind a word.
func TestContinue_long(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daemon.log")
	text := strings.Repeat("word ", 50) + strings.Repeat("x", 200)
	write(t, path, text+"\n")
	at, err := daemonlog.Start(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := daemonlog.Continue(path, at, 63)
	if err != nil || c.Text != text[:60] {
		t.Errorf("%v: %q", err, c.Text)
	}
	if got, _ := through(t, path, at, 63); got != text+"\n" {
		t.Errorf("%q", got)
	}
}

func TestParse(t *testing.T) {
	for _, text := range []string{"", "1.2", "x", "1.2.-3"} {
		if p, err := daemonlog.Parse(text); err == nil {
			t.Errorf("%q is %+v", text, p)
		}
	}
}

func TestLines(t *testing.T) {
	const text = "one\n2026-11-27T03:05:00.000+0000 two\n its end\nfour\n"
	for n, want := range map[int]string{-1: text, 0: "", 1: "four\n", 2: " its end\nfour\n", 4: text, 9: text} {
		if got := daemonlog.Last(text, n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
	if got := daemonlog.Last("a\nb", 1); got != "b" {
		t.Errorf("%q", got)
	}
	at := time.Date(2026, 11, 27, 3, 5, 0, 0, time.UTC)
	if got := daemonlog.Young(text, at); got != text[4:] {
		t.Errorf("%q", got)
	}
	if got := daemonlog.Young(text, at.Add(time.Second)); got != "" {
		t.Errorf("%q", got)
	}
}
