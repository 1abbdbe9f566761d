package cephx

import (
	"encoding/base64"
	"encoding/binary"
	"maps"
	"testing"
	"time"
)

func TestNewKey(t *testing.T) {
	testTime := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	text, err := NewKey(testTime)
	if err != nil {
		t.Fatal(err)
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) != 28 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	kind, sec := binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint32(b[2:])
	if length := binary.LittleEndian.Uint16(b[10:]); kind != 1 || int64(sec) != testTime.Unix() || length != 16 {
		t.Errorf("type %d, seconds %d, length %d", kind, sec, length)
	}
	again, err := NewKey(testTime)
	if err != nil || again == text {
		t.Errorf("the same key twice: %v", err)
	}
}

func TestCapsIn(t *testing.T) {
	for _, entity := range []string{Admin, "osd.1", "mds.fs-a"} {
		if got := CapsIn(Keyring(entity, "key", Caps(entity))); !maps.Equal(got, Caps(entity)) {
			t.Errorf("%s: %v", entity, got)
		}
	}
}
