package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/etcd"
)

// newcomer looks at the servers that the backup knows, for a machine that was none. With the address of one of them it is found by the others, and would
// overthrow them if they are not lost; with another address it is found by nobody.
func (r *restore) newcomer(ctx context.Context, work, database string) error {
	servers, err := publishedIn(database)
	if err != nil {
		return err
	}
	if !slices.Contains(servers, r.settings.endpoint()) {
		r.done.Unknown = true
		return nil
	}
	return r.notOverthrowing(ctx, servers, dataDir(work))
}

// publishedIn is the list of servers that a snapshot of etcd holds.
func publishedIn(database string) ([]string, error) {
	text, err := etcd.Value(database, "/registry/configmaps/"+api.SystemNamespace+"/"+endpoints.ServersName)
	if err != nil || text == nil {
		return nil, err
	}
	list := &corev1.ConfigMap{}
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, list); err != nil {
		return nil, fmt.Errorf("while reading the list of servers in the backup: %w", err)
	}
	return endpoints.Addresses(list), nil
}

// checkAddress refuses an address that the machine does not have, as the start would.
func (s *settings) checkAddress(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(s.Address, "0"))
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		return fmt.Errorf("%w: this machine does not have the address %s: give one that it has with --address", ErrRefused, s.Address)
	}
	if err != nil {
		return fmt.Errorf("while looking whether this machine has the address %s: %w", s.Address, err)
	}
	return l.Close()
}
