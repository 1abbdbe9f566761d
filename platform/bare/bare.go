// Package bare is the home on bare machines: Holdfast's own servers serve the API, and etcd
// compares the leader's token in the transaction of each write (package fence).
package bare

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/fence"
	"github.com/holdfast-storage/holdfast/platform/store"
)

// Fenced returns a copy of config whose writes the API server refuses unless token is still that of
// the leader.
func Fenced(config *rest.Config, token string) *rest.Config {
	return fence.Config(config, fence.Token{Name: api.LeaderLease, Value: token})
}

// InNameOf returns what makes clients that read and write in the name and with the rights of a
// user. Their writes carry token.
func InNameOf(config *rest.Config, token string) func(user string, groups []string) (client.Client, error) {
	return func(user string, groups []string) (client.Client, error) {
		config := rest.AddUserAgent(Fenced(config, token), "engine")
		config.QPS = -1 // as of the Store
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
		c, err := store.Client(config)
		if err != nil {
			return nil, fmt.Errorf("while preparing a client in the name of %s: %w", user, err)
		}
		return c, nil
	}
}

// NewStore returns a Store of this home, whose caches are filled. Its writes carry token. It lives
// until ctx ends or the Store is closed.
func NewStore(ctx context.Context, config *rest.Config, token string) (*store.Store, error) {
	return store.New(ctx, store.Options{Config: config, Token: token, Fence: Fenced, AskServers: true})
}
