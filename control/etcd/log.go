package etcd

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/holdfast-storage/holdfast/internal/zaplog"
)

// newLogger sends what etcd logs to log: errors and warnings as they are, everything else at debug level, because etcd
// tells each of its steps.
//
// etcd ends the process when it cannot write to its disk. Here it ends the goroutine alone and sends the reason to fatal, so
// that the server can say what happened, release its leadership and stop in order.
func newLogger(log *slog.Logger, fatal chan<- error) *zap.Logger {
	core := &zaplog.Core{Log: log.With("component", "etcd"), Moot: moot}
	return zap.New(zapcore.NewSamplerWithOptions(core, time.Second, perSecond, oneOf), zap.WithFatalHook(fatalHook{fatal}), zap.WithPanicHook(fatalHook{fatal}))
}

// When requests are slow, etcd has two warnings for each, some hundred a second: of one message the first perSecond of a second are
// logged, and then one of oneOf.
const perSecond, oneOf = 5, 100

// moot are messages about what is chosen here, or is told to whom it concerns by other ways.
var moot = map[string]bool{
	// The HTTP side of the client port carries health and metrics alone.
	"Running http and grpc server on single port. This is not recommended for production.": true,
	// Clients prove themselves by certificates, not by tokens.
	"simple token is not cryptographically signed": true,
	// The member that wants to be added is told, and asks again.
	"rejecting member add request; local member has not been connected to majority peers, reconfigure breaks active quorum": true,
	// Errors of serving come by embed.Etcd.Err, too; at the end of a member they are no errors.
	"setting up serving from embedded etcd failed.": true,
	"stopping secure grpc server due to error":      true,
	"stopped secure grpc server due to error":       true,
	// A new member replays how others were refused before it was added, and has no term yet.
	"Validation on configuration change failed": true,
	"Failed to detect schema version":           true,
	"failed to update storage version":          true,
}

type fatalHook struct{ fatal chan<- error }

// OnWrite takes the error out of the entry's fields, reports it and ends the goroutine.
func (h fatalHook) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	err := errors.New(e.Message)
	for _, f := range fields {
		if cause, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			err = fmt.Errorf("%s: %w", e.Message, cause)
		}
	}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		err = fmt.Errorf("etcd cannot write because its disk is full; free some space, then start the server again: %w", err)
	case errors.Is(err, syscall.EIO):
		err = fmt.Errorf("etcd cannot use its disk, which fails; check 'dmesg', repair or replace the disk, then start the "+
			"server again: %w", err)
	case errors.Is(err, syscall.EROFS):
		err = fmt.Errorf("etcd cannot write because its file system is read-only; check 'dmesg' for the cause, run fsck and "+
			"mount it again, then start the server again: %w", err)
	default:
		err = &brokenError{fmt.Errorf("etcd cannot continue: %w", err)}
	}
	select {
	case h.fatal <- err:
	default:
	}
	runtime.Goexit()
}
