package cli

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unpack reads an archive: its files by name.
func unpack(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(h.Name, "holdfast-support/")] = string(text)
	}
}

// TestSupportBundle: all that the API has is in it, the values of Secrets are not, wherever they stand, and what cannot
// be had is named.
func TestSupportBundle(t *testing.T) {
	t.Parallel()
	p := newHome(t, "bundle")
	p.must(t, exitOK,
		"apiVersion: holdfast.io/v1alpha1\nkind: StorageCluster\n"+
			"metadata: {name: c, annotations: {note: prefix-hunter2hunter2}}\n"+
			"spec: {type: ceph, ceph: {config: {global: {rgw_keystone_admin_password: swordfish}}}}\n",
		[]string{
			"apply",
			"-f", "-",
		})
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "bundle",
			Name:      "s",
		}, Data: map[string][]byte{"any": []byte("hunter2hunter2")},
	}
	if err := p.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "agent/daemons/bundle.ceph-osd-3/log/daemon.log")
	if err := errors.Join(os.MkdirAll(filepath.Dir(log), 0o700),
		os.WriteFile(log, []byte("assert failed for hunter2hunter2\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "b.tar.gz")
	p.must(t, exitOK, "", []string{"support-bundle", "-o", path, "--data-dir", dir}, "without secrets",
		"parts are missing")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(err)
	}
	files := unpack(t, path)
	for name, text := range files {
		for _, s := range []string{"hunter2hunter2", "aHVudGVyMmh1bnRlcjI=", "swordfish"} {
			if strings.Contains(text, s) {
				t.Errorf("%s has the secret %s:\n%s", name, s, text)
			}
		}
	}
	for name, want := range map[string]string{
		"objects/StorageCluster.yaml":       "rgw_keystone_admin_password",
		"objects/Secret.yaml":               "name: s",
		"objects/Host.yaml":                 "bundle-1",
		"versions.txt":                      "Client version",
		"doctor.txt":                        "quorum",
		"clusters/bundle.c/status.txt":      "waiting for the leader",
		"clusters/bundle.c/why.txt":         "cluster",
		"metrics.txt":                       "apiserver_",
		"logs/bundle.ceph-osd-3/daemon.log": "assert failed for [redacted]",
		"NOT-COLLECTED.txt":                 "ceph/bundle.c: ",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s does not say %q:\n%.2000s", name, want, files[name])
		}
	}
	p.must(t, exitFailed, "", []string{"support-bundle", "-o", path, "--data-dir", dir}, "file exists")
}

// TestSupportBundle_alone: without a way to the API there is a bundle of this machine.
func TestSupportBundle_alone(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOLDFAST_KUBECONFIG", "")
	dir := t.TempDir()
	path := filepath.Join(dir, "b.tar.gz")
	if code, out := runHere(t, "support-bundle", "-o", path, "--data-dir", dir); code != exitOK ||
		!strings.Contains(out, "parts are missing") {
		t.Errorf("%d: %s", code, out)
	}
	files := unpack(t, path)
	if !strings.Contains(files["doctor.txt"], "the API cannot be reached") ||
		!strings.Contains(files["NOT-COLLECTED.txt"], "objects: ") {
		t.Errorf("%q", files)
	}
}
