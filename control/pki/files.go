package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// Pair is a private key and the certificate for it.
type Pair struct {
	Cert *x509.Certificate
	Key  *ecdsa.PrivateKey
}

// CertPEM returns the certificate as PEM.
func (p *Pair) CertPEM() []byte { return EncodeCert(p.Cert) }

// KeyPEM returns the private key as PEM. It is a secret.
func (p *Pair) KeyPEM() ([]byte, error) { return encodeKey(p.Key) }

// NewPair makes a key and has the authority sign a certificate for it.
func (a *Authority) NewPair(leaf Leaf, now time.Time) (*Pair, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	cert, err := a.Issue(leaf, key.Public(), now)
	if err != nil {
		return nil, err
	}
	return &Pair{Cert: cert, Key: key}, nil
}

// CertFile and KeyFile are where a pair of that name lies in a directory.
func CertFile(dir, name string) string { return filepath.Join(dir, name+".crt") }

// KeyFile is where the private key of that name lies in a directory.
func KeyFile(dir, name string) string { return filepath.Join(dir, name+".key") }

// OpenAuthority reads the authority from ca.crt and ca.key in a directory. The error wraps fs.ErrNotExist when there is none.
func OpenAuthority(dir string) (*Authority, error) { return OpenAuthorityNamed(dir, "ca") }

// OpenAuthorityNamed reads an authority from name.crt and name.key in a directory.
func OpenAuthorityNamed(dir, name string) (*Authority, error) {
	pair, err := LoadPair(dir, name)
	if err != nil {
		return nil, err
	}
	return &Authority{cert: pair.Cert, key: pair.Key}, nil
}

// Save writes the authority to ca.crt and ca.key in a directory.
func (a *Authority) Save(dir string) error { return a.SaveNamed(dir, "ca") }

// SaveNamed writes the authority to name.crt and name.key in a directory.
func (a *Authority) SaveNamed(dir, name string) error {
	key, err := a.KeyPEM()
	if err != nil {
		return err
	}
	return savePEM(dir, name, a.CertPEM(), key)
}

// CertPEM returns the authority's certificate as PEM.
func (a *Authority) CertPEM() []byte { return EncodeCert(a.cert) }

// KeyPEM returns the authority's private key as PEM. It is the secret that all trust hangs on.
func (a *Authority) KeyPEM() ([]byte, error) { return encodeKey(a.key) }

// ParseAuthority reads an authority from PEM.
func ParseAuthority(cert, key []byte) (*Authority, error) {
	pair, err := parsePair(cert, key)
	if err != nil {
		return nil, err
	}
	return &Authority{cert: pair.Cert, key: pair.Key}, nil
}

// Save writes the pair to name.crt and name.key in a directory.
func (p *Pair) Save(dir, name string) error {
	key, err := p.KeyPEM()
	if err != nil {
		return err
	}
	return savePEM(dir, name, p.CertPEM(), key)
}

// LoadPair reads name.crt and name.key from a directory. The error wraps fs.ErrNotExist when one of them is missing.
func LoadPair(dir, name string) (*Pair, error) {
	cert, err := os.ReadFile(CertFile(dir, name))
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(KeyFile(dir, name))
	if err != nil {
		return nil, err
	}
	pair, err := parsePair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("while reading %s: %w", CertFile(dir, name), err)
	}
	return pair, nil
}

// LoadOrMakeKey reads the private key name.key from a directory; it makes one if there is none.
func LoadOrMakeKey(dir, name string) (*ecdsa.PrivateKey, error) {
	text, err := os.ReadFile(KeyFile(dir, name))
	if err == nil {
		return parseKey(text)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return makeKey(dir, name)
}

func makeKey(dir, name string) (*ecdsa.PrivateKey, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	text, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return key, atomicfile.Write(KeyFile(dir, name), text, 0o600)
}

// The key is written first: a certificate without its key would look like a complete pair after a power cut.
func savePEM(dir, name string, cert, key []byte) error {
	if err := atomicfile.Write(KeyFile(dir, name), key, 0o600); err != nil {
		return err
	}
	return atomicfile.Write(CertFile(dir, name), cert, 0o600)
}

// SaveCert writes name.crt in a directory, in the place of another certificate for the same key.
func SaveCert(dir, name string, cert *x509.Certificate) error {
	return atomicfile.Write(CertFile(dir, name), EncodeCert(cert), 0o600)
}

// SaveChain has name.crt in a directory hold a certificate and others that lead to it; it writes nothing where it does.
func SaveChain(dir, name string, cert *x509.Certificate, others []*x509.Certificate) error {
	text := append(EncodeCert(cert), EncodeBundle(others)...)
	if have, err := os.ReadFile(CertFile(dir, name)); err == nil && bytes.Equal(have, text) {
		return nil
	}
	return atomicfile.Write(CertFile(dir, name), text, 0o600)
}

// EncodeCert returns a certificate as PEM.
func EncodeCert(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
}

// ParseCert reads the first certificate of a PEM text.
func ParseCert(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("there is no certificate in PEM form")
	}
	return x509.ParseCertificate(block.Bytes)
}

func encodeKey(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func parseKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("there is no private key in PEM form")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the private key is a %T, not ECDSA", key)
	}
	return ec, nil
}

func parsePair(certText, keyText []byte) (*Pair, error) {
	cert, err := ParseCert(certText)
	if err != nil {
		return nil, err
	}
	key, err := parseKey(keyText)
	if err != nil {
		return nil, err
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, errors.New("the private key does not belong to the certificate")
	}
	return &Pair{Cert: cert, Key: key}, nil
}
