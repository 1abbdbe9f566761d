package control

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/apiserver"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/etcd"
	"github.com/holdfast-storage/holdfast/control/pki"
)

// identity is what a server proves itself with, and what it hands out to others. Its certificates are made anew while the
// server runs, long before they end. It is safe for concurrent use.
type identity struct {
	dir           dataDir
	settings      *settings
	encryptionKey [32]byte
	// credentials are those of the API server.
	credentials *apiserver.Credentials
	// loopback is the server's own access to its API: all rights, kept in memory alone.
	loopback *pki.Transport

	mu        sync.Mutex
	authority *pki.Authority
	trusted   []*x509.Certificate
	// cross is the authority's certificate, signed by the one before it; nil where there was none.
	cross []*x509.Certificate
	certs map[string]*x509.Certificate
	own   *pki.Pair
	// adminEndpoint is the server that the administrator's kubeconfig names.
	adminEndpoint string
}

// openIdentity reads the authority, and makes the certificates that this server needs.
func (d dataDir) openIdentity(s *settings) (*identity, error) {
	id := &identity{
		dir: d, settings: s, credentials: apiserver.NewCredentials(),
		loopback: pki.NewTransport(endpoints.ServerName, nil), certs: map[string]*x509.Certificate{},
		adminEndpoint: s.endpoint(),
	}
	var err error
	if id.encryptionKey, err = d.loadEncryptionKey(); err != nil {
		return nil, fmt.Errorf("while reading the encryption key: %w", err)
	}
	return id, id.load(time.Now())
}

// load reads the authority and whom to trust, and makes the certificates that follow from it.
func (id *identity) load(now time.Time) error {
	authority, err := id.dir.openAuthority()
	if err != nil {
		return fmt.Errorf("while reading the authority: %w", err)
	}
	trusted, err := id.dir.trusted(authority)
	if err != nil {
		return err
	}
	cross, err := id.dir.cross(authority)
	if err != nil {
		return err
	}
	id.mu.Lock()
	id.authority, id.trusted, id.cross, id.own = authority.Signing(id.settings.lifetime), trusted, cross, nil
	id.mu.Unlock()
	return id.renew(now)
}

// signer is the authority, and trusted are those that are believed. Nobody may write to them.
func (id *identity) signer() *pki.Authority {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.authority
}

func (id *identity) trust() []*x509.Certificate {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.trusted
}

// renew makes each certificate that is due or missing, and has all of them used. What is good is kept.
func (id *identity) renew(now time.Time) error {
	id.mu.Lock()
	defer id.mu.Unlock()
	serving, err := id.ensure("server", pki.Leaf{
		User: "holdfast:serving", Server: true,
		DNS: []string{endpoints.ServerName, "localhost", id.settings.Name}, IPs: id.settings.ips(),
	}, now)
	if err != nil {
		return err
	}
	// etcd reads the file at each handshake.
	member := pki.Leaf{User: etcd.User, Server: true, DNS: []string{"localhost", id.settings.Name}, IPs: id.settings.ips()}
	pair, err := id.ensure("etcd", member, now)
	if err != nil {
		return err
	}
	if err := pki.SaveChain(id.dir.pki(), "etcd", pair.Cert, id.cross); err != nil {
		return err
	}
	if id.own == nil || !id.authority.Good(id.own.Cert, now) {
		own, err := id.authority.NewPair(pki.Leaf{User: access.ServerUser(id.settings.Name), Groups: []string{access.GroupMasters}}, now)
		if err != nil {
			return err
		}
		id.own, id.certs["loopback"] = own, own.Cert
		id.loopback.Set(own, pki.PoolOf(id.trusted))
	}
	return id.credentials.Set(serving, id.cross, id.trusted)
}

func (id *identity) ensure(name string, leaf pki.Leaf, now time.Time) (*pki.Pair, error) {
	pair, err := id.authority.Ensure(id.dir.pki(), name, leaf, now)
	if err != nil {
		return nil, fmt.Errorf("while making the certificate %s: %w", name, err)
	}
	id.certs[name] = pair.Cert
	return pair, nil
}

// writeAdmin writes the administrator's kubeconfig, unless the one that is there is good. It reaches a server by its address,
// so that it can be copied to another machine; an empty one means the last one.
func (id *identity) writeAdmin(endpoint string, now time.Time) error {
	id.mu.Lock()
	defer id.mu.Unlock()
	if endpoint != "" {
		id.adminEndpoint = endpoint
	}
	admin, err := id.ensure("admin", pki.Leaf{User: "holdfast:admin", Groups: []string{access.GroupAdmins}}, now)
	if err != nil {
		return err
	}
	server := "https://" + id.adminEndpoint
	return pki.WriteKubeconfig(id.dir.adminKubeconfig(), server, endpoints.ServerName, pki.EncodeBundle(id.trusted), admin)
}

// namesAdmin says whether the administrator's kubeconfig names a good server.
func (id *identity) namesAdmin(good func(endpoint string) bool) bool {
	id.mu.Lock()
	defer id.mu.Unlock()
	return good(id.adminEndpoint)
}

// Pauses between two looks at the certificates: a clock may be set, and a disk may be full for a while.
const (
	minLook = 200 * time.Millisecond
	maxLook = 10 * time.Minute
)

// keep renews the certificates in time, until ctx ends.
func (id *identity) keep(ctx context.Context, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(max(time.Until(id.renewAt()), minLook), maxLook)):
		}
		now := time.Now()
		if !now.After(id.renewAt()) {
			continue
		}
		if err := id.renewAll(now); err != nil {
			log.Error("the certificates of this server could not be renewed; trying again", "end", id.ends(), "error", err)
			continue
		}
		log.Info("certificates of this server were renewed", "end", id.ends())
	}
}

// renewAll renews the administrator's certificate, too. The first one is made when all else is.
func (id *identity) renewAll(now time.Time) error {
	if err := id.renew(now); err != nil {
		return err
	}
	if _, err := os.Stat(id.dir.adminKubeconfig()); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return id.writeAdmin("", now)
}

// renewAt is when the next certificate is due.
func (id *identity) renewAt() time.Time {
	return id.earliest(pki.RenewAt)
}

// ends is when the first certificate ends.
func (id *identity) ends() time.Time {
	return id.earliest(func(c *x509.Certificate) time.Time { return c.NotAfter })
}

func (id *identity) earliest(of func(*x509.Certificate) time.Time) (first time.Time) {
	id.mu.Lock()
	defer id.mu.Unlock()
	for _, cert := range id.certs {
		if at := of(cert); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// config reaches the server's own API with all rights. There is no limit to the rate of requests: the server is its own
// client's keeper.
func (id *identity) config() *rest.Config {
	return &rest.Config{
		Host:      "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(id.settings.APIPort)),
		Transport: id.loopback, QPS: -1,
	}
}

// Certificates says when each certificate of this server and its host ends, by its name. The authority's is "authority".
func (s *Server) Certificates() map[string]time.Time {
	ends := map[string]time.Time{"host": s.host.list().Certificate().Cert.NotAfter}
	s.identity.mu.Lock()
	defer s.identity.mu.Unlock()
	ends["authority"] = s.identity.authority.Certificate().NotAfter
	for name, cert := range s.identity.certs {
		ends[name] = cert.NotAfter
	}
	return ends
}
