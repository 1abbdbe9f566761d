package doctor_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/doctor"
)

// TestLook_silent: servers that take connections and say nothing, as those do whose machine hangs, are waited for all at once, and are
// told of in the order in which they are known.
func TestLook_silent(t *testing.T) {
	t.Parallel()
	var servers []string
	for range 5 {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		servers = append(servers, l.Addr().String())
	}
	const nowhere = "255.255.255.255:7440" // no machine has that address
	servers = append(servers, nowhere)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "host"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "host", "servers"), []byte(strings.Join(servers, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	const timeout = 2 * time.Second
	config := &rest.Config{Host: "https://" + servers[0], Timeout: timeout, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	facts := doctor.Look(ctx, doctor.Source{Config: config, Client: c, DataDir: dir, Timeout: timeout}, nil)
	if took := time.Since(began); took >= 5*timeout { // one after the other
		t.Errorf("it took %s", took)
	}
	var told []string
	for _, s := range facts.Servers {
		told = append(told, s.Name)
		if s.Err == nil {
			t.Errorf("server %s is said to be well", s.Name)
		}
		if here := s.Name != nowhere; s.Own != here || s.Reached != here {
			t.Errorf("server %s: of this machine %t, reached %t, want %t", s.Name, s.Own, s.Reached, here)
		}
	}
	if facts.Unreachable == nil || strings.Join(told, " ") != strings.Join(servers, " ") {
		t.Errorf("unreachable: %v; told of %v, want %v", facts.Unreachable, told, servers)
	}
}
