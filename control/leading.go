package control

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/members"
	"github.com/holdfast-storage/holdfast/control/rotation"
	"github.com/holdfast-storage/holdfast/internal/backoff"
)

// Rotation carries out rotations of the authority, with the rights of config, which are the
// leader's.
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

// TellLeader tells in the control plane's events that this server leads, unless the last leader was
// this server, too. It tries until that is told or ctx ends. config carries the leader's token, so
// that one that leads no more tells nothing.
func (s *Server) TellLeader(ctx context.Context, config *rest.Config) error {
	events, err := members.NewLog(config, api.SystemNamespace)
	if err != nil {
		return err
	}
	for failures := 1; ; failures++ {
		err := events.Leads(ctx, s.Name())
		if err == nil {
			return nil
		}
		s.log.Debug("the event of this leader is written later", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(backoff.Pause("tellLeader", failures)):
		}
	}
}
