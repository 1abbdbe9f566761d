package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/platform/store"
)

// config reaches the real API server that all tests share.
var config *rest.Config

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // controller-runtime's: it is about its own steps
	code, err := withServer(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withServer(run func() int) (int, error) {
	dir, err := os.MkdirTemp("", "holdfast-orch-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	var ports []int
	var listeners []net.Listener
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		listeners, ports = append(listeners, l), append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	for _, l := range listeners {
		l.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	server, err := control.Start(ctx, control.Config{
		DataDir: dir, Name: "s1", Address: "127.0.0.1", Init: true,
		APIPort: ports[0], EtcdPeerPort: ports[1], EtcdClientPort: ports[2],
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return 0, err
	}
	defer server.Stop()
	config = server.Config()
	if err := store.Warm(ctx, config); err != nil {
		return 0, err
	}
	return run(), nil
}

// newClient is a client of the API.
func newClient(config *rest.Config) (client.Client, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, api.AddToScheme} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return client.New(config, client.Options{Scheme: s})
}
