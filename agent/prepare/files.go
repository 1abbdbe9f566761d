package prepare

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// writeFiles brings the daemon's files to what its spec says.
func writeFiles(l *service.Local, secrets map[string]*corev1.Secret) error {
	for i := range l.Daemon.Spec.Files {
		f := &l.Daemon.Spec.Files[i]
		content, perm, err := content(l, f, secrets)
		if err != nil {
			return fmt.Errorf("while making the file %s: %w", f.Path, err)
		}
		if err := writeFile(l.Data, f.Path, content, perm); err != nil {
			return err
		}
	}
	return nil
}

// content joins the sources of a file. One with a secret in it is for its owner alone.
func content(l *service.Local, f *api.DaemonFile, secrets map[string]*corev1.Secret) ([]byte, os.FileMode, error) {
	var b bytes.Buffer
	perm := os.FileMode(0o644)
	for _, src := range f.Sources {
		switch {
		case src.Text != nil:
			text, err := replaceWords(*src.Text, l)
			if err != nil {
				return nil, 0, err
			}
			b.WriteString(text)
		case src.Secret != nil:
			perm = 0o600
			value, err := entry(secrets, src.Secret)
			if err != nil {
				return nil, 0, err
			}
			b.Write(value)
		}
	}
	return b.Bytes(), perm, nil
}

// writeFile writes a file below dir, unless it is there with this content already.
func writeFile(dir, path string, content []byte, perm os.FileMode) error {
	// The API refuses such paths; what comes from elsewhere must not write outside either.
	if !filepath.IsLocal(path) || strings.HasSuffix(path, "/") {
		return fmt.Errorf("the file %q does not lie in the daemon's directory", path)
	}
	full := filepath.Join(dir, path)
	if st, err := os.Stat(full); err == nil && st.Mode().Perm() == perm {
		if have, err := os.ReadFile(full); err == nil && bytes.Equal(have, content) {
			return nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		return fmt.Errorf("while making the directory of %s: %w", path, err)
	}
	return atomicfile.Write(full, content, perm)
}
