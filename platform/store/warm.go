package store

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// warmTimeout bounds Warm, which is of use only, and not needed.
const warmTimeout = 15 * time.Second

// Warm has the API server of this machine prepare each kind that a Store reads. It does so when a
// kind is asked for the first time, and takes a second or two for all of them: a server that may
// lead some day asks before, and acts at once when it does.
func Warm(ctx context.Context, config *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, warmTimeout)
	defer cancel()
	c, err := Client(config)
	if err != nil {
		return err
	}
	var group errgroup.Group
	for _, kind := range append(namespaced(), hostKind()) {
		group.Go(func() error { return warm(ctx, c, kind) })
	}
	return group.Wait()
}

// Client returns a client for the kinds that a Store reads and writes. It asks the API server for
// none of them.
func Client(config *rest.Config) (client.Client, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: newMapper()})
	if err != nil {
		return nil, fmt.Errorf("while preparing the client of the API: %w", err)
	}
	return c, nil
}

// warm asks for one object of a kind, in the form in which a Store reads it: the API server
// prepares each form by itself.
func warm(ctx context.Context, c client.Client, kind schema.GroupVersionKind) error {
	kind.Kind += "List"
	list, err := c.Scheme().New(kind)
	if err != nil {
		return fmt.Errorf("while preparing a request for a %s: %w", kind.Kind, err)
	}
	if err := c.List(ctx, list.(client.ObjectList), client.Limit(1)); err != nil {
		return fmt.Errorf("while requesting a %s: %w", kind.Kind, err)
	}
	return nil
}
