package join

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/pki"
)

// Joiner is a machine that wants to join.
type Joiner struct {
	Token *Token
	Role  Role
	// Name is the host's name.
	Name string
	// Key is the host's private key. A join that was cut off is repeated with the same key.
	Key *ecdsa.PrivateKey
	// PeerURL is where etcd of a server will be reached; empty for an agent.
	PeerURL string
	// Now is the host's clock.
	Now func() time.Time
	Log *slog.Logger
}

// Joined is what a joiner got.
type Joined struct {
	CA      []byte
	Host    *pki.Pair
	Servers []string
	// Share is set for servers.
	Share *Share
}

// Join joins over one of the servers that the token names. What passes by itself (a server that cannot be reached, or is
// busy) is tried again until ctx ends.
func (j *Joiner) Join(ctx context.Context) (*Joined, error) {
	csr, err := pki.NewRequest(j.Name, j.Key)
	if err != nil {
		return nil, err
	}
	pause, reason := 250*time.Millisecond, ""
	for {
		answer, err := j.tryAll(ctx, csr)
		if err == nil {
			return j.take(answer)
		}
		var told *refusal
		if errors.As(err, &told) && !told.again {
			return nil, fmt.Errorf("this host cannot join: %w", err)
		}
		if reason != err.Error() {
			reason = err.Error()
			j.Log.Info("cannot join yet, trying again", "reason", reason)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("while joining: %w", errors.Join(context.Cause(ctx), err))
		case <-time.After(pause):
			pause = min(2*pause, time.Second)
		}
	}
}

func (j *Joiner) tryAll(ctx context.Context, csr []byte) (*response, error) {
	var errs []error
	for _, server := range j.Token.Servers {
		answer, err := j.try(ctx, server, csr)
		var told *refusal
		if err == nil || errors.As(err, &told) && !told.again {
			return answer, err
		}
		errs = append(errs, fmt.Errorf("server %s: %w", server, err))
	}
	return nil, errors.Join(errs...)
}

func (j *Joiner) try(ctx context.Context, server string, csr []byte) (*response, error) {
	ctx, cancel := context.WithTimeout(ctx, 35*time.Second)
	defer cancel()
	body, err := json.Marshal(&request{
		ID: j.Token.ID, Secret: j.Token.Secret, Role: j.Role, Host: j.Name, Request: csr, PeerURL: j.PeerURL, Time: j.Now(),
	})
	if err != nil {
		return nil, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+server+Path, bytes.NewReader(body))
	if err != nil {
		return nil, refused("the token names a server that is no address, %q: create another with 'holdfast token create'", server)
	}
	post.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: j.tls(server), TLSHandshakeTimeout: 10 * time.Second, DisableKeepAlives: true,
	}}
	got, err := client.Do(post)
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	answer := &response{}
	if err := json.NewDecoder(io.LimitReader(got.Body, maxBody)).Decode(answer); err != nil {
		return nil, fmt.Errorf("the answer (%s) cannot be read: %w", got.Status, err)
	}
	if answer.Error != "" {
		return nil, &refusal{message: answer.Error, again: answer.Again}
	}
	return answer, nil
}

// tls trusts the authority that the token names and no other, before anything secret is sent. The time in the certificates
// is not compared with this host's clock: if the clock is wrong, the server says so, in words that help.
func (j *Joiner) tls(server string) *tls.Config {
	return &tls.Config{
		ServerName: endpoints.ServerName, MinVersion: tls.VersionTLS13,
		InsecureSkipVerify: true, // VerifyConnection does it.
		VerifyConnection: func(state tls.ConnectionState) error {
			return verify(state.PeerCertificates, j.Token.Fingerprint, server)
		},
	}
}

func verify(chain []*x509.Certificate, fingerprint, server string) error {
	for _, ca := range chain {
		if pki.Fingerprint(ca) != fingerprint {
			continue
		}
		roots := x509.NewCertPool()
		roots.AddCert(ca)
		valid := ca.NotBefore // All certificates are valid then.
		for _, cert := range chain {
			valid = later(valid, cert.NotBefore)
		}
		_, err := chain[0].Verify(x509.VerifyOptions{
			Roots: roots, Intermediates: pki.PoolOf(chain[1:]), DNSName: endpoints.ServerName, CurrentTime: valid,
		})
		return err
	}
	return refused("the server at %s belongs to another control plane than the token: create a token, with 'holdfast token create', "+
		"on a server of the control plane of this host", server)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// take checks what the server sent.
func (j *Joiner) take(answer *response) (*Joined, error) {
	cert, err := pki.ParseCert(answer.Certificate)
	if err != nil {
		return nil, fmt.Errorf("while reading the certificate that the server sent: %w", err)
	}
	if !j.Key.PublicKey.Equal(cert.PublicKey) {
		return nil, errors.New("the server sent a certificate for another key")
	}
	trusted, err := pki.ParseBundle(answer.CA)
	if err != nil || !slices.ContainsFunc(trusted, func(ca *x509.Certificate) bool { return pki.Fingerprint(ca) == j.Token.Fingerprint }) {
		return nil, errors.New("the server sent another authority than the token names")
	}
	return &Joined{CA: answer.CA, Host: &pki.Pair{Cert: cert, Key: j.Key}, Servers: answer.Servers, Share: answer.Server}, nil
}
