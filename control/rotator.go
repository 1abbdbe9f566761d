package control

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/rotation"
)

// Rotation carries out rotations of the authority, with the rights of config, which are the leader's.
func (s *Server) Rotation(config *rest.Config) (*rotation.Handler, error) {
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, api.AddToScheme} {
		if err := add(types); err != nil {
			return nil, err
		}
	}
	c, err := client.New(config, client.Options{Scheme: types})
	if err != nil {
		return nil, err
	}
	return &rotation.Handler{Client: c, Authority: s.identity.signer, Now: time.Now}, nil
}
