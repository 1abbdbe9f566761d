package cli

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestRunTool_signals: a command is told of signals and ends by them, so that the key is removed; the exit code is a shell's.
func TestRunTool_signals(t *testing.T) {
	tests := []struct {
		name   string
		script string
		signal os.Signal
		code   int
	}{
		{"the terminal is gone", "exec sleep 60", syscall.SIGHUP, 128 + int(syscall.SIGHUP)},
		{"an interactive shell ignores SIGTERM", "trap '' TERM; exec sleep 60", syscall.SIGTERM, 128 + int(syscall.SIGHUP)},
		{"the command's own code", "exit 7", nil, 7},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := &globals{streams: streams{in: nil, err: io.Discard}}
			signals := make(chan os.Signal, 1)
			// The first word of the command says that it has its traps.
			g.out = writerFunc(func(b []byte) (int, error) {
				if tt.signal != nil {
					signals <- tt.signal
				}
				return len(b), nil
			})
			script := tt.script
			if before, last, found := strings.Cut(script, "exec "); found {
				script = before + "echo; exec " + last
			}
			err := g.runTool(t.Context(), t.TempDir(), []string{"/bin/sh", "-c", script}, signals)
			var coded *exitError
			if !errors.As(err, &coded) || coded.code != tt.code {
				t.Errorf("%v, want exit code %d", err, tt.code)
			}
		})
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
