package control

import (
	"context"
	"log/slog"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/holdfast-storage/holdfast/internal/zaplog"
)

var quietOnce sync.Once

// quietLibraries sends what the Kubernetes libraries log to log. They tell each of their steps; of that, warnings and errors
// are passed on, and the rest at debug level. The libraries have one logger in a process, so the first call counts.
func quietLibraries(log *slog.Logger) {
	quietOnce.Do(func() {
		handler := &quietHandler{log.With("component", "apiserver").Handler()}
		klog.SetLogger(logr.FromSlogHandler(handler))
		zaplog.Clients(log.With("component", "etcd-client"))
	})
}

// quietHandler lowers everything below a warning to debug.
type quietHandler struct{ slog.Handler }

func (h *quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, quietLevel(level))
}

func (h *quietHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = quietLevel(r.Level)
	return h.Handler.Handle(ctx, r)
}

func (h *quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &quietHandler{h.Handler.WithAttrs(attrs)}
}

func (h *quietHandler) WithGroup(name string) slog.Handler {
	return &quietHandler{h.Handler.WithGroup(name)}
}

func quietLevel(level slog.Level) slog.Level {
	if level < slog.LevelWarn {
		return slog.LevelDebug
	}
	return level
}
