package ceph

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/driver/ceph/cephx"
	"github.com/holdfast-storage/holdfast/engine"
)

// Ceph's own tool reads the keyrings.
func TestMakeSecret(t *testing.T) {
	w := threeHosts()
	for _, want := range w.plan().Secrets {
		data, err := w.driver.MakeSecret(want)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "keyring")
		if err := os.WriteFile(file, data[secretKeyring], 0o600); err != nil {
			t.Fatal(err)
		}
		entity := want.Annotations[AnnotationEntity]
		out, err := exec.Command("ceph-authtool", file, "-n", entity, "--print-key").CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != string(data[secretKey]) {
			t.Errorf("%s: the tool reads %q, %v", entity, out, err)
		}
		listed, err := exec.Command("ceph-authtool", file, "--list").CombinedOutput()
		if err != nil {
			t.Fatal(err)
		}
		for what, caps := range cephx.Caps(entity) {
			if line := "caps " + what + " = \"" + caps + "\""; !strings.Contains(string(listed), line) {
				t.Errorf("%s: %q is not in %s", entity, line, listed)
			}
		}
	}
	if _, err := w.driver.MakeSecret(engine.SecretWant{Name: "x", Kind: "tls"}); err == nil {
		t.Error("a secret of another kind was made")
	}
}
