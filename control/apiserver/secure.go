package apiserver

import (
	"crypto/tls"
	"crypto/x509"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// secure has the server ask for certificates, and take a certificate's common name for the user's name and its
// organizations for the groups. There is no other way to log in.
func (c *Config) secure(generic *genericapiserver.Config) error {
	key, err := c.Serving.KeyPEM()
	if err != nil {
		return err
	}
	// The authority's certificate is sent along for joiners, who know its fingerprint alone.
	chain := append(c.Serving.CertPEM(), c.Authority.CertPEM()...)
	serving, err := dynamiccertificates.NewStaticCertKeyContent("serving", chain, key)
	if err != nil {
		return err
	}
	clients, err := dynamiccertificates.NewStaticCAContent("clients", c.Authority.CertPEM())
	if err != nil {
		return err
	}
	generic.SecureServing = &genericapiserver.SecureServingInfo{
		Listener: c.Listener, Cert: serving, ClientCA: clients, MinTLSVersion: tls.VersionTLS13,
	}
	generic.Authentication.Authenticator = certificates(c.Authority.Pool())
	generic.Authorization.Authorizer = c.Authorizer
	return nil
}

func certificates(roots *x509.CertPool) authenticator.Request {
	options := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	return group.NewAuthenticatedGroupAdder(x509request.New(options, x509request.CommonNameUserConversion))
}
