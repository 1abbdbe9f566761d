// Package pki is Holdfast's own certificate authority: it makes the keys and certificates that servers and hosts prove
// themselves with. Keys are ECDSA P-256. Every private key lies in a file that only its owner can read.
package pki

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"math/big"
	"net"
	"time"
)

// How long certificates are valid. They are dated back a little, so that a host whose clock is slightly behind accepts a
// certificate that was made just now.
const (
	authorityValidity = 10 * 365 * 24 * time.Hour
	leafValidity      = 365 * 24 * time.Hour
	backDate          = 10 * time.Minute
)

// Authority signs certificates. It is safe for concurrent use.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	// validity is how long what it signs is valid; zero stands for leafValidity.
	validity time.Duration
}

// Signing returns the same authority, whose certificates are valid for that long; zero stands for a year.
func (a *Authority) Signing(validity time.Duration) *Authority {
	return &Authority{cert: a.cert, key: a.key, validity: validity}
}

// Leaf says what a certificate is for.
type Leaf struct {
	// User becomes the common name: the API server and etcd take it as the user's name.
	User string
	// Groups become the organizations: the API server takes them as the user's groups.
	Groups []string
	// Server is set for a certificate that servers may present, too. All certificates may be used by clients.
	Server bool
	// DNS and IPs are the names that a server's certificate is valid for.
	DNS []string
	IPs []net.IP
}

// NewAuthority makes a key and a certificate for it. now is when it is valid from.
func NewAuthority(now time.Time) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(now, authorityValidity)
	if err != nil {
		return nil, err
	}
	// The serial number makes the names of two authorities differ, so that an error message can tell them apart.
	template.Subject = pkix.Name{CommonName: fmt.Sprintf("holdfast-ca-%x", template.SerialNumber.Bytes()[:4])}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	cert, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &Authority{cert: cert, key: key}, nil
}

// Certificate returns the authority's own certificate. Nobody may write to it.
func (a *Authority) Certificate() *x509.Certificate { return a.cert }

// Pool returns a new pool that holds the authority's certificate alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Fingerprint identifies the authority: the SHA-256 of its public key, in hex.
func (a *Authority) Fingerprint() string { return Fingerprint(a.cert) }

// Fingerprint is the SHA-256 of a certificate's public key (its SubjectPublicKeyInfo), in hex.
func Fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// Issue signs a certificate for a public key. now is when it is valid from.
func (a *Authority) Issue(leaf Leaf, public crypto.PublicKey, now time.Time) (*x509.Certificate, error) {
	template, err := newTemplate(now, cmp.Or(a.validity, leafValidity))
	if err != nil {
		return nil, err
	}
	template.Subject = pkix.Name{CommonName: leaf.User, Organization: leaf.Groups}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if leaf.Server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	template.DNSNames, template.IPAddresses = leaf.DNS, leaf.IPs
	return sign(template, a.cert, public, a.key)
}

// Cross signs another authority's certificate: who believes this authority alone believes what the other one signs, when this
// certificate is sent along.
func (a *Authority) Cross(other *Authority, now time.Time) (*x509.Certificate, error) {
	template, err := newTemplate(now, a.cert.NotAfter.Sub(now))
	if err != nil {
		return nil, err
	}
	template.Subject = other.cert.Subject
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = other.cert.KeyUsage
	template.SubjectKeyId = other.cert.SubjectKeyId
	return sign(template, a.cert, other.cert.PublicKey, a.key)
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("while making a key: %w", err)
	}
	return key, nil
}

func newTemplate(now time.Time, validity time.Duration) (*x509.Certificate, error) {
	serial := make([]byte, 16)
	if _, err := rand.Read(serial); err != nil {
		return nil, fmt.Errorf("while making a serial number: %w", err)
	}
	// A serial number is positive, and here never shorter than 16 bytes.
	serial[0] = serial[0]&0x7f | 0x40
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial),
		NotBefore:    now.Add(-min(backDate, validity/10)),
		NotAfter:     now.Add(validity),
	}, nil
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("while signing the certificate of %s: %w", template.Subject.CommonName, err)
	}
	return x509.ParseCertificate(der)
}
