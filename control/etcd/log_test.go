package etcd

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap"
)

// TestLogger_fatal: where etcd would end the process, the goroutine ends and the reason is sent on.
func TestLogger_fatal(t *testing.T) {
	for _, test := range []struct {
		name string
		log  func(*zap.Logger)
		want string
	}{
		{"disk full", func(l *zap.Logger) {
			l.Fatal("failed to save Raft hard state and entries", zap.Error(fmt.Errorf("write: %w", syscall.ENOSPC)))
		}, "its disk is full; free some space"},
		{"other", func(l *zap.Logger) { l.Fatal("failed to open WAL", zap.Error(errors.New("torn"))) }, "etcd cannot continue: failed to open WAL: torn"},
		{"panic", func(l *zap.Logger) { l.Panic("unexpected error during txn") }, "unexpected error during txn"},
	} {
		t.Run(test.name, func(t *testing.T) {
			fatal := make(chan error, 1)
			logger := newLogger(slog.New(slog.DiscardHandler), fatal)
			done := make(chan bool, 1)
			go func() {
				returned := false
				defer func() { done <- returned }()
				test.log(logger)
				returned = true
			}()
			if <-done {
				t.Error("the goroutine went on")
			}
			if err := <-fatal; !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestLogger_levels: warnings are passed on with their fields, everything below at debug level, and what is moot not at all.
func TestLogger_levels(t *testing.T) {
	var text strings.Builder
	logger := newLogger(slog.New(slog.NewTextHandler(&text, nil)), make(chan error, 1))
	logger.Info("step")
	logger.Warn("simple token is not cryptographically signed")
	logger.With(zap.String("a", "b")).Warn("slow disk", zap.Int("ms", 3))
	got := text.String()
	if strings.Count(got, "\n") != 1 || !strings.Contains(got, `level=WARN msg="slow disk" component=etcd`) ||
		!strings.Contains(got, "a=b") || !strings.Contains(got, "ms=3") {
		t.Errorf("got %s", got)
	}
}

// TestLogger_flood: of one message, some are logged, whatever their number; another one is logged all the same.
func TestLogger_flood(t *testing.T) {
	var text strings.Builder
	logger := newLogger(slog.New(slog.NewTextHandler(&text, nil)), make(chan error, 1))
	const many = 1000
	for range many {
		logger.Warn("request stats")
	}
	logger.Error("lost the leader")
	got := text.String()
	if n := strings.Count(got, "request stats"); n < perSecond || n > many/2 {
		t.Errorf("%d of %d are logged", n, many)
	}
	if !strings.Contains(got, "lost the leader") {
		t.Error("an error went down in the flood")
	}
}
