package pki

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// ParseBundle reads all certificates of a PEM text, of which there must be at least one.
func ParseBundle(text []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("there is a %s among the certificates", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, errors.New("there is no certificate in PEM form")
	}
	return certs, nil
}

// EncodeBundle returns certificates as PEM.
func EncodeBundle(certs []*x509.Certificate) []byte {
	var text []byte
	for _, cert := range certs {
		text = append(text, EncodeCert(cert)...)
	}
	return text
}

// PoolOf returns a new pool of certificates.
func PoolOf(certs []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, cert := range certs {
		pool.AddCert(cert)
	}
	return pool
}
