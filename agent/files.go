package agent

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// writeFiles brings the daemon's files to what its spec says.
func (a *agent) writeFiles(ctx context.Context, l *service.Local) error {
	secrets := map[string]*corev1.Secret{}
	for i := range l.Daemon.Spec.Files {
		f := &l.Daemon.Spec.Files[i]
		content, perm, err := a.content(ctx, l, f, secrets)
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
func (a *agent) content(ctx context.Context, l *service.Local, f *api.DaemonFile, secrets map[string]*corev1.Secret) ([]byte, os.FileMode, error) {
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
			value, err := a.secret(ctx, l.Daemon.Namespace, src.Secret, secrets)
			if err != nil {
				return nil, 0, err
			}
			b.Write(value)
		}
	}
	return b.Bytes(), perm, nil
}

// secret reads one entry of a Secret; secrets keeps those that were read for this daemon.
func (a *agent) secret(ctx context.Context, namespace string, key *api.SecretKey, secrets map[string]*corev1.Secret) ([]byte, error) {
	s := secrets[key.Name]
	if s == nil {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		s = &corev1.Secret{}
		err := a.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: key.Name}, s)
		if apierrors.IsNotFound(err) {
			return nil, waitFor("the Secret %s, which does not exist yet", key.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("while reading the Secret %s: %w", key.Name, err)
		}
		secrets[key.Name] = s
	}
	value, ok := s.Data[key.Key]
	if !ok {
		return nil, waitFor("the entry %s of the Secret %s, which is not there yet", key.Key, key.Name)
	}
	return value, nil
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
