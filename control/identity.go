package control

import (
	"crypto/ecdsa"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/etcd"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// identity is what a server proves itself with, and what it hands out to others.
type identity struct {
	authority     *pki.Authority
	encryptionKey [32]byte
	serving       *pki.Pair
	// loopback is the server's own access to its API: all rights, kept in memory alone.
	loopback *pki.Pair
}

// makeAuthority makes what all servers share: the authority, and the key that Secrets are encrypted with. What is there
// already is kept, so that an interrupted start can go on.
func (d dataDir) makeAuthority() error {
	if err := os.MkdirAll(d.pki(), 0o700); err != nil {
		return err
	}
	if _, err := pki.OpenAuthority(d.pki()); errors.Is(err, fs.ErrNotExist) {
		authority, err := pki.NewAuthority(time.Now())
		if err != nil {
			return err
		}
		if err := authority.Save(d.pki()); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if _, err := os.Stat(d.encryptionKey()); errors.Is(err, fs.ErrNotExist) {
		var key [32]byte
		if _, err := rand.Read(key[:]); err != nil {
			return err
		}
		return d.saveEncryptionKey(key)
	}
	return nil
}

func (d dataDir) encryptionKey() string { return filepath.Join(d.pki(), "encryption.key") }

func (d dataDir) saveEncryptionKey(key [32]byte) error {
	return atomicfile.Write(d.encryptionKey(), []byte(hex.EncodeToString(key[:])+"\n"), 0o600)
}

func (d dataDir) loadEncryptionKey() (key [32]byte, err error) {
	text, err := os.ReadFile(d.encryptionKey())
	if err != nil {
		return key, err
	}
	raw, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(raw) != len(key) {
		return key, fmt.Errorf("%s does not hold a key of %d bytes in hex", d.encryptionKey(), len(key))
	}
	return [32]byte(raw), nil
}

// openIdentity reads the authority, and makes the certificates that this server needs.
func (d dataDir) openIdentity(s *settings) (*identity, error) {
	authority, err := pki.OpenAuthority(d.pki())
	if err != nil {
		return nil, fmt.Errorf("while reading the authority: %w", err)
	}
	id := &identity{authority: authority}
	if id.encryptionKey, err = d.loadEncryptionKey(); err != nil {
		return nil, fmt.Errorf("while reading the encryption key: %w", err)
	}
	now := time.Now()
	serving := pki.Leaf{
		User: "holdfast:serving", Server: true,
		DNS: []string{endpoints.ServerName, "localhost", s.Name}, IPs: s.ips(),
	}
	if id.serving, err = authority.Ensure(d.pki(), "server", serving, now); err != nil {
		return nil, err
	}
	member := pki.Leaf{User: etcd.User, Server: true, DNS: []string{"localhost", s.Name}, IPs: s.ips()}
	if _, err := authority.Ensure(d.pki(), "etcd", member, now); err != nil {
		return nil, err
	}
	id.loopback, err = authority.NewPair(pki.Leaf{User: "holdfast:server:" + s.Name, Groups: []string{access.GroupMasters}}, now)
	return id, err
}

// ips are the addresses that the server's certificates are valid for.
func (s *settings) ips() []net.IP {
	ips := []net.IP{net.ParseIP(s.Address)}
	if s.Address != "127.0.0.1" {
		ips = append(ips, net.ParseIP("127.0.0.1"))
	}
	return append(ips, net.IPv6loopback)
}

// endpoint is where others reach the server's API.
func (s *settings) endpoint() string { return net.JoinHostPort(s.Address, strconv.Itoa(s.APIPort)) }

// loopbackConfig reaches the server's own API with all rights. There is no limit to the rate of requests: the server is its
// own client's keeper.
func (id *identity) loopbackConfig(s *settings) (*rest.Config, error) {
	key, err := id.loopback.KeyPEM()
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(s.APIPort)),
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: endpoints.ServerName, CAData: id.authority.CertPEM(),
			CertData: id.loopback.CertPEM(), KeyData: key,
		},
		QPS: -1,
	}, nil
}

// writeAdmin writes the administrator's kubeconfig, unless there is one that is good for a while. It reaches this server
// by its address, so that it can be copied to another machine.
func (d dataDir) writeAdmin(id *identity, s *settings) error {
	admin, err := id.authority.Ensure(d.pki(), "admin", pki.Leaf{User: "holdfast:admin", Groups: []string{access.GroupAdmins}}, time.Now())
	if err != nil {
		return err
	}
	server := "https://" + s.endpoint()
	return pki.WriteKubeconfig(d.adminKubeconfig(), server, endpoints.ServerName, id.authority.CertPEM(), admin)
}

// hostKey is the key of the host's agent, made before the host joins, so that a join that was cut off can be repeated.
func (d dataDir) hostKey() (*ecdsa.PrivateKey, error) {
	if err := os.MkdirAll(d.host(), 0o700); err != nil {
		return nil, err
	}
	return endpoints.Key(d.host())
}
