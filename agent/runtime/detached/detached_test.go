package detached

import (
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/runtimetest"
)

func open(t *testing.T, dir string) *Runtime {
	t.Helper()
	r, err := New(Config{
		Dir: dir + "/runtime", Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		BackOff: BackOff{First: time.Millisecond, Min: 50 * time.Millisecond, Max: 200 * time.Millisecond, Reset: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestConformance(t *testing.T) {
	runtimetest.Run(t, runtimetest.Harness{Open: func(t *testing.T, dir string) runtime.Runtime { return open(t, dir) }})
}
