package control

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/control/rotation"
)

// follower follows the rotations of the authority on one server.
type follower struct {
	settings *settings
	identity *identity
	log      *slog.Logger
	loopback *rest.Config
	// state is that of the rotation that this server follows, while there is one.
	state atomic.Pointer[corev1.Secret]
	// etcdTrusts are the authorities that the member of etcd trusts, as fingerprints.
	etcdTrusts []string
}

// run does what a rotation of the authority says, and tells how far this server is, until ctx ends.
// It is for a server with a seat; a standby is told with the answer to its question for one.
func (f *follower) run(ctx context.Context) {
	client, err := kubernetes.NewForConfig(f.loopback)
	if err != nil {
		f.log.Error("a rotation of the authority cannot be followed", "error", err)
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
		ListerWatcher: cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "secrets", api.SystemNamespace, only),
		ObjectType:    &corev1.Secret{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { signal() }, UpdateFunc: func(any, any) { signal() }, DeleteFunc: func(any) { signal() },
		},
	})
	var watching sync.WaitGroup
	watching.Go(func() { informer.RunWithContext(ctx) })
	defer watching.Wait()
	told := ""
	signal()
	for retry := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-time.After(retryOr(retry)):
		}
		if retry = 0; f.once(ctx, client, store, &told) != nil && ctx.Err() == nil {
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

func (f *follower) once(ctx context.Context, client kubernetes.Interface, store cache.Store, told *string) (err error) {
	defer func() {
		if err != nil && ctx.Err() == nil {
			f.log.Error("the rotation of the authority cannot be followed; trying again", "error", err)
		}
	}()
	obj, under, err := store.GetByKey(api.SystemNamespace + "/" + rotation.SecretName)
	if err != nil {
		return err
	}
	if under {
		secret := obj.(*corev1.Secret)
		if err := f.identity.adoptSecret(secret); err != nil {
			return err
		}
		f.state.Store(secret) // when it is followed: what hosts are told from now on is at least as new
	} else {
		f.state.Store(nil)
	}
	b := f.identity.belief()
	b.Etcd, b.Generation = f.etcdTrusts, rotation.GenerationOf(f.state.Load())
	text, err := json.Marshal(b)
	if err != nil || string(text) == *told {
		return err
	}
	if err := tell(ctx, client, f.settings.Name, string(text)); err != nil {
		return err
	}
	*told = string(text)
	return nil
}

// adoptSecret has this server do what the state of a rotation says.
func (id *identity) adoptSecret(secret *corev1.Secret) error {
	state, err := rotation.Parse(secret)
	if err != nil {
		return err
	}
	if err := id.adopt(state, time.Now()); err != nil {
		return fmt.Errorf("while beginning the phase %s: %w", state.Phase, err)
	}
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
	maps := client.CoreV1().ConfigMaps(api.SystemNamespace)
	_, err = maps.Patch(ctx, rotation.BeliefsName, types.MergePatchType, patch, metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	beliefs := &corev1.ConfigMap{Data: map[string]string{name: text}}
	beliefs.Name, beliefs.Labels = rotation.BeliefsName, access.Labels()
	_, err = maps.Create(ctx, beliefs, metav1.CreateOptions{})
	return err
}

// noteBelief notes what a host says of itself, during a rotation. It says so again soon.
func (f *follower) noteBelief(hosts *join.Hosts) func(ctx context.Context, host string, b pki.Belief) {
	return func(ctx context.Context, host string, b pki.Belief) {
		secret := f.state.Load()
		if secret == nil {
			return
		}
		b.Generation = rotation.GenerationOf(secret)
		text, err := json.Marshal(b)
		if err == nil {
			err = hosts.Annotate(ctx, host, rotation.Annotation, string(text))
		}
		if err != nil {
			f.log.Warn("cannot record which authorities a host trusts; retrying", "host", host, "error", err)
		}
	}
}

// noteStandby notes what a standby says of itself, during a rotation, and returns the state for it
// to follow. It asks again soon.
func (f *follower) noteStandby(
	ctx context.Context, client kubernetes.Interface, name string, b *pki.Belief,
) map[string][]byte {
	secret := f.state.Load()
	if secret == nil {
		return nil
	}
	if b == nil {
		b = &pki.Belief{} // it is of a version that does not say
	}
	noted := *b
	noted.Generation = rotation.GenerationOf(secret)
	text, err := json.Marshal(noted)
	if err == nil {
		err = tell(ctx, client, name, string(text))
	}
	if err != nil {
		f.log.Warn("cannot record which authorities a standby trusts; it retries", "server", name, "error", err)
	}
	return secret.Data
}

// standbyBelief is what a standby says of itself: it runs no member of etcd that could believe
// somebody else.
func (f *follower) standbyBelief() *pki.Belief {
	b := f.identity.belief()
	b.Etcd = b.Trusted
	return &b
}

// asStandby does what the state of a rotation says that came with an answer.
func (f *follower) asStandby(data map[string][]byte) {
	if len(data) == 0 {
		return
	}
	if err := f.identity.adoptSecret(&corev1.Secret{Data: data}); err != nil {
		f.log.Error("the rotation of the authority cannot be followed; trying again", "error", err)
	}
}
