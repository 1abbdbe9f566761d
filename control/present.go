package control

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/etcd"
	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// joinTimeout bounds how long joining may take. A server that joins waits for others that join at
// the same time.
const joinTimeout = 3 * time.Minute

// join gets what all servers share, and is added to etcd.
func (s *startup) join(ctx context.Context, text string) error {
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
	if err := s.host.present(ctx, client); err != nil {
		return err
	}
	if err := s.identity.writeAdmin(s.Endpoint(), time.Now()); err != nil || !s.settings.Unpresented {
		return err
	}
	s.settings.Unpresented = false
	return s.dir.save(s.settings)
}
