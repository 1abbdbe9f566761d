package pki_test

import (
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/control/pki"
)

func newAuthority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAuthority_issue(t *testing.T) {
	a, now := newAuthority(t), time.Now()
	pair, err := a.NewPair(pki.Leaf{User: "u", Groups: []string{"g"}, Server: true, DNS: []string{"holdfast"}}, now)
	if err != nil {
		t.Fatal(err)
	}
	verify := func(roots *x509.CertPool, at time.Time) error {
		_, err := pair.Cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: "holdfast", CurrentTime: at})
		return err
	}
	for _, test := range []struct {
		name  string
		roots *x509.CertPool
		at    time.Time
		good  bool
	}{
		{"now", a.Pool(), now, true},
		{"a clock that is a little behind", a.Pool(), now.Add(-5 * time.Minute), true},
		{"long ago", a.Pool(), now.Add(-time.Hour), false},
		{"in eleven months", a.Pool(), now.AddDate(0, 11, 0), true},
		{"in two years", a.Pool(), now.AddDate(2, 0, 0), false},
		{"another authority", newAuthority(t).Pool(), now, false},
	} {
		if err := verify(test.roots, test.at); (err == nil) != test.good {
			t.Errorf("%s: got %v, want good %v", test.name, err, test.good)
		}
	}
	if pair.Cert.Subject.CommonName != "u" || pair.Cert.Subject.Organization[0] != "g" || pair.Cert.IsCA {
		t.Errorf("got subject %s, CA %v", pair.Cert.Subject, pair.Cert.IsCA)
	}
}

func TestAuthority_saveAndOpen(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	if err := a.Save(dir); err != nil {
		t.Fatal(err)
	}
	opened, err := pki.OpenAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	if opened.Fingerprint() != a.Fingerprint() || newAuthority(t).Fingerprint() == a.Fingerprint() {
		t.Error("fingerprints do not tell authorities apart")
	}
	for _, name := range []string{"ca.crt", "ca.key"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
	// The key of one authority beside the certificate of another is found.
	if err := newAuthority(t).Save(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	key, err := newAuthority(t).KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pki.ParseAuthority(a.CertPEM(), key); err == nil {
		t.Error("a key and a certificate that do not belong together were taken")
	}
}

// TestAuthority_ensure: a good certificate is kept, any other is made anew.
func TestAuthority_ensure(t *testing.T) {
	a, dir, now := newAuthority(t), t.TempDir(), time.Now()
	leaf := pki.Leaf{User: "u", Server: true, DNS: []string{"holdfast"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
	ensure := func(a *pki.Authority, leaf pki.Leaf, now time.Time) string {
		t.Helper()
		pair, err := a.Ensure(dir, "x", leaf, now)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Cert.SerialNumber.String()
	}
	first := ensure(a, leaf, now)
	if ensure(a, leaf, now) != first {
		t.Error("a good certificate was made anew")
	}
	moved := leaf
	moved.IPs = []net.IP{net.IPv4(10, 0, 0, 1)}
	key, err := os.ReadFile(pki.KeyFile(dir, "x"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		a    *pki.Authority
		leaf pki.Leaf
		now  time.Time
	}{
		{"another address", a, moved, now},
		{"near its end", a, moved, now.AddDate(0, 11, 0)},
		{"another authority", newAuthority(t), moved, now},
	} {
		before := ensure(a, moved, now)
		if test.name == "another address" {
			before = first
		}
		if ensure(test.a, test.leaf, test.now) == before {
			t.Errorf("%s: the certificate was kept", test.name)
		}
	}
	if kept, err := os.ReadFile(pki.KeyFile(dir, "x")); err != nil || string(kept) != string(key) {
		t.Errorf("the key was made anew, %v", err)
	}
}

// TestRenewAt: after two thirds of the life, not all at once, and long before the end.
func TestRenewAt(t *testing.T) {
	now := time.Now()
	for _, validity := range []time.Duration{0, time.Hour, 3 * time.Second} {
		times := map[time.Duration]bool{}
		for range 20 {
			pair, err := newAuthority(t).Signing(validity).NewPair(pki.Leaf{User: "u"}, now)
			if err != nil {
				t.Fatal(err)
			}
			life, at := pair.Cert.NotAfter.Sub(pair.Cert.NotBefore), pki.RenewAt(pair.Cert)
			if part := float64(at.Sub(pair.Cert.NotBefore)) / float64(life); part < 0.66 || part > 0.77 {
				t.Errorf("validity %s: renewed after %.2f of the life", validity, part)
			}
			times[at.Sub(pair.Cert.NotBefore)] = true
		}
		if len(times) < 5 {
			t.Errorf("validity %s: 20 certificates are renewed at %d times", validity, len(times))
		}
	}
}

func TestRequest(t *testing.T) {
	dir := t.TempDir()
	key, err := pki.LoadOrMakeKey(dir, "host")
	if err != nil {
		t.Fatal(err)
	}
	again, err := pki.LoadOrMakeKey(dir, "host")
	if err != nil || !again.Equal(key) {
		t.Errorf("the key was made anew: %v", err)
	}
	text, err := pki.NewRequest("h", key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := pki.ParseRequest(text)
	if err != nil || !key.PublicKey.Equal(public) {
		t.Errorf("got key %v, %v", public, err)
	}
	text[len(text)/2] ^= 1
	if _, err := pki.ParseRequest(text); err == nil {
		t.Error("a damaged request was taken")
	}
}
