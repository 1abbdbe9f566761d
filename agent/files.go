package agent

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// readSecrets reads the Secrets that the daemon's files need, all at once: a monitor needs several, and the time until it
// starts is the time until its cluster can do anything.
func (a *agent) readSecrets(ctx context.Context, d *api.Daemon) (map[string]*corev1.Secret, error) {
	secrets := map[string]*corev1.Secret{}
	for _, x := range d.Spec.Devices {
		if x.KeySecret != "" {
			secrets[x.KeySecret] = &corev1.Secret{}
		}
	}
	for _, f := range d.Spec.Files {
		for _, src := range f.Sources {
			if src.Secret != nil {
				secrets[src.Secret.Name] = &corev1.Secret{}
			}
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for name, s := range secrets {
		group.Go(func() error { return a.readSecret(ctx, d.Namespace, name, s) })
	}
	return secrets, group.Wait()
}

func (a *agent) readSecret(ctx context.Context, namespace, name string, into *corev1.Secret) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := a.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return waitFor("the Secret %s, which does not exist yet", name)
	}
	if a.OfNode && apierrors.IsForbidden(err) { // the operator gives the right when it sees the Daemon
		return waitFor("the right to read the Secret %s, which the operator has not given yet", name)
	}
	if err != nil {
		return fmt.Errorf("while reading the Secret %s: %w", name, err)
	}
	return nil
}

// deviceKeys are the keys that the daemon's devices are encrypted with. They are kept in memory alone.
func deviceKeys(d *api.Daemon, secrets map[string]*corev1.Secret) (map[string][]byte, error) {
	keys := map[string][]byte{}
	for _, x := range d.Spec.Devices {
		if x.KeySecret == "" {
			continue
		}
		key, err := entry(secrets, &api.SecretKey{Name: x.KeySecret, Key: api.KeyLUKS})
		if err != nil {
			return nil, err
		}
		keys[x.Name] = key
	}
	return keys, nil
}

// entry returns one entry of a Secret.
func entry(secrets map[string]*corev1.Secret, key *api.SecretKey) ([]byte, error) {
	value, ok := secrets[key.Name].Data[key.Key]
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
