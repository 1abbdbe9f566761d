package rados

import (
	"context"
	"errors"
	"io"
	"syscall"
	"testing"
)

// standIn answers with the command itself; one command it refuses, and another it does not answer.
type standIn struct{}

func (standIn) Mon(_ context.Context, command any, input []byte) ([]byte, error) {
	cmd, ok := command.(interface{ MarshalJSON() ([]byte, error) })
	if !ok {
		return nil, errors.New("no JSON")
	}
	text, err := cmd.MarshalJSON()
	switch {
	case err != nil:
		return nil, err
	case string(text) == `"refused"`:
		return nil, &CommandError{Errno: syscall.EEXIST, Status: "is there"}
	case string(text) == `"silent"`:
		return nil, ErrNoAnswer
	}
	return append(text, input...), nil
}

func (s standIn) Mgr(_ context.Context, _ any, _ []byte) ([]byte, error) { return []byte("mgr"), nil }

func (standIn) Close() error { return nil }

func TestServeClient(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan error, 1)
	var got Config
	go func() {
		ended <- ServeClient(inR, outW, func(cfg Config) Client { got = cfg; return standIn{} })
	}()
	send := func(v any) {
		t.Helper()
		if err := writeFrame(inW, v); err != nil {
			t.Fatal(err)
		}
	}
	send(Config{FSID: "f"})
	for _, tt := range []struct {
		to, cmd string
		want    response
	}{
		{toMon, `"status"`, response{Out: []byte(`"status"in`)}},
		{toMgr, `"pg stat"`, response{Out: []byte("mgr")}},
		{toMon, `"refused"`, response{Errno: int(syscall.EEXIST), Status: "is there"}},
		{toMon, `"silent"`, response{NoAnswer: true, Status: ErrNoAnswer.Error()}},
	} {
		send(request{ID: 7, To: tt.to, Cmd: []byte(tt.cmd), Input: []byte("in"), Millis: 1000})
		var a response
		if err := readFrame(outR, &a); err != nil {
			t.Fatal(err)
		}
		if a.ID != 7 || string(a.Out) != string(tt.want.Out) || a.Errno != tt.want.Errno || a.Status != tt.want.Status || a.NoAnswer != tt.want.NoAnswer {
			t.Errorf("%s: got %+v, want %+v", tt.cmd, a, tt.want)
		}
	}
	inW.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got.FSID != "f" {
		t.Errorf("the stand-in was opened for %q", got.FSID)
	}
}
