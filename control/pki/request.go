package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
)

// NewRequest asks for a certificate: a signing request in PEM form, which proves that the asker has the key. What the
// certificate will say is for the signer to decide.
func NewRequest(name string, key *ecdsa.PrivateKey) ([]byte, error) {
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, fmt.Errorf("while making a certificate request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// ParseRequest returns the public key of a signing request, once it is proven that the asker has the private key.
func ParseRequest(text []byte) (crypto.PublicKey, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("there is no certificate request in PEM form")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	if err := request.CheckSignature(); err != nil {
		return nil, err
	}
	if _, ok := request.PublicKey.(*ecdsa.PublicKey); !ok {
		return nil, fmt.Errorf("the key is a %T, not ECDSA", request.PublicKey)
	}
	return request.PublicKey, nil
}

// KeyID identifies a public key: the SHA-256 of its SubjectPublicKeyInfo, in hex.
func KeyID(public crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:]), nil
}
