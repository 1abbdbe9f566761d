package ganesha

import (
	"bytes"
	"context"
	"encoding/binary"
	"maps"
	"net"
	"strings"
	"testing"
	"time"
)

// words are what a record begins with, as numbers.
func words(all ...uint32) []byte {
	var b xdr
	b.numbers(all...)
	return b
}

// TestLookup asks a server that answers as NFSv4 servers do.
func TestLookup(t *testing.T) {
	for _, tt := range []struct {
		name  string
		reply []byte
		want  string
	}{
		{"served", words(7, 1, 0, 0, 0, 0, 0, 0, 3), ""},
		{"not exported", words(7, 1, 0, 0, 0, 0, 2), "does not export it"},
		{"not for this host", words(7, 1, 0, 0, 0, 0, 13), "refuses access"},
		{"in its grace period, perhaps", words(7, 1, 0, 0, 0, 0, 10013), "error 10013 of NFS"},
		{"the call is denied", words(7, 1, 1, 1, 5), "refuses the lookup"},
		{"another version", words(7, 1, 0, 0, 0, 2, 3, 3), "refuses the lookup"},
		{"cut off", words(7, 1), "refuses the lookup"},
		{"nothing", nil, "does not answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked, address := answerOnce(t, tt.reply)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := lookup(ctx, address, "/a/bcde")
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			want := append(words(opPutRootFH, opLookup, 1), 'a', 0, 0, 0)
			want = append(append(want, words(opLookup, 4)...), "bcde"...)
			if got := <-asked; !bytes.HasSuffix(got, want) || binary.BigEndian.Uint32(got[12:]) != programNFS {
				t.Errorf("asked % x", got)
			}
		})
	}
}

// TestLookups_busy: a server that is busy, as while it reads its configuration, is asked again; one
// path with which it stays busy keeps no other from being asked for.
func TestLookups_busy(t *testing.T) {
	address := answerEach(t, map[string][]uint32{"a": nil, "b": {statusDelay, statusDelay, 0}, "c": {0}})
	ctx, cancel := context.WithTimeout(t.Context(), 5*lookupPause)
	defer cancel()
	got := lookups(ctx, address, []string{"/a", "/b", "/c"})
	want := map[string]string{"/a": errBusy.Error(), "/b": "", "/c": ""}
	if !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestLookups_late: of paths that were not asked for in time, nothing is said.
func TestLookups_late(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := lookups(ctx, answerEach(t, nil), []string{"/a", "/b"}); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// answerEach answers questions for paths of one letter with one status after the other, and is busy
// with them afterwards.
func answerEach(t *testing.T, statuses map[string][]uint32) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if call, err := readRecord(conn); err == nil {
				path, status := string(call[len(call)-4]), uint32(statusDelay)
				if left := statuses[path]; len(left) > 0 {
					status, statuses[path] = left[0], left[1:]
				}
				reply := words(7, 1, 0, 0, 0, 0, status)
				_, _ = conn.Write(append(words(lastFragment|uint32(len(reply))), reply...))
			}
			conn.Close()
		}
	}()
	return l.Addr().String()
}

// answerOnce listens for one call, and answers it; with nothing, it hangs up.
func answerOnce(t *testing.T, reply []byte) (<-chan []byte, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan []byte, 1)
	go func() {
		defer l.Close()
		conn, err := l.Accept()
		if err != nil {
			close(asked)
			return
		}
		defer conn.Close()
		call, err := readRecord(conn)
		if err == nil && reply != nil {
			_, err = conn.Write(append(words(lastFragment|uint32(len(reply))), reply...))
		}
		if err != nil {
			call = nil
		}
		asked <- call
	}()
	return asked, l.Addr().String()
}

// TestLookup_nobody: nothing listens.
func TestLookup_nobody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	if err := lookup(t.Context(), address, "/a"); err == nil || !strings.Contains(err.Error(), "does not listen") {
		t.Error(err)
	}
}
