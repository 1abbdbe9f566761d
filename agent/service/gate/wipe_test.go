package gate

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// Whoever asks for a wipe may take that back at the last moment, and nobody wipes what another one
// has open for himself alone.
func TestWipe(t *testing.T) {
	_, d := place(t)
	mkfs(t, d.Path)
	no := errors.New("no")
	for range 2 {
		if err := Wipe(t.Context(), d.Path, func() error { return no }); !errors.Is(err, no) {
			t.Errorf("taken back: %v", err)
		}
	}
	f, err := openAlone(t.Context(), d.Path, unix.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	asked := false
	if err := Wipe(t.Context(), d.Path, func() error { asked = true; return nil }); !errors.Is(err, unix.EBUSY) || asked {
		t.Errorf("of a device that is in use: %v, asked %t", err, asked)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if d := seen(t, d.Path); d.Filesystem == nil {
		t.Error("it was wiped")
	}
	for range 2 {
		if err := Wipe(t.Context(), d.Path, nil); err != nil {
			t.Error(err)
		}
		if d := seen(t, d.Path); d.Taken() != "" {
			t.Errorf("it is not free: %s", d.Taken())
		}
	}
}
