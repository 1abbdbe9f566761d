package apiserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	typed "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/holdfast-storage/holdfast/api/crd"
	"github.com/holdfast-storage/holdfast/control/access"
)

// annotationDefinition is on each definition that Holdfast installed, and tells which text it was made from. It spares a
// write at each start, and the comparison with what the server filled in.
const annotationDefinition = "holdfast.io/definition"

// Install brings the definitions of the holdfast.io kinds and the first namespaces to their latest form, and waits until the
// kinds are served. It writes nothing where nothing differs, and may be repeated after an error. alone says that there is no
// other server.
func (s *Server) Install(ctx context.Context, alone bool) error {
	client, err := kubernetes.NewForConfig(s.loopback)
	if err != nil {
		return err
	}
	for _, name := range []string{metav1.NamespaceDefault, access.SystemNamespace} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("while creating the namespace %s: %w", name, err)
		}
	}
	extensions, err := clientset.NewForConfig(s.loopback)
	if err != nil {
		return err
	}
	return installDefinitions(ctx, extensions.ApiextensionsV1().CustomResourceDefinitions(), alone)
}

func installDefinitions(ctx context.Context, client typed.CustomResourceDefinitionInterface, alone bool) error {
	wanted, err := crd.All()
	if err != nil {
		return err
	}
	for _, definition := range wanted {
		if err := installDefinition(ctx, client, definition); err != nil {
			return fmt.Errorf("while installing the definition of %s: %w", definition.Spec.Names.Kind, err)
		}
	}
	if err := waitEstablished(ctx, client, wanted); err != nil || !alone {
		return err
	}
	for _, definition := range wanted {
		if err := backDate(ctx, client, definition.Name); err != nil {
			return fmt.Errorf("while installing the definition of %s: %w", definition.Spec.Names.Kind, err)
		}
	}
	return nil
}

// settle is how long the CRD server holds up the creation of objects of a kind that is new, so that other servers hear of the
// kind before its first object.
const settle = 2 * time.Second

// backDate spares a server that is alone the wait for the others: it lets a new kind look older than it is.
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

func installDefinition(ctx context.Context, client typed.CustomResourceDefinitionInterface, want *extensionsv1.CustomResourceDefinition) error {
	text, err := json.Marshal(want.Spec)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	id := hex.EncodeToString(sum[:])
	have, err := client.Get(ctx, want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		metav1.SetMetaDataAnnotation(&want.ObjectMeta, annotationDefinition, id)
		_, err = client.Create(ctx, want, metav1.CreateOptions{})
		return err
	}
	if err != nil || have.Annotations[annotationDefinition] == id {
		return err
	}
	metav1.SetMetaDataAnnotation(&have.ObjectMeta, annotationDefinition, id)
	have.Spec = want.Spec
	_, err = client.Update(ctx, have, metav1.UpdateOptions{})
	return err
}

func waitEstablished(ctx context.Context, client typed.CustomResourceDefinitionInterface, wanted []*extensionsv1.CustomResourceDefinition) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		waiting, err := notEstablished(ctx, client, wanted)
		if err == nil && waiting == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("while waiting for the kinds to be served (%s): %w", waiting, errors.Join(context.Cause(ctx), err))
		case <-tick.C:
		}
	}
}

// notEstablished returns the name of one of the definitions that is not served yet.
func notEstablished(ctx context.Context, client typed.CustomResourceDefinitionInterface, wanted []*extensionsv1.CustomResourceDefinition) (string, error) {
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	served := map[string]bool{}
	for _, definition := range list.Items {
		for _, condition := range definition.Status.Conditions {
			if condition.Type == extensionsv1.Established && condition.Status == extensionsv1.ConditionTrue {
				served[definition.Name] = true
			}
		}
	}
	for _, definition := range wanted {
		if !served[definition.Name] {
			return definition.Name, nil
		}
	}
	return "", nil
}
