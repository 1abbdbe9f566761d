package rados

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

// TestFrame: what is written is read, whatever bytes it carries, one frame after the other, and nothing after the last.
func TestFrame(t *testing.T) {
	bits := []byte("\x00\xff{\"\n" + strings.Repeat("osd", 1<<16))
	var pipe bytes.Buffer
	requests := []request{{ID: 1, To: toMon, Cmd: []byte(`{"prefix":"status"}`), Millis: 5}, {ID: 2, To: toMgr, Cmd: []byte(`"x"`), Input: bits}}
	responses := []response{{ID: 1, Out: bits}, {ID: 2, Errno: 17, Status: "is there"}, {ID: 3, Out: bits, Errno: 1}, {ID: 4, NoAnswer: true}}
	for _, r := range requests {
		if err := writeFrame(&pipe, r); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range responses {
		if err := writeFrame(&pipe, &r); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range requests {
		var r request
		if err := readFrame(&pipe, &r); err != nil || !reflect.DeepEqual(r, want) {
			t.Errorf("request %d reads %.80q (%v)", want.ID, r.Input, err)
		}
	}
	for _, want := range responses {
		var r response
		if err := readFrame(&pipe, &r); err != nil || !reflect.DeepEqual(r, want) {
			t.Errorf("response %d reads %.80q (%v)", want.ID, r.Out, err)
		}
	}
	if err := readFrame(&pipe, &response{}); !errors.Is(err, io.EOF) {
		t.Errorf("after the last frame: %v", err)
	}
}

// TestFrame_broken: a frame that is cut off, or says that it is longer than any, is an error, and takes no memory.
func TestFrame_broken(t *testing.T) {
	var pipe bytes.Buffer
	if err := writeFrame(&pipe, &response{ID: 1, Out: []byte("map")}); err != nil {
		t.Fatal(err)
	}
	whole := pipe.Bytes()
	for n := 1; n < len(whole); n++ {
		if err := readFrame(bytes.NewReader(whole[:n]), &response{}); err == nil || err == io.EOF { //nolint:errorlint // io.EOF itself says that all is well
			t.Errorf("of %d bytes, the first %d read well (%v)", len(whole), n, err)
		}
	}
	long := "\xff\xff\xff\xff\xff\xff\xff\xff"
	if err := readFrame(strings.NewReader(long), &response{}); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a frame of 8 GiB: %v", err)
	}
}
