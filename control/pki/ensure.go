package pki

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"slices"
	"time"
)

// RenewAt is when a certificate shall be renewed: when two thirds of its life are over, and up to a tenth later, so that hosts
// that joined together do not come together. The serial number decides, which is random.
func RenewAt(cert *x509.Certificate) time.Time {
	life := cert.NotAfter.Sub(cert.NotBefore)
	serial := cert.SerialNumber.Bytes()
	jitter := life / 10 / 256 * time.Duration(serial[len(serial)-1])
	return cert.NotBefore.Add(life*2/3 + jitter)
}

// Ensure makes sure that name.crt and name.key in a directory are what leaf asks for, signed by this authority and not due to
// be renewed. What is there and good is kept. So is the key: the certificate alone is replaced then, and whoever reads the
// two files at any moment, or after a power cut, finds that they belong together.
func (a *Authority) Ensure(dir, name string, leaf Leaf, now time.Time) (*Pair, error) {
	pair, err := LoadPair(dir, name)
	if err == nil && a.good(pair.Cert, leaf, now) {
		return pair, nil
	}
	key, err := LoadOrMakeKey(dir, name)
	if err != nil && !errors.As(err, new(*fs.PathError)) { // What is there is no key; nobody else has it.
		key, err = makeKey(dir, name)
	}
	if err != nil {
		return nil, err
	}
	cert, err := a.Issue(leaf, key.Public(), now)
	if err != nil {
		return nil, err
	}
	return &Pair{Cert: cert, Key: key}, SaveCert(dir, name, cert)
}

// Good says whether this authority signed a certificate, and it is not due to be renewed.
func (a *Authority) Good(cert *x509.Certificate, now time.Time) bool {
	return cert.CheckSignatureFrom(a.cert) == nil && !now.Before(cert.NotBefore) && !now.After(RenewAt(cert))
}

func (a *Authority) good(cert *x509.Certificate, leaf Leaf, now time.Time) bool {
	if !a.Good(cert, now) {
		return false
	}
	if cert.Subject.CommonName != leaf.User || !slices.Equal(cert.Subject.Organization, leaf.Groups) {
		return false
	}
	if !slices.Equal(cert.DNSNames, leaf.DNS) || len(cert.IPAddresses) != len(leaf.IPs) {
		return false
	}
	for i, ip := range leaf.IPs {
		if !cert.IPAddresses[i].Equal(ip) {
			return false
		}
	}
	return true
}
