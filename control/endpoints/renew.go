package endpoints

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/pki"
)

const (
	// renewTimeout bounds one request for a new certificate.
	renewTimeout = 15 * time.Second
	// lookAgain is how long a host sleeps at most before it looks at its clock again, which may have been set.
	lookAgain = time.Hour
	// A renewal that failed is tried again after a part of the time that is left, within these bounds.
	minRetry, maxRetry = 200 * time.Millisecond, 10 * time.Minute
	// repeatWarning is how often the same warning is logged.
	repeatWarning = time.Hour
)

// Certificate is the host's certificate. It is shared: nobody may write to it.
func (s *Servers) Certificate() *pki.Pair {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pair
}

// keepCertificate renews the certificate whenever it is due, until ctx ends.
func (s *Servers) keepCertificate(ctx context.Context, log *slog.Logger) {
	warned := warning{log: log}
	for {
		pause := min(time.Until(pki.RenewAt(s.Certificate().Cert)), lookAgain)
		if pause <= 0 {
			if err := s.Renew(ctx); err == nil {
				log.Info("the certificate of this host was renewed", "until", s.Certificate().Cert.NotAfter)
			} else if ctx.Err() == nil {
				warned.tell(s.plight(time.Now()), err)
			}
			pause = retryAfter(time.Until(s.Certificate().Cert.NotAfter))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// retryAfter is when to try again, given the time that is left: seldom at first, more often when it presses. After the end
// only a clock that is set back, or a person, can help.
func retryAfter(left time.Duration) time.Duration {
	pause := maxRetry
	if left > 0 {
		pause = min(max(left/20, minRetry), maxRetry)
	}
	return pause - time.Duration(rand.Int64N(int64(pause/4)))
}

// plight says what a failed renewal means.
func (s *Servers) plight(now time.Time) string {
	if end := s.Certificate().Cert.NotAfter; now.Before(end) {
		return fmt.Sprintf("the certificate of this host could not be renewed: it expires at %s, in %s; retrying. After that "+
			"the servers refuse this host; its daemons keep running", end.UTC().Format(time.RFC3339), roughly(end.Sub(now)))
	}
	return s.Expired(now)
}

// Expired says that the certificate has ended, and what to do. It is empty while the certificate is valid.
func (s *Servers) Expired(now time.Time) string {
	end := s.Certificate().Cert.NotAfter
	if now.Before(end) {
		return ""
	}
	return fmt.Sprintf("the certificate of this host ended at %s (it is %s here), so every server refuses it; its daemons keep running. If the clock is right: "+
		"create a token on a server with 'holdfast token create', then start the agent once with 'holdfast agent --join TOKEN', "+
		"or, where it runs a server, with 'holdfast server --join TOKEN' and a token of 'holdfast token create --role server'",
		end.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
}

func roughly(d time.Duration) string {
	if d > 48*time.Hour {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return d.Round(time.Second).String()
}

// warning logs a warning that is not the one that was logged just now.
type warning struct {
	log  *slog.Logger
	last string
	at   time.Time
}

func (w *warning) tell(message string, err error) {
	if err.Error() == w.last && time.Since(w.at) < repeatWarning {
		return
	}
	w.last, w.at = err.Error(), time.Now()
	w.log.Warn(message, "error", err)
}

// Renew asks for a new certificate for the host's key, writes it down, and has it used from now on. Requests that are under
// way go on.
func (s *Servers) Renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	old := s.Certificate()
	csr, err := pki.NewRequest(s.host, old.Key)
	if err != nil {
		return err
	}
	client, err := plain(s.config)
	if err != nil {
		return err
	}
	text, err := client.Post().AbsPath(access.RenewPath).SetHeader("Content-Type", "application/x-pem-file").Body(csr).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("while asking for a new certificate: %w", err)
	}
	cert, err := pki.ParseCert(text)
	if err != nil {
		return fmt.Errorf("while reading the new certificate: %w", err)
	}
	if !old.Key.PublicKey.Equal(cert.PublicKey) || cert.Subject.CommonName != old.Cert.Subject.CommonName {
		return errors.New("the server sent a certificate for another host or key")
	}
	if err := pki.SaveCert(s.dir, pairName, cert); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pair = &pki.Pair{Cert: cert, Key: old.Key}
	s.transport.Set(s.pair, pki.PoolOf(s.roots))
	return nil
}
