package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/agent/relay"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/server"
	"github.com/holdfast-storage/holdfast/orch/wire"
	"github.com/holdfast-storage/holdfast/orch/write"
	"github.com/holdfast-storage/holdfast/test/orch"
)

// The cluster that is made up.
const (
	fleetHosts = 1000
	fleetDisks = 24
	fleetOSDs  = 10 // of a host
)

// fleet makes the cluster up. All OSDs of a host lie on its first disks.
func fleet(hosts int) *engine.View {
	v := orch.NewView(hosts, fleetDisks)
	of := map[string]int{}
	v.Daemons = slices.DeleteFunc(v.Daemons, func(d api.Daemon) bool {
		if d.Spec.Type != "ceph-osd" {
			return false
		}
		of[d.Spec.Host]++
		return of[d.Spec.Host] > fleetOSDs
	})
	store(v)
	return v
}

// store gives the objects what they have in the leader's caches.
func store(v *engine.View) {
	for i := range v.Hosts {
		v.Hosts[i].UID, v.Hosts[i].ResourceVersion = types.UID("host "+v.Hosts[i].Name), "1"
	}
	for i := range v.Daemons {
		v.Daemons[i].UID, v.Daemons[i].ResourceVersion = types.UID("daemon "+v.Daemons[i].Name), "1"
	}
	v.AddNeighbours(nil, func(map[string]bool) []*api.Daemon { return nil }, nil)
}

// hanging is what the leader asks of Ceph: nothing answers.
type hanging struct{ write.Asked }

// Suppose implements write.Asked.
func (hanging) Suppose(
	ctx context.Context, _ api.StorageType, _ types.NamespacedName, _ func(*engine.View),
) (*engine.View, *engine.Plan, error) {
	<-ctx.Done()
	return nil, nil, ctx.Err()
}

// socket is the agent's socket, with the real relay and the real server behind it.
type socket struct {
	path string
	end  func()
}

// serve has the relay and the server answer at a socket in dir.
func serve(v *engine.View, dir string, http2 bool) (*socket, error) {
	log := slog.New(slog.DiscardHandler)
	clients := &server.Clients{InNameOf: func(string, []string) (client.Client, error) { return nil, nil }}
	leader := httptest.NewUnstartedServer(server.New(orch.Store{Cluster: v}, hanging{}, clients, "h1", log))
	config := &rest.Config{}
	if leader.EnableHTTP2 = http2; http2 {
		leader.StartTLS()
		config.Insecure = true
	} else {
		leader.Start()
	}
	config.Host = leader.URL
	mgr := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: orch.Name.Namespace, Name: "ceph-mgr-x"}}
	mgr.Spec.Cluster, mgr.Spec.Parameters = orch.Name.Name, map[string]string{api.ParameterOrch: "born"}
	relays := relay.Relay{
		REST: config, Log: log, Daemons: func() []*api.Daemon { return []*api.Daemon{mgr} },
		RunDir: func(types.NamespacedName) string { return dir },
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); relays.Run(ctx) }()
	s := &socket{filepath.Join(dir, wire.SocketName), func() { stop(); <-done; leader.Close() }}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(s.path); err == nil {
			return s, nil
		} else if time.Now().After(end) {
			s.end()
			return nil, fmt.Errorf("while waiting for the relay: %w", err)
		}
	}
}

// call calls as the module does, over a connection of its own, and returns how long the whole
// answer takes and how many bytes it has.
func (s *socket) call(ctx context.Context, method, args string) (took time.Duration, size int64, err error) {
	c := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", s.path)
		},
	}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/"+method, strings.NewReader(args))
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	response, err := c.Do(r)
	if err != nil {
		return 0, 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		return 0, 0, fmt.Errorf("%s: %s: %s", method, response.Status, text)
	}
	size, err = io.Copy(io.Discard, response.Body)
	return time.Since(start), size, err
}
