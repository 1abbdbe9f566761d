package rados_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// A real mon greets who connects. One that is stopped does not, though the kernel takes the connection; nor does one that is gone.
func TestGreet(t *testing.T) {
	m := newMon(t)
	m.start()
	address, _, _ := strings.Cut(strings.TrimPrefix(m.cfg.MonHost, "[v2:"), "]")
	greet := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return rados.Greet(ctx, address)
	}
	until := time.Now().Add(time.Minute)
	for err := greet(time.Second); err != nil; err = greet(time.Second) {
		if time.Now().After(until) {
			t.Fatalf("the mon does not greet: %v", err)
		}
	}
	halt(t, m.proc.Process.Pid)
	if err := greet(200 * time.Millisecond); !errors.Is(err, rados.ErrNoAnswer) || !strings.Contains(err.Error(), "greeting") {
		t.Errorf("of one that is stopped: %v", err)
	}
	if err := m.proc.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = m.proc.Wait()
	if err := greet(10 * time.Second); !errors.Is(err, rados.ErrNoAnswer) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("of one that is gone: %v", err)
	}
}

func TestGreet_somethingElse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if conn, err := l.Accept(); err == nil {
			defer conn.Close()
			fmt.Fprint(conn, "220 mail\r\n")
		}
	}()
	if err := rados.Greet(t.Context(), l.Addr().String()); err == nil || !strings.Contains(err.Error(), "is not a daemon of Ceph") {
		t.Error(err)
	}
}
