package rados_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

type command map[string]any

func dial(t *testing.T, cfg rados.Config) rados.Client {
	t.Helper()
	c := rados.Dial(cfg)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// endsInTime has something done that is to end at a deadline of a moment, and not by what librados makes of it (rados_mon_op_timeout is 30 s).
func endsInTime(t *testing.T, do func()) {
	t.Helper()
	begun := time.Now()
	do()
	if d := time.Since(begun); d > 20*time.Second {
		t.Errorf("a call of a moment took %v", d)
	}
}

func fsid(ctx context.Context, c rados.Client) (string, error) {
	out, err := c.Mon(ctx, command{"prefix": "fsid", "format": "json"}, nil)
	if err != nil {
		return "", err
	}
	var answer struct{ FSID string }
	return answer.FSID, json.Unmarshal(out, &answer)
}

func TestClient_waitsForTheQuorum(t *testing.T) {
	m := newMon(t)
	c := dial(t, m.cfg)
	endsInTime(t, func() {
		if _, err := fsid(within(t, 200*time.Millisecond), c); !errors.Is(err, rados.ErrNoAnswer) {
			t.Errorf("without a mon: got %v, want ErrNoAnswer", err)
		}
	})
	m.start()
	if got, err := fsid(within(t, 30*time.Second), c); err != nil || got != testFSID {
		t.Fatalf("with a mon: got %q, %v", got, err)
	}
}

func TestClient_passesInputAndErrors(t *testing.T) {
	m := newMon(t)
	m.start()
	c := dial(t, m.cfg)
	ctx := within(t, 30*time.Second)
	_, err := c.Mon(ctx, command{"prefix": "config-key set", "key": "a/b"}, []byte("line 1\nline 2\x00"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := c.Mon(ctx, command{"prefix": "config-key get", "key": "a/b"}, nil); err != nil || string(out) != "line 1\nline 2\x00" {
		t.Errorf("got %q, %v", out, err)
	}
	_, err = c.Mon(ctx, command{"prefix": "auth get", "entity": "client.none"}, nil)
	var refused *rados.CommandError
	if !errors.As(err, &refused) || refused.Errno != syscall.ENOENT || refused.Prefix != "auth get" || refused.Status == "" {
		t.Errorf("got %#v, want ENOENT with a status", err)
	}
	if !errors.Is(err, syscall.ENOENT) {
		t.Error("errors.Is does not see the errno")
	}
	if _, err = c.Mon(ctx, command{"prefix": "no such command"}, nil); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("got %v, want EINVAL", err)
	}
}

func TestClient_refusedKey(t *testing.T) {
	m := newMon(t)
	m.start()
	cfg := m.cfg
	cfg.Key = m.run("ceph-authtool", "--gen-print-key")
	c, ctx := dial(t, cfg), within(t, 30*time.Second)
	_, err := fsid(within(t, 2*time.Second), c)
	for ctx.Err() == nil && !strings.Contains(fmt.Sprint(err), "refuse the key of client.admin") { // the mon is not there yet
		_, err = fsid(within(t, 2*time.Second), c)
	}
	if !errors.Is(err, rados.ErrNoAnswer) || ctx.Err() != nil {
		t.Errorf("got %v", err)
	}
	if strings.Contains(fmt.Sprint(err), cfg.Key) {
		t.Error("the error tells the key")
	}
}

func TestClient_manyCallsAtOnce(t *testing.T) {
	m := newMon(t)
	m.start()
	c := dial(t, m.cfg)
	ctx := within(t, 30*time.Second)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			key, value := fmt.Sprintf("k%d", i), []byte(strconv.Itoa(i))
			if _, err := c.Mon(ctx, command{"prefix": "config-key set", "key": key}, value); err != nil {
				t.Error(err)
			}
			if out, err := c.Mon(ctx, command{"prefix": "config-key get", "key": key}, nil); err != nil || string(out) != string(value) {
				t.Errorf("%s: got %q, %v", key, out, err)
			}
		})
	}
	wg.Wait()
}

// A mon that is stopped swallows commands. Calls end at their deadline, and the same connection works again afterwards.
func TestClient_deadline(t *testing.T) {
	m := newMon(t)
	m.start()
	c := dial(t, m.cfg)
	if _, err := fsid(within(t, 30*time.Second), c); err != nil {
		t.Fatal(err)
	}
	halt(t, m.proc.Process.Pid)
	endsInTime(t, func() {
		if _, err := fsid(within(t, 300*time.Millisecond), c); !errors.Is(err, rados.ErrNoAnswer) {
			t.Errorf("got %v, want ErrNoAnswer", err)
		}
	})
	m.signal(syscall.SIGCONT)
	if got, err := fsid(within(t, 30*time.Second), c); err != nil || got != testFSID {
		t.Errorf("after the pause: got %q, %v", got, err)
	}
}

// The child is killed, as a crash in librados would end it: the next call starts another.
func TestClient_childKilled(t *testing.T) {
	m := newMon(t)
	m.start()
	c := dial(t, m.cfg)
	ctx := within(t, 30*time.Second)
	if _, err := fsid(ctx, c); err != nil {
		t.Fatal(err)
	}
	first := childPID(t)
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// A call may still be given to the dying child; the one after it is not.
	if _, err := fsid(ctx, c); err != nil {
		if _, err = fsid(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	if second := childPID(t); second == first {
		t.Error("the same child answers")
	}
}

// A child that does not move at all is killed, and another one takes over.
func TestClient_childHung(t *testing.T) {
	m := newMon(t)
	m.start()
	c := dial(t, m.cfg)
	ctx := within(t, 30*time.Second)
	if _, err := fsid(ctx, c); err != nil {
		t.Fatal(err)
	}
	halt(t, childPID(t))
	if _, err := fsid(within(t, 100*time.Millisecond), c); !errors.Is(err, rados.ErrNoAnswer) {
		t.Errorf("got %v, want ErrNoAnswer", err)
	}
	for {
		if got, err := fsid(within(t, 5*time.Second), c); err == nil && got == testFSID {
			return
		}
		if ctx.Err() != nil {
			t.Fatal("no new child took over")
		}
	}
}

func TestClient_closeEndsTheChild(t *testing.T) {
	c := rados.Dial(rados.Config{FSID: testFSID, MonHost: "[v2:127.0.0.1:1]", Entity: "client.admin", Key: "AQ=="})
	pid := childPID(t)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the child is still there: %v", err)
	}
	if _, err := fsid(t.Context(), c); !errors.Is(err, rados.ErrNoAnswer) {
		t.Errorf("after Close: got %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// childPID waits for the one child of this process that serves librados, which has no arguments yet for a moment after exec(2), and makes sure
// that the key is not among its arguments or its environment.
func childPID(t *testing.T) int {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if pid := findChild(t); pid != 0 {
			return pid
		}
		if time.Now().After(end) {
			t.Fatal("there is no child")
		}
	}
}

// findChild finds the child by its argv[0]; 0 where there is none.
func findChild(t *testing.T) int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, stat := range stats {
		dir := filepath.Dir(stat)
		text, err := os.ReadFile(stat)
		if err != nil || !strings.Contains(string(text), fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())) {
			continue
		}
		args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if string(args) != "holdfast-rados\x00" {
			continue
		}
		if env, _ := os.ReadFile(filepath.Join(dir, "environ")); strings.Contains(string(env), "AQ") {
			t.Error("the child's environment looks as if it had a key in it")
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	return 0
}
