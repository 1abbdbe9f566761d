// Package relay passes calls of 'ceph orch' from the ceph-mgr daemons of this host on to the
// servers, with the identity of the host. It decides nothing. Each mgr has a Unix socket of its own
// in its run directory, which root alone may use.
package relay

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

const (
	// lookEvery is how often the sockets are looked at: a boot, or a person, may have removed a
	// directory.
	lookEvery = 2 * time.Second
	// readTimeout bounds how long a caller may take to send a call.
	readTimeout = 3 * time.Second
)

// Relay serves the sockets.
type Relay struct {
	// REST reaches the servers. Without it nothing is served.
	REST *rest.Config
	// Daemons are those of this host, and RunDir is the run directory of one.
	Daemons func() []*api.Daemon
	RunDir  func(types.NamespacedName) string
	Log     *slog.Logger

	served map[string]*socket // by run directory; Run's alone
}

// Run serves until ctx ends.
func (r *Relay) Run(ctx context.Context) {
	if r.REST == nil {
		return
	}
	r.served = map[string]*socket{}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := r.keep(); err != nil {
			r.Log.Warn("cannot serve 'ceph orch' on this host; retrying", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	for _, s := range r.served {
		s.close()
	}
}

// wanted are the clusters that mgrs of this host call for, by the run directories of these.
func (r *Relay) wanted() map[string]types.NamespacedName {
	all := map[string]types.NamespacedName{}
	for _, d := range r.Daemons() {
		if d.Spec.Parameters[api.ParameterOrch] != "" && d.DeletionTimestamp == nil {
			dir := r.RunDir(types.NamespacedName{Namespace: d.Namespace, Name: d.Name})
			all[dir] = types.NamespacedName{Namespace: d.Namespace, Name: d.Spec.Cluster}
		}
	}
	return all
}

// keep has exactly the wanted sockets served.
func (r *Relay) keep() error {
	wanted := r.wanted()
	for dir, s := range r.served {
		if wanted[dir] != s.cluster || !s.there() {
			s.close()
			delete(r.served, dir)
		}
	}
	var failed error
	for dir, cluster := range wanted {
		if r.served[dir] != nil {
			continue
		}
		if _, err := os.Stat(dir); err != nil {
			continue // it is made with the process; it is looked for again
		}
		s, err := r.open(filepath.Join(dir, wire.SocketName), cluster)
		if err != nil {
			failed = err
			continue
		}
		r.served[dir] = s
	}
	return failed
}

// socket is one that is served.
type socket struct {
	path    string
	cluster types.NamespacedName
	info    os.FileInfo
	server  *http.Server
}

// open begins to serve a socket. What lies at its path is of an earlier agent.
func (r *Relay) open(path string, cluster types.NamespacedName) (*socket, error) {
	handler, err := newHandler(r.REST, cluster)
	if err != nil {
		return nil, fmt.Errorf("while serving %s: %w", path, err)
	}
	if err := os.RemoveAll(path); err != nil {
		return nil, fmt.Errorf("while serving %s: %w", path, err)
	}
	listener, err := listen(path)
	if err != nil {
		return nil, fmt.Errorf("while serving %s: %w", path, err)
	}
	s := &socket{path: path, cluster: cluster, server: &http.Server{
		Handler: handler, ReadTimeout: readTimeout, ErrorLog: slog.NewLogLogger(r.Log.Handler(), slog.LevelDebug),
	}}
	if s.info, err = os.Lstat(path); err != nil {
		listener.Close()
		return nil, fmt.Errorf("while serving %s: %w", path, err)
	}
	go func() { _ = s.server.Serve(listener) }() // it ends with close
	return s, nil
}

// listen listens on a socket that others than root cannot use at any moment: it is made in a
// directory that only root enters.
func listen(path string) (net.Listener, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".orch-") // mode 0700
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	if err = os.Chmod(made, 0o600); err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		listener.Close()
		return nil, err
	}
	return listener, nil
}

// there says whether the path still leads to the socket that is served.
func (s *socket) there() bool {
	info, err := os.Lstat(s.path)
	return err == nil && os.SameFile(info, s.info)
}

func (s *socket) close() {
	if s.there() {
		_ = os.Remove(s.path)
	}
	_ = s.server.Close()
}

// methodOf is the method that a request calls, without the slash.
func methodOf(r *http.Request) (string, bool) {
	method := strings.TrimPrefix(r.URL.Path, "/")
	return method, r.Method == http.MethodPost && method != "" && !strings.Contains(method, "/")
}
