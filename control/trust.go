package control

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/control/rotation"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// Names of what lies beside the authority (ca.crt, ca.key).
const (
	// trustFile holds the authorities that the server believes.
	trustFile = "trust.crt"
	// crossFile holds the authority's certificate, signed by the one before it.
	crossFile = "cross.crt"
	// nextName is the authority that is being put in the place of ca.crt and ca.key.
	nextName = "next"
)

// openAuthority reads the authority. A change of it that was cut off between its two files is carried through.
func (d dataDir) openAuthority() (*pki.Authority, error) {
	authority, err := pki.OpenAuthority(d.pki())
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return authority, err
	}
	next, e := pki.OpenAuthorityNamed(d.pki(), nextName)
	if e != nil {
		return nil, err
	}
	return next, next.Save(d.pki())
}

// saveAuthority puts an authority in the place of the one that is there. It is written whole beside it first: whatever cuts this
// off, one of the two is whole.
func (d dataDir) saveAuthority(authority *pki.Authority) error {
	if err := authority.SaveNamed(d.pki(), nextName); err != nil {
		return err
	}
	if err := authority.Save(d.pki()); err != nil {
		return err
	}
	return errors.Join(os.Remove(pki.KeyFile(d.pki(), nextName)), os.Remove(pki.CertFile(d.pki(), nextName)), atomicfile.SyncDir(d.pki()))
}

// trusted reads the authorities that the server believes, and puts the one that signs first. It writes them down where etcd,
// which reads a file, finds them.
func (d dataDir) trusted(authority *pki.Authority) ([]*x509.Certificate, error) {
	own := authority.Certificate()
	path := filepath.Join(d.pki(), trustFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		only := []*x509.Certificate{own}
		return only, d.saveTrusted(only)
	}
	if err != nil {
		return nil, err
	}
	trusted, err := pki.ParseBundle(text)
	if err != nil {
		return nil, fmt.Errorf("while reading %s: %w", path, err)
	}
	others := slices.DeleteFunc(trusted, own.Equal)
	return append([]*x509.Certificate{own}, others...), nil
}

func (d dataDir) saveTrusted(trusted []*x509.Certificate) error {
	return atomicfile.Write(filepath.Join(d.pki(), trustFile), pki.EncodeBundle(trusted), 0o600)
}

// cross reads the authority's certificate that the one before it signed. One that is about another authority does not count.
func (d dataDir) cross(authority *pki.Authority) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(filepath.Join(d.pki(), crossFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	cert, err := pki.ParseCert(text)
	if err != nil || pki.Fingerprint(cert) != authority.Fingerprint() {
		return nil, err
	}
	return []*x509.Certificate{cert}, nil
}

// adopt has this server do what the phase of a rotation says. Whatever cuts it off, it is repeated at the next start.
func (id *identity) adopt(s *rotation.State, now time.Time) error {
	trusted := s.Trusted()
	if s.Signer().Fingerprint() == id.signer().Fingerprint() && slices.EqualFunc(trusted, id.trust(), (*x509.Certificate).Equal) {
		return nil
	}
	if err := atomicfile.Write(filepath.Join(id.dir.pki(), crossFile), pki.EncodeCert(s.Cross), 0o600); err != nil {
		return err
	}
	if err := id.dir.saveTrusted(trusted); err != nil {
		return err
	}
	if s.Signer().Fingerprint() != id.signer().Fingerprint() {
		if err := id.dir.saveAuthority(s.Signer()); err != nil {
			return err
		}
	}
	if err := id.load(now); err != nil {
		return err
	}
	return id.writeAdmin(now)
}

// belief is whom this server believes, and who signed the certificate that it shows.
func (id *identity) belief() pki.Belief {
	id.mu.Lock()
	defer id.mu.Unlock()
	return pki.BeliefOf(id.certs["server"], id.trusted)
}

// followRotation does what a rotation of the authority says, and tells how far this server is, until ctx ends.
func (s *Server) followRotation(ctx context.Context) {
	client, err := kubernetes.NewForConfig(s.loopback)
	if err != nil {
		s.log.Error("a rotation of the authority cannot be followed", "error", err)
		return
	}
	wake := make(chan struct{}, 1)
	signal := func() {
		select {
		case wake <- struct{}{}:
		default: // it looks soon anyway
		}
	}
	only := fields.OneTermEqualSelector("metadata.name", rotation.SecretName)
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "secrets", access.SystemNamespace, only),
		ObjectType:    &corev1.Secret{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { signal() }, UpdateFunc: func(any, any) { signal() }, DeleteFunc: func(any) { signal() },
		},
	})
	s.background.Go(func() { informer.RunWithContext(ctx) })
	told := ""
	signal()
	for retry := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-time.After(retryOr(retry)):
		}
		if retry = 0; s.followOnce(ctx, client, store, &told) != nil && ctx.Err() == nil {
			retry = 2 * time.Second
		}
	}
}

// retryOr is the pause until the next look: a rotation that is under way is told of by a change.
func retryOr(retry time.Duration) time.Duration {
	if retry > 0 {
		return retry
	}
	return time.Hour
}

func (s *Server) followOnce(ctx context.Context, client kubernetes.Interface, store cache.Store, told *string) (err error) {
	defer func() {
		if err != nil && ctx.Err() == nil {
			s.log.Error("the rotation of the authority cannot be followed; trying again", "error", err)
		}
	}()
	obj, under, err := store.GetByKey(access.SystemNamespace + "/" + rotation.SecretName)
	if err != nil {
		return err
	}
	s.rotating.Store(under)
	if under {
		state, err := rotation.Parse(obj.(*corev1.Secret))
		if err != nil {
			return err
		}
		if err := s.identity.adopt(state, time.Now()); err != nil {
			return fmt.Errorf("while going on to the phase %s: %w", state.Phase, err)
		}
	}
	b := s.identity.belief()
	b.Etcd = s.etcdTrusts
	text, err := json.Marshal(b)
	if err != nil || string(text) == *told {
		return err
	}
	if err := tell(ctx, client, s.settings.Name, string(text)); err != nil {
		return err
	}
	*told = string(text)
	return nil
}

// tell notes in the ConfigMap whom a server believes.
func tell(ctx context.Context, client kubernetes.Interface, name, text string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"data": map[string]string{name: text}})
	if err != nil {
		return err
	}
	maps := client.CoreV1().ConfigMaps(access.SystemNamespace)
	_, err = maps.Patch(ctx, rotation.BeliefsName, types.MergePatchType, patch, metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	beliefs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: rotation.BeliefsName}, Data: map[string]string{name: text}}
	_, err = maps.Create(ctx, beliefs, metav1.CreateOptions{})
	return err
}

// noteBelief notes what a host says of itself, during a rotation. It says so again soon.
func (s *Server) noteBelief(hosts *join.Hosts) func(ctx context.Context, host string, b pki.Belief) {
	return func(ctx context.Context, host string, b pki.Belief) {
		if !s.rotating.Load() {
			return
		}
		text, err := json.Marshal(b)
		if err == nil {
			err = hosts.Annotate(ctx, host, rotation.Annotation, string(text))
		}
		if err != nil {
			s.log.Warn("what a host says of its authorities could not be noted; it is asked again", "host", host, "error", err)
		}
	}
}
