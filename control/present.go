package control

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/etcd"
	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// joinTimeout bounds how long joining may take. A server that joins waits for others that join at the same time.
const joinTimeout = 3 * time.Minute

// join gets what all servers share, and is added to etcd.
func (s *Server) join(ctx context.Context, text string) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	token, err := join.Parse(text)
	if err != nil {
		return err
	}
	key, err := s.dir.hostKey()
	if err != nil {
		return err
	}
	joiner := &join.Joiner{
		Token: token, Role: join.RoleServer, Name: s.settings.Name, Key: key,
		PeerURL: etcd.PeerURL(s.settings.Address, s.settings.EtcdPeerPort), Now: time.Now, Log: s.log,
	}
	joined, err := joiner.Join(ctx)
	if err != nil {
		return err
	}
	share := joined.Share
	if share == nil || len(share.EncryptionKey) != 32 {
		return errors.New("joined, but the server did not send the shared keys")
	}
	authority, err := pki.ParseAuthority(share.CA, share.CAKey)
	if err != nil {
		return fmt.Errorf("while reading the authority that the server sent: %w", err)
	}
	trusted, err := pki.ParseBundle(joined.CA)
	if err != nil {
		return fmt.Errorf("while reading the authorities that the server sent: %w", err)
	}
	s.settings.Seat, s.settings.Generation = seatNone, share.Generation
	if err := s.dir.saveShare(authority, trusted, [32]byte(share.EncryptionKey)); err != nil {
		return err
	}
	return endpoints.Save(s.dir.host(), joined.CA, joined.Host, joined.Servers)
}

func (d dataDir) saveShare(authority *pki.Authority, trusted []*x509.Certificate, key [32]byte) error {
	if err := atomicfile.MkdirAll(d.pki(), 0o700); err != nil {
		return err
	}
	if err := errors.Join(authority.Save(d.pki()), d.saveTrusted(trusted)); err != nil {
		return err
	}
	return d.saveEncryptionKey(key)
}

// present makes the server known: on the list of servers, as a Host, and to the administrator.
func (s *Server) present(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.loopback)
	if err != nil {
		return err
	}
	if s.settings.Unpresented {
		// The others of a restored control plane do not belong to it until they join again.
		if err := endpoints.Reset(ctx, client); err != nil {
			return err
		}
	}
	if err := endpoints.Publish(ctx, client, s.settings.Name, s.Endpoint()); err != nil {
		return err
	}
	if err := s.presentHost(ctx, client); err != nil {
		return err
	}
	if err := s.identity.writeAdmin(s.Endpoint(), time.Now()); err != nil || !s.settings.Unpresented {
		return err
	}
	s.settings.Unpresented = false
	return s.dir.save(s.settings)
}

// presentHost makes the server's own Host and its identity, if they are not there.
func (s *Server) presentHost(ctx context.Context, client kubernetes.Interface) error {
	key, err := s.dir.hostKey()
	if err != nil {
		return fmt.Errorf("while reading the key of this server's host in %s: %w; %s", s.dir.host(), err, cureOwn)
	}
	err = s.registerHost(ctx, key)
	if join.Refused(err) && endpoints.Exists(s.dir.host()) {
		// The server itself needs no Host, and comes up without it.
		s.log.Warn("the servers refuse the agent of this server", "error", err)
	} else if err != nil {
		return err
	}
	if s.host == nil {
		host, err := s.openHost(ctx, client, key)
		if err != nil {
			return err
		}
		s.useHost(host)
	}
	s.host.Prefer(s.Endpoint())
	return nil
}

// useHost has the list of servers kept fresh. The server has one identity as a host while it runs, with a seat or without.
func (s *Server) useHost(host *endpoints.Servers) {
	s.memberMu.Lock()
	s.host = host // The first seat asks others while it is being taken.
	s.memberMu.Unlock()
	host.Every = s.settings.refresh
	run, stop := context.WithCancel(context.Background())
	s.stopHost = stop
	s.hostDone.Go(func() { host.Run(run, s.log) })
	if host.Avoid(s.Endpoint()); s.tellHost != nil {
		s.tellHost(s.Name(), host.Config())
	}
}

func (s *Server) registerHost(ctx context.Context, key *ecdsa.PrivateKey) error {
	keyID, err := pki.KeyID(key.Public())
	if err != nil {
		return err
	}
	hosts, err := join.NewHosts(s.loopback)
	if err != nil {
		return err
	}
	register := hosts.Register
	if s.settings.Unpresented {
		register = hosts.Claim
	}
	if err := register(ctx, s.settings.Name, keyID); err != nil {
		return err
	}
	return hosts.MarkServer(ctx, s.settings.Name)
}

// believes says whether the identity of the server's own host is good: it has not ended, and is by an authority that this server believes. After a restore
// from a backup of another one, or of before it was replaced, it is not.
func (s *Server) believes(host *endpoints.Servers) bool {
	cert := host.Certificate().Cert
	signed := func(by *x509.Certificate) bool { return cert.CheckSignatureFrom(by) == nil }
	return host.Expired(time.Now()) == "" && slices.ContainsFunc(s.identity.trust(), signed)
}

// openHost opens the identity of the server's own host, after it was made anew if it is missing or good no more.
func (s *Server) openHost(ctx context.Context, client kubernetes.Interface, key *ecdsa.PrivateKey) (*endpoints.Servers, error) {
	if endpoints.Exists(s.dir.host()) {
		host, err := endpoints.Open(s.dir.host())
		if err == nil && s.believes(host) {
			return host, nil
		}
	}
	cert, err := s.identity.signer().Issue(join.HostLeaf(s.settings.Name), key.Public(), time.Now())
	if err != nil {
		return nil, err
	}
	servers, err := endpoints.Published(ctx, client)
	if err != nil {
		return nil, err
	}
	pair := &pki.Pair{Cert: cert, Key: key}
	if err := endpoints.Save(s.dir.host(), pki.EncodeBundle(s.identity.trust()), pair, servers); err != nil {
		return nil, err
	}
	return endpoints.Open(s.dir.host())
}
