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

	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// makeAuthority makes what all servers share: the authority, and the key that Secrets are encrypted with. What is there
// already is kept, so that an interrupted start can go on.
func (d dataDir) makeAuthority() error {
	if err := atomicfile.MkdirAll(d.pki(), 0o700); err != nil {
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

// hostKey is the key of the host's agent, made before the host joins, so that a join that was cut off can be repeated.
func (d dataDir) hostKey() (*ecdsa.PrivateKey, error) {
	if err := atomicfile.MkdirAll(d.host(), 0o700); err != nil {
		return nil, err
	}
	return endpoints.Key(d.host())
}
