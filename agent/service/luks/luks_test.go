package luks

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var mine = Owner{Cluster: "11111111-2222-3333-4444-555555555555", OSD: "99999999-2222-3333-4444-555555555555", Part: PartData}

// header is the beginning of a device that is encrypted.
func header(label, subsystem string) []byte {
	b := make([]byte, 4096)
	copy(b, magic+"\x00\x02")
	copy(b[labelAt:], label)
	copy(b[subsystemAt:], subsystem)
	return b
}

func TestOwnerOf(t *testing.T) {
	for name, c := range map[string]struct {
		content []byte
		want    Owner
		err     error
	}{
		"ours":               {header(mine.label(), mine.subsystem()), mine, nil},
		"somebody's":         {header("home", ""), Owner{}, nil},
		"of another program": {header(mine.label(), "systemd"), Owner{}, nil},
		"without a part":     {header("osd=1", mine.subsystem()), Owner{}, nil},
		"empty":              {make([]byte, 4096), Owner{}, ErrNone},
		"short":              {[]byte(magic), Owner{}, ErrNone},
	} {
		file := filepath.Join(t.TempDir(), "device")
		if err := os.WriteFile(file, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := OwnerOf(file); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for _, part := range []string{PartData, "db", "wal"} {
		o := mine
		if o.Part = part; len(o.label()) >= labelSize || len(o.subsystem()) >= subsystemLen {
			t.Errorf("the header has no room for %q, %q", o.label(), o.subsystem())
		}
	}
}

// Where wiping was cut off, nothing of the header is left but its beginning: it is no error that there are no keys.
func TestErase_damaged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "device")
	if err := os.WriteFile(file, append(header(mine.label(), mine.subsystem()), make([]byte, 16<<20)...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Erase(t.Context(), file); err != nil {
		t.Error(err)
	}
}

// What is somebody else's is neither opened nor tried with the key.
func TestOpen_leavesOthersAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "device")
	if err := os.WriteFile(file, header("home", ""), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), file, mine, make([]byte, KeySize)); err == nil || !strings.Contains(err.Error(), "encrypted for something else") {
		t.Errorf("%v", err)
	}
	if err := Format(t.Context(), file, mine, []byte("short")); err == nil || !strings.Contains(err.Error(), "too short") {
		t.Errorf("a short key: %v", err)
	}
}

// Which key it is can be told without device-mapper, and a device without any key has none that fits.
func TestFits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "device")
	if err := os.WriteFile(file, make([]byte, 32<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	right, wrong := bytes.Repeat([]byte{1}, KeySize), bytes.Repeat([]byte{2}, KeySize)
	if err := Format(t.Context(), file, mine, right); err != nil {
		t.Fatal(err)
	}
	if fits, err := Fits(t.Context(), file, right); err != nil || !fits {
		t.Errorf("the right key: %v, %v", fits, err)
	}
	if fits, err := Fits(t.Context(), file, wrong); err != nil || fits {
		t.Errorf("a wrong key: %v, %v", fits, err)
	}
	if err := Erase(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	if fits, err := Fits(t.Context(), file, right); fits {
		t.Errorf("without any key: %v, %v", fits, err)
	}
}
