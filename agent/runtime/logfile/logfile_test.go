package logfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A writer that knows nothing of the rotation loses no line and writes none twice, however often its log is rotated.
func TestRotate_losesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	w, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var want strings.Builder
	var stop atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; !stop.Load(); i++ {
			line := fmt.Sprintf("line %d\n", i)
			want.WriteString(line)
			if _, err := w.WriteString(line); err != nil {
				t.Error(err)
				return
			}
		}
	})
	const rotations = 10
	for done := 0; done < rotations; {
		if err := Rotate(path, Limits{Size: 16 << 10, Keep: rotations}); err != nil {
			t.Fatal(err)
		}
		parts, err := filepath.Glob(path + ".*")
		if err != nil {
			t.Fatal(err)
		}
		done = len(parts)
	}
	stop.Store(true)
	writer.Wait()
	var got strings.Builder
	for i := rotations; i >= 0; i-- {
		name := path
		if i > 0 {
			name = numbered(path, i)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(b)
	}
	if got.String() != want.String() {
		t.Errorf("%d bytes came out of %d, or others", got.Len(), want.Len())
	}
}

func TestRotate_keepsSoMany(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for i := range 5 {
		text := strings.Repeat(fmt.Sprint(i), 5000)
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		if err := Rotate(path, Limits{Size: 4096, Keep: 2}); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"log.1": "4", "log.2": "3"} {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(path), name))
		if err != nil || !strings.HasPrefix(string(b), want) {
			t.Errorf("%s starts with %.3q (%v), want %q", name, b, err, want)
		}
	}
	if _, err := os.Stat(path + ".3"); !os.IsNotExist(err) {
		t.Errorf("log.3: %v, want none", err)
	}
}

func TestRotate_missing(t *testing.T) {
	if err := Rotate(filepath.Join(t.TempDir(), "none"), DefaultLimits); err != nil {
		t.Error(err)
	}
}

func TestTail(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"empty", "", ""},
		{"short", "a\nb\n", "a\nb\n"},
		{"cut at a line", strings.Repeat("x", 20) + "\nlast line\n", "last line\n"},
		{"one long line", strings.Repeat("y", 40), strings.Repeat("y", 16)},
		{"no text", "a\xffb\x00c", "a?bc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := Tail(path, 16); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if got := Tail("/nonexistent", 16); got != "" {
		t.Errorf("missing file: %q", got)
	}
}
