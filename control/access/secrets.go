package access

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/needs"
)

// typeManager is the type of the Daemons that may call the orchestrator.
const typeManager = "ceph-mgr"

// neededFor is how long it is remembered that a host needs a Secret. A host that has just begun to run a daemon asks for the
// Secrets of all its daemons, one after the other.
const neededFor = 10 * time.Second

// daemonSecrets asks the API which Daemons a host has. The server answers from its cache, once it knows that the cache is fresh.
// It is safe for concurrent use.
type daemonSecrets struct {
	client rest.Interface
	now    func() time.Time

	mu     sync.Mutex
	needed map[string]needed // by host
}

// needed are the Secrets that the Daemons of a host named at a moment.
type needed struct {
	at    time.Time
	names map[types.NamespacedName]bool
}

// NewSecrets returns HostFacts that reads Daemons with the rights of config. No request is sent yet.
func NewSecrets(config *rest.Config) (HostFacts, error) {
	client, err := newClient(config)
	if err != nil {
		return nil, err
	}
	return &daemonSecrets{client: client, now: time.Now, needed: map[string]needed{}}, nil
}

// Needs remembers a yes for a while, and looks then into the API server's own cache. A yes may be some seconds old, so a host could
// read a Secret that it needed a moment ago, and could have read then. A no is asked for again, from the store.
func (s *daemonSecrets) Needs(ctx context.Context, host, namespace, secret string) (bool, error) {
	name := types.NamespacedName{Namespace: namespace, Name: secret}
	if s.remembers(host, name) {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, version := range []string{"0", ""} {
		at := s.now()
		names, err := s.read(ctx, host, version)
		if err != nil {
			return false, err
		}
		if names[name] {
			s.remember(host, needed{at, names})
			return true, nil
		}
	}
	return s.commanded(ctx, host, name)
}

// commanded says whether the host carries out a command that names the Secret. That is not remembered: it is read once.
func (s *daemonSecrets) commanded(ctx context.Context, host string, name types.NamespacedName) (bool, error) {
	for _, version := range []string{"0", ""} {
		actions := &api.ActionList{}
		if err := s.list(ctx, "actions", host, version, actions); err != nil {
			return false, err
		}
		for i := range actions.Items {
			if a := &actions.Items[i]; a.Namespace == name.Namespace && !a.Status.State.Final() && action.SecretOf(a) == name.Name {
				return true, nil
			}
		}
	}
	return false, nil
}

// Manages looks into the API server's own cache, and asks the store where that says no.
func (s *daemonSecrets) Manages(ctx context.Context, host string, cluster types.NamespacedName) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, version := range []string{"0", ""} {
		daemons := &api.DaemonList{}
		if err := s.list(ctx, "daemons", host, version, daemons); err != nil {
			return false, err
		}
		for i := range daemons.Items {
			d := &daemons.Items[i]
			if d.Spec.Type == typeManager && d.Namespace == cluster.Namespace && d.Spec.Cluster == cluster.Name {
				return true, nil
			}
		}
	}
	return false, nil
}

func (s *daemonSecrets) remembers(host string, name types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.needed[host]
	return n.names[name] && s.now().Before(n.at.Add(neededFor))
}

// remember also forgets what is old, so that no more is held than was asked for lately.
func (s *daemonSecrets) remember(host string, n needed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h, old := range s.needed {
		if !n.at.Before(old.at.Add(neededFor)) {
			delete(s.needed, h)
		}
	}
	s.needed[host] = n
}

// read lists the Secrets that the Daemons of a host name.
func (s *daemonSecrets) read(ctx context.Context, host, version string) (map[types.NamespacedName]bool, error) {
	daemons := &api.DaemonList{}
	if err := s.list(ctx, "daemons", host, version, daemons); err != nil {
		return nil, err
	}
	names := map[types.NamespacedName]bool{}
	for i := range daemons.Items {
		addNames(names, &daemons.Items[i])
	}
	return names, nil
}

// list reads what a host has of a kind.
func (s *daemonSecrets) list(ctx context.Context, kind, host, version string, into runtime.Object) error {
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.host", host).String(), ResourceVersion: version}
	if err := s.client.Get().Resource(kind).VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(into); err != nil {
		return fmt.Errorf("while looking for the %s of host %s: %w", kind, host, err)
	}
	return nil
}

// addNames adds the Secrets that a Daemon names.
func addNames(to map[types.NamespacedName]bool, d *api.Daemon) {
	for _, name := range needs.Secrets(d) {
		to[types.NamespacedName{Namespace: d.Namespace, Name: name}] = true
	}
}
