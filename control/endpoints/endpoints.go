// Package endpoints reaches the API from a host, as the host's agent, over any of the servers.
//
// The directory of the host has its certificate, the authorities that it trusts and the list of
// servers. Servers keeps one server for all requests, and dials another one when it fails (dial.go).
// The list and the authorities are refreshed from the servers (list.go, trust.go), and the certificate
// is renewed after two thirds of its life (renew.go).
package endpoints

import (
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// ServerName is a name that the certificate of each server is valid for, whatever its address.
const ServerName = "holdfast"

// Names of the files in a host's directory; host.crt and host.key lie beside them.
const (
	pairName    = "host"
	caFile      = "ca.crt"
	serversFile = "servers"
)

// Save writes what a host needs to reach the servers into a directory, which is made if missing. The list of servers is
// written last: a directory without it is not complete.
func Save(dir string, ca []byte, pair *pki.Pair, servers []string) error {
	if err := atomicfile.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(dir, caFile), ca, 0o600); err != nil {
		return err
	}
	if err := pair.Save(dir, pairName); err != nil {
		return err
	}
	return saveServers(dir, servers)
}

// Known are the servers that the host of this directory knows, as IP:port; none where there is no such directory.
func Known(dir string) []string {
	text, err := os.ReadFile(filepath.Join(dir, serversFile))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}

func saveServers(dir string, servers []string) error {
	text := strings.Join(servers, "\n") + "\n"
	return atomicfile.Write(filepath.Join(dir, serversFile), []byte(text), 0o600)
}

// Servers are the servers that a host knows, and the identity that it reaches them with. It is safe for concurrent use.
type Servers struct {
	// Every is how often the servers are asked for the list and whom to believe. It is set before Run. Default: a minute.
	Every time.Duration

	dir       string
	config    *rest.Config
	dialer    *dialer
	transport *pki.Transport
	host      string

	mu    sync.Mutex
	known []string
	pair  *pki.Pair
	roots []*x509.Certificate
}

// Open reads a host's directory. The error wraps fs.ErrNotExist when there is none, or an incomplete one.
func Open(dir string) (*Servers, error) {
	s := &Servers{dir: dir}
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("while reading the identity of this host: %w", err)
	}
	s.dialer = newDialer(s.Addresses)
	s.transport = pki.NewTransport(ServerName, s.dialer.dial)
	// A server of a large fleet would keep for each connection, in 14 KB, which headers it has seen and sent.
	s.transport.HTTP2 = &http.HTTP2Config{MaxEncoderHeaderTableSize: 1, MaxDecoderHeaderTableSize: 1}
	s.transport.Set(s.pair, pki.PoolOf(s.roots))
	s.config = &rest.Config{
		// The name stands for all servers; the dialer chooses one.
		Host:      "https://" + ServerName,
		Transport: s.transport,
		QPS:       50, Burst: 100,
	}
	s.config.Wrap(s.dialer.watch)
	return s, nil
}

func (s *Servers) load() error {
	text, err := os.ReadFile(filepath.Join(s.dir, serversFile))
	if err != nil {
		return err
	}
	if s.known = strings.Fields(string(text)); len(s.known) == 0 {
		return fmt.Errorf("%s names no server", filepath.Join(s.dir, serversFile))
	}
	if s.pair, err = pki.LoadPair(s.dir, pairName); err != nil {
		return err
	}
	if text, err = os.ReadFile(filepath.Join(s.dir, caFile)); err != nil {
		return err
	}
	if s.roots, err = pki.ParseBundle(text); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(s.dir, caFile), err)
	}
	var ok bool
	if s.host, ok = access.HostOf(s.pair.Cert.Subject.CommonName); !ok {
		return fmt.Errorf("the certificate in %s is not a host's, but of %q", s.dir, s.pair.Cert.Subject.CommonName)
	}
	return nil
}

// Exists says whether there is a complete host's directory.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, serversFile))
	return !errors.Is(err, fs.ErrNotExist)
}

// Host is the host's name.
func (s *Servers) Host() string { return s.host }

// Config reaches the API as the host's agent. The caller may change the copy that it gets.
func (s *Servers) Config() *rest.Config { return rest.CopyConfig(s.config) }

// Addresses lists the known servers as IP:port.
func (s *Servers) Addresses() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.known)
}

// Set replaces the list of servers, here and in the file. An empty list is not taken: it would leave the host alone.
func (s *Servers) Set(servers []string) error {
	servers = slices.Sorted(slices.Values(servers))
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(servers) == 0 || slices.Equal(servers, s.known) {
		return nil
	}
	if err := saveServers(s.dir, servers); err != nil {
		return err
	}
	s.known = servers
	return nil
}

// Prefer has the next connection go to a server, if it can be reached. A server's own host prefers it.
func (s *Servers) Prefer(server string) {
	s.dialer.mu.Lock()
	defer s.dialer.mu.Unlock()
	s.dialer.good, s.dialer.avoid = server, ""
}

// Avoid has a server be the last one that is tried, until it is preferred: its port is open, and it does not serve yet.
func (s *Servers) Avoid(server string) {
	s.dialer.mu.Lock()
	defer s.dialer.mu.Unlock()
	s.dialer.avoid = server
}

// Key is the private key of the host whose directory this is. It is made if missing.
func Key(dir string) (*ecdsa.PrivateKey, error) { return pki.LoadOrMakeKey(dir, pairName) }
