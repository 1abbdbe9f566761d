package pki

import (
	"crypto/x509"
	"slices"
	"time"
)

// renewBefore is how long before its end a certificate is made anew, when a server starts.
const renewBefore = 60 * 24 * time.Hour

// Ensure makes sure that name.crt and name.key in a directory are what leaf asks for, signed by this authority and valid for
// a while from now. What is there and good is kept.
func (a *Authority) Ensure(dir, name string, leaf Leaf, now time.Time) (*Pair, error) {
	pair, err := LoadPair(dir, name)
	if err == nil && a.good(pair.Cert, leaf, now) {
		return pair, nil
	}
	if pair, err = a.NewPair(leaf, now); err != nil {
		return nil, err
	}
	return pair, pair.Save(dir, name)
}

func (a *Authority) good(cert *x509.Certificate, leaf Leaf, now time.Time) bool {
	if cert.CheckSignatureFrom(a.cert) != nil || now.Before(cert.NotBefore) || now.Add(renewBefore).After(cert.NotAfter) {
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
