package store

import (
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// InNameOf returns a client that reads and writes in the name and with the rights of a user. Its
// writes carry the leader's token.
func (s *Store) InNameOf(user string, groups []string) (client.Client, error) {
	config := rest.CopyConfig(s.fenced)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	c, err := client.New(config, client.Options{Scheme: s.api.Scheme(), Mapper: newMapper()})
	if err != nil {
		return nil, fmt.Errorf("while preparing a client in the name of %s: %w", user, err)
	}
	return c, nil
}
