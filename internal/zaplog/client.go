package zaplog

import (
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"

	"go.etcd.io/etcd/client/pkg/v3/logutil"
	"go.uber.org/zap"
	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"
)

// Clients of etcd that are given no logger make one of a configuration in package logutil, and write JSON to the standard error. The
// API machinery is such a client, and makes its logger when its package is initialized. Packages are initialized in the order of their
// import paths, as soon as what they import is (The Go Programming Language Specification, Package initialization): this one imports
// nothing of the API machinery, and comes before it.
func init() {
	if err := zap.RegisterEncoder(encoding, func(zapcore.EncoderConfig) (zapcore.Encoder, error) { return newEncoder(), nil }); err != nil {
		return // Another one has the name: the lines stay JSON.
	}
	logutil.DefaultZapLoggerConfig.Encoding = encoding
	logutil.DefaultZapLoggerConfig.OutputPaths = nil
}

const encoding = "holdfast-slog"

// client is where clients of etcd log to.
var client atomic.Pointer[slog.Logger]

// Clients sends what clients of etcd log to log. They have one logger in a process, so the last call counts.
func Clients(log *slog.Logger) { client.Store(log) }

// encoder hands each entry on, and encodes nothing.
type encoder struct{ *zapcore.MapObjectEncoder }

func newEncoder() *encoder { return &encoder{zapcore.NewMapObjectEncoder()} }

var buffers = buffer.NewPool()

// Clone implements zapcore.Encoder.
func (e *encoder) Clone() zapcore.Encoder {
	c := newEncoder()
	maps.Copy(c.Fields, e.Fields)
	return c
}

// EncodeEntry implements zapcore.Encoder.
func (e *encoder) EncodeEntry(entry zapcore.Entry, fields []zapcore.Field) (*buffer.Buffer, error) {
	all := zapcore.NewMapObjectEncoder()
	maps.Copy(all.Fields, e.Fields)
	for _, f := range fields {
		f.AddTo(all)
	}
	if log := client.Load(); log != nil {
		write(log, clientLevel(entry.Level, all.Fields), entry.Message, all.Fields)
	}
	return buffers.Get(), nil
}

// clientLevel: that whoever asked has lost interest is no news.
func clientLevel(level zapcore.Level, fields map[string]any) slog.Level {
	if text, ok := fields["error"].(string); ok && strings.Contains(text, "context canceled") {
		return slog.LevelDebug
	}
	return slogLevel(level)
}
