package control

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/control/rotation"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// Names of what lies beside the authority (ca.crt, ca.key).
const (
	// trustFile holds the authorities that the server believes.
	trustFile = "trust.crt"
	// crossFile holds the authority's certificate, signed by the one before it.
	crossFile = "cross.crt"
	// nextName is the authority that is being put in the place of ca.crt and ca.key.
	nextName = "next"
)

// openAuthority reads the authority. A change of it that was cut off between its two files is carried through.
func (d dataDir) openAuthority() (*pki.Authority, error) {
	authority, err := pki.OpenAuthority(d.pki())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		next, e := pki.OpenAuthorityNamed(d.pki(), nextName)
		if e != nil {
			return nil, err
		}
		if authority, err = next, next.Save(d.pki()); err != nil {
			return nil, err
		}
	}
	// What lies beside a whole one is not needed, and would be in each backup.
	return authority, d.removeNext()
}

func (d dataDir) removeNext() error {
	return atomicfile.Remove(pki.KeyFile(d.pki(), nextName), pki.CertFile(d.pki(), nextName))
}

// saveAuthority puts an authority in the place of the one that is there. It is written whole beside it first: whatever cuts this
// off, one of the two is whole.
func (d dataDir) saveAuthority(authority *pki.Authority) error {
	if err := authority.SaveNamed(d.pki(), nextName); err != nil {
		return err
	}
	if err := authority.Save(d.pki()); err != nil {
		return err
	}
	return d.removeNext()
}

// trusted reads the authorities that the server believes, and puts the one that signs first. It writes them down where etcd,
// which reads a file, finds them.
func (d dataDir) trusted(authority *pki.Authority) ([]*x509.Certificate, error) {
	trusted, err := d.believed(authority)
	if err == nil && missing(filepath.Join(d.pki(), trustFile)) {
		err = d.saveTrusted(trusted)
	}
	return trusted, err
}

// believed is trusted, and writes nothing.
func (d dataDir) believed(authority *pki.Authority) ([]*x509.Certificate, error) {
	own := authority.Certificate()
	path := filepath.Join(d.pki(), trustFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return []*x509.Certificate{own}, nil
	}
	if err != nil {
		return nil, err
	}
	trusted, err := pki.ParseBundle(text)
	if err != nil {
		return nil, fmt.Errorf("while reading %s: %w", path, err)
	}
	others := slices.DeleteFunc(trusted, own.Equal)
	return append([]*x509.Certificate{own}, others...), nil
}

func (d dataDir) saveTrusted(trusted []*x509.Certificate) error {
	return atomicfile.Write(filepath.Join(d.pki(), trustFile), pki.EncodeBundle(trusted), 0o600)
}

// cross reads the authority's certificate that the one before it signed. One that is about another authority does not count.
func (d dataDir) cross(authority *pki.Authority) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(filepath.Join(d.pki(), crossFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	cert, err := pki.ParseCert(text)
	if err != nil || pki.Fingerprint(cert) != authority.Fingerprint() {
		return nil, err
	}
	return []*x509.Certificate{cert}, nil
}

// adopt has this server do what the phase of a rotation says. Whatever cuts it off, it is repeated at the next start.
func (id *identity) adopt(s *rotation.State, now time.Time) error {
	trusted := s.Trusted()
	if s.Signer().Fingerprint() == id.signer().Fingerprint() && slices.EqualFunc(trusted, id.trust(), (*x509.Certificate).Equal) &&
		(s.Signer() != s.New || id.hasCross()) {
		return nil
	}
	if err := atomicfile.Write(filepath.Join(id.dir.pki(), crossFile), pki.EncodeCert(s.Cross), 0o600); err != nil {
		return err
	}
	if err := id.dir.saveTrusted(trusted); err != nil {
		return err
	}
	if s.Signer().Fingerprint() != id.signer().Fingerprint() {
		if err := id.dir.saveAuthority(s.Signer()); err != nil {
			return err
		}
	}
	if err := id.load(now); err != nil {
		return err
	}
	return id.writeAdmin("", now)
}

// hasCross says whether the members of etcd that believe the authority before this one alone are shown that it believed this one.
func (id *identity) hasCross() bool {
	id.mu.Lock()
	defer id.mu.Unlock()
	return len(id.cross) > 0
}

// belief is whom this server believes, and who signed the certificate that it shows.
func (id *identity) belief() pki.Belief {
	id.mu.Lock()
	defer id.mu.Unlock()
	return pki.BeliefOf(id.certs["server"], id.trusted)
}
