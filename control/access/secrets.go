package access

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// daemonSecrets asks the API which Daemons a host has. The server answers from its cache, once it knows that the cache is
// fresh; an agent asks for a Secret only when it writes a daemon's files, so an index of our own would not pay.
type daemonSecrets struct{ client rest.Interface }

// NewSecrets returns Secrets that reads Daemons with the rights of config. No request is sent yet.
func NewSecrets(config *rest.Config) (Secrets, error) {
	client, err := newClient(config)
	if err != nil {
		return nil, err
	}
	return &daemonSecrets{client}, nil
}

// Needs looks into the API server's own cache first. A yes from there may be some milliseconds old, so a host could read a
// Secret that it needed a moment ago, and could have read then. A no is asked for again, from the store.
func (s *daemonSecrets) Needs(ctx context.Context, host, namespace, secret string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, version := range []string{"0", ""} {
		needs, err := s.needs(ctx, host, namespace, secret, version)
		if needs || err != nil {
			return needs, err
		}
	}
	return false, nil
}

func (s *daemonSecrets) needs(ctx context.Context, host, namespace, secret, version string) (bool, error) {
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.host", host).String(), ResourceVersion: version}
	daemons := &api.DaemonList{}
	err := s.client.Get().Namespace(namespace).Resource("daemons").VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(daemons)
	if err != nil {
		return false, fmt.Errorf("while looking which secrets host %s needs: %w", host, err)
	}
	for i := range daemons.Items {
		if names(&daemons.Items[i], secret) {
			return true, nil
		}
	}
	return false, nil
}
