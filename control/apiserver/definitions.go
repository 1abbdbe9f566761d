package apiserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/holdfast-storage/holdfast/api/crd"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/version"
)

// Install brings the definitions of the holdfast.io kinds and the first namespaces to their latest form, and waits until the
// kinds are served. It writes nothing where nothing differs, and may be repeated after an error. Definitions of a newer
// release stay: a server of it has joined. alone says that there is no other server.
func (s *Server) Install(ctx context.Context, alone bool) error {
	client, err := kubernetes.NewForConfig(s.loopback)
	if err != nil {
		return err
	}
	for _, name := range []string{metav1.NamespaceDefault, api.SystemNamespace} {
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
	all, err := crd.All()
	if err != nil {
		return err
	}
	options := crd.Options{Version: version.Version, Definitions: all, Alone: alone}
	err = crd.Install(ctx, extensions.ApiextensionsV1().CustomResourceDefinitions(), options)
	if newer := new(crd.NewerError); errors.As(err, &newer) {
		slog.Warn("a newer release installed the definitions of the kinds; they stay", "release", newer.Version, "own", newer.Own)
		return nil
	}
	return err
}
