package access

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// askDeadline bounds what is asked to decide one request.
const askDeadline = 10 * time.Second

// newClient returns a client for the holdfast.io kinds. No request is sent yet.
func newClient(config *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.GroupVersion = &schema.GroupVersion{Group: api.GroupVersion.Group, Version: api.GroupVersion.Version}
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(config)
}

// storedFacts asks the API for what holds now. Actions are created by people, now and then.
type storedFacts struct{ client rest.Interface }

// NewFacts returns Facts that are read with the rights of config.
func NewFacts(config *rest.Config) (Facts, error) {
	client, err := newClient(config)
	if err != nil {
		return nil, err
	}
	return &storedFacts{client}, nil
}

// Approval implements Facts.
func (f *storedFacts) Approval(ctx context.Context, namespace, cluster string) (api.Approval, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askDeadline)
	defer cancel()
	var c api.StorageCluster
	err := f.client.Get().Namespace(namespace).Resource("storageclusters").Name(cluster).Do(ctx).Into(&c)
	if apierrors.IsNotFound(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("while reading the approval policy of storagecluster %s: %w", cluster, err)
	}
	return c.Spec.Approval, true, nil
}

// Host implements Facts.
func (f *storedFacts) Host(ctx context.Context, host string) (api.Approval, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askDeadline)
	defer cancel()
	err := f.client.Get().Resource("hosts").Name(host).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("while reading host %s: %w", host, err)
	}
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.host", host).String()}
	daemons := &api.DaemonList{}
	if err := f.client.Get().Resource("daemons").VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(daemons); err != nil {
		return "", false, fmt.Errorf("while looking which clusters have daemons on host %s: %w", host, err)
	}
	policy, seen := api.ApprovalGranted, map[[2]string]bool{}
	for i := range daemons.Items {
		d := &daemons.Items[i]
		key := [2]string{d.Namespace, d.Spec.Cluster}
		if seen[key] {
			continue
		}
		seen[key] = true
		p, _, err := f.Approval(ctx, d.Namespace, d.Spec.Cluster)
		if err != nil {
			return "", false, err
		}
		policy = strictest(policy, p)
	}
	return policy, true, nil
}
