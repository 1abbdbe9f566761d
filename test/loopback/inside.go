package loopback

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control"
)

// Inside starts one server in this process, without an engine or an agent, and returns how to reach it.
func Inside(t *testing.T) *rest.Config {
	t.Helper()
	return ServerInside(t, "s1").Config()
}

// ServerInside starts one server of a name in this process, without an engine or an agent.
func ServerInside(t *testing.T, name string) *control.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for {
		s, err := start(ctx, name, memoryDir(t))
		if errors.Is(err, syscall.EADDRINUSE) && ctx.Err() == nil {
			continue // a program beside this one was quicker
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Stop)
		return s
	}
}

func start(ctx context.Context, name, dir string) (*control.Server, error) {
	ports, err := FreePorts(3)
	if err != nil {
		return nil, err
	}
	return control.Start(ctx, control.Config{
		DataDir: dir, Name: name, Address: "127.0.0.1", Init: true,
		APIPort: ports[0], EtcdPeerPort: ports[1], EtcdClientPort: ports[2],
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
}

// memoryDir is a directory in memory, where the machine has one: what is tested is the order of writes, and waiting for a disk
// to flush each of them would take most of the time.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "holdfast-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // what is left is found by its name
	return dir
}
