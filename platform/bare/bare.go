// Package bare is the home on bare machines: Holdfast's own servers serve the API, and etcd
// compares the leader's token in the transaction of each write (package fence).
package bare

import (
	"context"

	"k8s.io/client-go/rest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/fence"
	"github.com/holdfast-storage/holdfast/platform/store"
)

// Fenced returns a copy of config whose writes the API server refuses unless token is still that of
// the leader.
func Fenced(config *rest.Config, token string) *rest.Config {
	return fence.Config(config, fence.Token{Name: api.LeaderLease, Value: token})
}

// NewStore returns a Store of this home, whose caches are filled. Its writes carry token. It lives
// until ctx ends or the Store is closed.
func NewStore(ctx context.Context, config *rest.Config, token string) (*store.Store, error) {
	return store.New(ctx, store.Options{Config: config, Token: token, Fence: Fenced})
}
