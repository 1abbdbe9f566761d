package pki

import (
	"crypto/x509"
	"net/url"
	"slices"
)

// Belief is whom a server or a host believes, and whose certificate it has. Authorities are named by their fingerprints.
type Belief struct {
	// Signer signed its certificate; empty where that is nobody whom it believes.
	Signer string `json:"signer"`
	// Trusted are believed.
	Trusted []string `json:"trusted"`
	// Etcd are those that a server's member of etcd believes, which reads them at its start alone.
	Etcd []string `json:"etcd,omitempty"`
	// Generation of the rotation's state was followed by who noted this, when it was noted. What was true in an earlier one says
	// nothing of now.
	Generation int64 `json:"generation,omitempty"`
}

// BeliefOf says who signed a certificate, and who is trusted.
func BeliefOf(cert *x509.Certificate, trusted []*x509.Certificate) Belief {
	b := Belief{Trusted: Fingerprints(trusted)}
	for i, authority := range trusted {
		if cert.CheckSignatureFrom(authority) == nil {
			b.Signer = b.Trusted[i]
		}
	}
	return b
}

// Fingerprints are those of certificates, in their order.
func Fingerprints(certs []*x509.Certificate) []string {
	all := make([]string, len(certs))
	for i, cert := range certs {
		all[i] = Fingerprint(cert)
	}
	return all
}

// Only says whether an authority is believed, and no other.
func Only(trusted []string, authority string) bool {
	return len(trusted) == 1 && trusted[0] == authority
}

// Query writes a belief as the parameters of a request.
func (b Belief) Query() url.Values { return url.Values{"signer": {b.Signer}, "trusted": b.Trusted} }

// BeliefFrom reads what Query wrote; ok says whether it did.
func BeliefFrom(q url.Values) (b Belief, ok bool) {
	b = Belief{Signer: q.Get("signer"), Trusted: q["trusted"]}
	tooLong := func(f string) bool { return len(f) > 64 }
	return b, len(b.Trusted) > 0 && len(b.Trusted) <= 8 && !tooLong(b.Signer) && !slices.ContainsFunc(b.Trusted, tooLong)
}
