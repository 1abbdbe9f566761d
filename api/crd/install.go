package crd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	typed "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	semver "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/util/retry"
)

const (
	// annotationDefinition is on each definition that Holdfast installed, and tells which text it
	// was made from. It spares a write at each start, and the comparison with what the server
	// filled in.
	annotationDefinition = "holdfast.io/definition"
	// AnnotationVersion is on each definition that Holdfast installed: the release that installed
	// it.
	AnnotationVersion = "holdfast.io/version"
)

// NewerError says that a definition is there that a newer release installed. It is left as it is.
type NewerError struct{ Kind, Version, Own string }

func (e *NewerError) Error() string {
	return fmt.Sprintf("the definition of %s is that of release %s, and this is %s: install %s or later", e.Kind,
		e.Version, e.Own, e.Version)
}

// Options of Install.
type Options struct {
	// Version is the release of the program. One that is no semantic version, as that of a
	// development build, is neither older nor newer than another one.
	Version string
	// Definitions are what is installed, see All and Kubernetes. They are changed.
	Definitions []*extensionsv1.CustomResourceDefinition
	// Alone says that one API server serves the kinds: a new kind can be used at once.
	Alone bool
}

// atOnce is how many definitions are installed at once.
const atOnce = 8

// Install brings definitions to their latest form, and waits until the kinds are served. It writes
// nothing where nothing differs, and may be repeated after an error. A definition of a newer
// release is left as it is: the error is then a *NewerError, and all others are installed.
func Install(ctx context.Context, client typed.CustomResourceDefinitionInterface, o Options) error {
	newer, err := installAll(ctx, client, o)
	if err != nil {
		return err
	}
	if err := waitEstablished(ctx, client, o.Definitions); err != nil || !o.Alone {
		return errors.Join(err, newer)
	}
	for _, definition := range o.Definitions {
		if err := backDate(ctx, client, definition.Name); err != nil {
			return fmt.Errorf("while installing the definition of %s: %w", definition.Spec.Names.Kind, err)
		}
	}
	return newer
}

// installAll installs all definitions, several at once. newer is the first *NewerError of them in
// their order, or nil.
func installAll(ctx context.Context, client typed.CustomResourceDefinitionInterface, o Options) (newer, err error) {
	left := make([]error, len(o.Definitions))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, definition := range o.Definitions {
		group.Go(func() error {
			err := installDefinition(ctx, client, definition, o.Version)
			if isNewer := new(NewerError); errors.As(err, &isNewer) {
				left[i] = err
				return nil
			}
			if err != nil {
				return fmt.Errorf("while installing the definition of %s: %w", definition.Spec.Names.Kind, err)
			}
			return nil
		})
	}
	err = group.Wait()
	for _, one := range left {
		if newer == nil {
			newer = one
		}
	}
	return newer, err
}

// Newer returns a *NewerError where a definition is there that a newer release installed. It writes
// nothing.
func Newer(ctx context.Context, client typed.CustomResourceDefinitionInterface, o Options) error {
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("while reading the definitions of kinds: %w", err)
	}
	own := map[string]bool{}
	for _, definition := range o.Definitions {
		own[definition.Name] = true
	}
	for i := range list.Items {
		if have := &list.Items[i]; own[have.Name] && isNewer(have, o.Version) {
			return &NewerError{Kind: have.Spec.Names.Kind, Version: have.Annotations[AnnotationVersion], Own: o.Version}
		}
	}
	return nil
}

// isNewer says whether a definition was installed by a later release than this one.
func isNewer(have *extensionsv1.CustomResourceDefinition, own string) bool {
	theirs, err := semver.ParseSemantic(have.Annotations[AnnotationVersion])
	if err != nil {
		return false
	}
	ours, err := semver.ParseSemantic(own)
	return err == nil && ours.LessThan(theirs)
}

// settle is how long the CRD server holds up the creation of objects of a kind that is new, so that
// other servers hear of the kind before its first object.
const settle = 2 * time.Second

// backDate spares a server that is alone the wait for the others: it lets a new kind look older
// than it is.
func backDate(ctx context.Context, client typed.CustomResourceDefinitionInterface, name string) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		definition, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for i := range definition.Status.Conditions {
			c := &definition.Status.Conditions[i]
			if c.Type == extensionsv1.Established && time.Since(c.LastTransitionTime.Time) < settle {
				c.LastTransitionTime = metav1.NewTime(c.LastTransitionTime.Add(-settle))
				_, err = client.UpdateStatus(ctx, definition, metav1.UpdateOptions{})
			}
		}
		return err
	})
}

func installDefinition(ctx context.Context, client typed.CustomResourceDefinitionInterface,
	want *extensionsv1.CustomResourceDefinition, version string,
) error {
	text, err := json.Marshal(want.Spec)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	id := hex.EncodeToString(sum[:])
	have, err := client.Get(ctx, want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		mark(want, id, version)
		_, err = client.Create(ctx, want, metav1.CreateOptions{})
		return err
	}
	switch {
	case err != nil:
		return err
	case isNewer(have, version):
		return &NewerError{Kind: want.Spec.Names.Kind, Version: have.Annotations[AnnotationVersion], Own: version}
	case have.Annotations[annotationDefinition] == id && have.Annotations[AnnotationVersion] == version:
		return nil
	}
	mark(have, id, version)
	have.Spec = want.Spec
	_, err = client.Update(ctx, have, metav1.UpdateOptions{})
	return err
}

func mark(d *extensionsv1.CustomResourceDefinition, id, version string) {
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, annotationDefinition, id)
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, AnnotationVersion, version)
}

// waitEstablished asks for one definition after the other: all of them together are a megabyte, and
// more in a cluster that has those of others.
func waitEstablished(ctx context.Context, client typed.CustomResourceDefinitionInterface,
	wanted []*extensionsv1.CustomResourceDefinition,
) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, definition := range wanted {
		for {
			have, err := client.Get(ctx, definition.Name, metav1.GetOptions{})
			if err == nil && isEstablished(have) {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("while waiting for the kinds to be served (%s): %w", definition.Name,
					errors.Join(context.Cause(ctx), err))
			case <-tick.C:
			}
		}
	}
	return nil
}

func isEstablished(have *extensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(have.Status.Conditions, func(c extensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == extensionsv1.Established && c.Status == extensionsv1.ConditionTrue
	})
}
