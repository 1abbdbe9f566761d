package control_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"

	"github.com/holdfast-storage/holdfast/internal/zaplog"
)

// safeBuffer may be written by several goroutines.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestClients_apiMachinery: what the API machinery's client of etcd logs comes as our lines, and not as JSON. It makes its logger
// before anything here runs.
func TestClients_apiMachinery(t *testing.T) {
	_, running := sharedServer(t)
	pki := filepath.Join(running.DataDir, "pki")
	stop := make(chan struct{})
	defer close(stop)
	var text safeBuffer
	zaplog.Clients(slog.New(slog.NewTextHandler(&text, nil)))
	defer zaplog.Clients(running.Log)
	check, err := factory.CreateHealthCheck(storagebackend.Config{
		Transport: storagebackend.TransportConfig{
			ServerList: []string{"https://127.0.0.1:" + strconv.Itoa(running.EtcdClientPort)},
			CertFile:   filepath.Join(pki, "etcd.crt"), KeyFile: filepath.Join(pki, "etcd.key"), TrustedCAFile: filepath.Join(pki, "ca.crt"),
		},
		HealthcheckTimeout: time.Nanosecond,
	}, stop)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		_ = check() // It is too late at once.
		if got := text.String(); !strings.Contains(got, `level=WARN msg="retrying of unary invoker failed"`) {
			return fmt.Errorf("it logs %q", got)
		}
		return nil
	})
}
