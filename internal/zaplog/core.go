// Package zaplog sends what libraries log by zap to slog: that is what etcd does, its server and its client.
package zaplog

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"go.uber.org/zap/zapcore"
)

// Core is a zapcore.Core that hands on errors and warnings as they are, and everything else at debug level, because etcd tells each
// of its steps.
type Core struct {
	Log *slog.Logger
	// Moot are messages that are not handed on.
	Moot map[string]bool

	fields []zapcore.Field
}

// Enabled implements zapcore.LevelEnabler.
func (c *Core) Enabled(level zapcore.Level) bool {
	return c.Log.Enabled(context.Background(), slogLevel(level))
}

// With implements zapcore.Core.
func (c *Core) With(fields []zapcore.Field) zapcore.Core {
	return &Core{Log: c.Log, Moot: c.Moot, fields: append(c.fields[:len(c.fields):len(c.fields)], fields...)}
}

// Check implements zapcore.Core.
func (c *Core) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) && !c.Moot[e.Message] {
		return checked.AddCore(e, c)
	}
	return checked
}

// Write implements zapcore.Core.
func (c *Core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	encoder := zapcore.NewMapObjectEncoder()
	for _, f := range append(c.fields[:len(c.fields):len(c.fields)], fields...) {
		f.AddTo(encoder)
	}
	write(c.Log, slogLevel(e.Level), e.Message, encoder.Fields)
	return nil
}

// Sync implements zapcore.Core.
func (c *Core) Sync() error { return nil }

func write(log *slog.Logger, level slog.Level, message string, fields map[string]any) {
	attrs := make([]any, 0, 2*len(fields))
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		attrs = append(attrs, key, fields[key])
	}
	log.Log(context.Background(), level, message, attrs...)
}

func slogLevel(level zapcore.Level) slog.Level {
	switch {
	case level >= zapcore.ErrorLevel:
		return slog.LevelError
	case level == zapcore.WarnLevel:
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}
