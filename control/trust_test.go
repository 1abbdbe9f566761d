package control

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/control/rotation"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// TestAdopt_cut has the power cut before every single file that a server writes when it goes from one phase of a rotation to the next
// one. It starts each time, without anybody to ask, with a whole authority and certificates that the others believe; then it hears of
// the phase again, and is where it would be without the cut.
func TestAdopt_cut(t *testing.T) {
	t.Parallel()
	now := time.Now()
	old, err := pki.NewAuthority(now)
	if err != nil {
		t.Fatal(err)
	}
	begun, err := rotation.Begin("a", old, now)
	if err != nil {
		t.Fatal(err)
	}
	in := func(phase rotation.Phase) *rotation.State {
		s := *begun
		s.Phase = phase
		return &s
	}
	for _, path := range [][]*rotation.State{
		{in(rotation.Trust)},
		{in(rotation.Trust), in(rotation.Sign)},
		{in(rotation.Trust), in(rotation.Sign), in(rotation.Drop)},
		{in(rotation.Trust), in(rotation.Forget)},
		{in(rotation.Trust), in(rotation.Sign), in(rotation.Forget)},
	} {
		last := path[len(path)-1]
		t.Run(fmt.Sprintf("%s after %d", last.Phase, len(path)-1), func(t *testing.T) {
			before := newPhaseDir(t, old, path[:len(path)-1])
			cuts := 0
			for ; cutAt(t, before, last, cuts); cuts++ {
			}
			if cuts < 5 {
				t.Errorf("it was cut %d times: are the files written by somebody else?", cuts)
			}
		})
	}
}

// newPhaseDir is the directory of a server that has gone through phases.
func newPhaseDir(t *testing.T, old *pki.Authority, phases []*rotation.State) dataDir {
	t.Helper()
	d := dataDir(t.TempDir())
	if err := os.Mkdir(d.pki(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(old.Save(d.pki()), d.saveEncryptionKey([32]byte{1})); err != nil {
		t.Fatal(err)
	}
	id := openedIdentity(t, d)
	if err := id.writeAdmin("", time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, s := range phases {
		if err := id.adopt(s, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func openedIdentity(t *testing.T, d dataDir) *identity {
	t.Helper()
	id, err := d.openIdentity(&settings{Name: "s1", Address: "127.0.0.1", APIPort: 1})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// cutAt cuts the power after so many files, on a copy of the directory, and says whether it came to that.
func cutAt(t *testing.T, before dataDir, s *rotation.State, after int) bool {
	t.Helper()
	d := dataDir(t.TempDir())
	if err := os.CopyFS(string(d), os.DirFS(string(before))); err != nil {
		t.Fatal(err)
	}
	id := openedIdentity(t, d)
	restore := atomicfile.Cut(string(d), after)
	err := id.adopt(s, time.Now())
	if cut := restore(); cut != errors.Is(err, atomicfile.ErrCut) {
		t.Fatalf("cut after %d files: %v, %v", after, cut, err)
	} else if !cut {
		wantPhase(t, d, id, s)
		return false
	}
	id = openedIdentity(t, d)
	wantBelieved(t, d, id, s, after)
	if err := id.adopt(s, time.Now()); err != nil {
		t.Errorf("cut after %d files, it hears of the phase again: %v", after, err)
	}
	// A start does so, with the first seat.
	if err := id.writeAdmin("", time.Now()); err != nil {
		t.Error(err)
	}
	wantPhase(t, d, id, s)
	return true
}

// wantBelieved: whoever is in the phase before, or in this one, believes what the server shows; and the members of etcd do, that were
// not started since the rotation began and trust only the old authority.
func wantBelieved(t *testing.T, d dataDir, id *identity, s *rotation.State, after int) {
	t.Helper()
	text, err := os.ReadFile(pki.CertFile(d.pki(), "etcd"))
	if err != nil {
		t.Fatal(err)
	}
	chain, err := pki.ParseBundle(text)
	if err != nil {
		t.Fatal(err)
	}
	for name, pool := range map[string]*x509.CertPool{"the old authority": s.Old.Pool(), "both": pki.PoolOf([]*x509.Certificate{s.Old.Certificate(), s.New.Certificate()})} {
		_, err := chain[0].Verify(x509.VerifyOptions{Roots: pool, Intermediates: pki.PoolOf(chain[1:]), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		if err != nil {
			t.Errorf("cut after %d files: who believes %s does not believe its member of etcd: %v", after, name, err)
		}
	}
	for _, signer := range id.trust() {
		if !signer.Equal(s.Old.Certificate()) && !signer.Equal(s.New.Certificate()) {
			t.Errorf("cut after %d files: it believes a stranger", after)
		}
	}
}

// wantPhase: the directory is that of a server in this phase, and holds nothing else.
func wantPhase(t *testing.T, d dataDir, id *identity, s *rotation.State) {
	t.Helper()
	if id.signer().Fingerprint() != s.Signer().Fingerprint() || !slices.EqualFunc(id.trust(), s.Trusted(), (*x509.Certificate).Equal) {
		t.Errorf("it signs by %.8s and believes %d, want %.8s and %d", id.signer().Fingerprint(), len(id.trust()), s.Signer().Fingerprint(), len(s.Trusted()))
	}
	for _, name := range []string{"server", "etcd", "admin"} {
		pair, err := pki.LoadPair(d.pki(), name)
		if err != nil || !s.Signer().Good(pair.Cert, time.Now()) {
			t.Errorf("the certificate %s is not by the authority that signs: %v", name, err)
		}
	}
	file, err := os.ReadFile(d.pki() + "/" + trustFile)
	if err != nil || !bytes.Equal(file, pki.EncodeBundle(s.Trusted())) {
		t.Errorf("etcd would believe others: %v", err)
	}
	entries, err := os.ReadDir(d.pki())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name()[0] == '.' || e.Name() == nextName+".key" || e.Name() == nextName+".crt" {
			t.Errorf("%s is left", e.Name())
		}
	}
}
