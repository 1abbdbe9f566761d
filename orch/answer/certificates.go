package answer

import (
	"fmt"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// endsSoon is how long before its end Holdfast warns of a certificate, as Ceph 20's own orchestrator does.
const endsSoon = 30 * 24 * time.Hour

// certificateName is what the certificates of gateways are called.
const certificateName = "rgw_ssl_cert"

// securityConfig says that Holdfast puts nothing before the services of modules.
func securityConfig(*Call) (any, error) {
	return map[string]bool{"security_enabled": false, "mgmt_gw_enabled": false}, nil
}

// withTLS are the stores whose gateways show a certificate, by the names of their services.
func (c *Call) withTLS() map[string]*api.ObjectStore {
	all := map[string]*api.ObjectStore{}
	for _, s := range engine.OfKind[*api.ObjectStore](c.View.Resources) {
		if s.Spec.Gateways.TLS != nil {
			all["rgw."+s.Name] = s
		}
	}
	return all
}

// certificates are those that gateways show: who uses each, where it is kept, and when it ends.
// Keys lie in Secrets, which the mgr may not read.
func certificates(c *Call) (any, error) {
	of := map[string]any{}
	for service, s := range c.withTLS() {
		certificate := map[string]any{"secret": s.Spec.Gateways.TLS.SecretName}
		if at := s.Status.CertificateExpires; at != nil {
			certificate["validity"] = map[string]any{
				"not_after": stamp(at.Time), "remaining_days": int(at.Time.Sub(c.Now).Hours() / 24),
			}
		}
		of[service] = certificate
	}
	if len(of) == 0 {
		return map[string]any{}, nil
	}
	return map[string]any{certificateName: map[string]any{"scope": "service", "certificates": of}}, nil
}

// entities are the services that have certificates.
func entities(c *Call) (any, error) {
	all := map[string]any{}
	for service := range c.withTLS() {
		all[service] = map[string][]string{"certs": {certificateName}, "keys": {}}
	}
	return all, nil
}

// checkCertificates tells of certificates that have ended or end soon.
func checkCertificates(c *Call) (any, error) {
	said := []string{}
	for service, s := range c.withTLS() {
		at := s.Status.CertificateExpires
		switch {
		case at == nil:
			said = append(said, fmt.Sprintf("the certificate of %s (secret/%s) has not been read", service,
				s.Spec.Gateways.TLS.SecretName))
		case at.Time.Before(c.Now):
			said = append(said, fmt.Sprintf("the certificate of %s (secret/%s) ended on %s: replace it in the Secret",
				service, s.Spec.Gateways.TLS.SecretName, at.UTC().Format(time.DateOnly)))
		case at.Time.Before(c.Now.Add(endsSoon)):
			said = append(said, fmt.Sprintf("the certificate of %s (secret/%s) ends on %s: replace it in the Secret",
				service, s.Spec.Gateways.TLS.SecretName, at.UTC().Format(time.DateOnly)))
		}
	}
	return said, nil
}
