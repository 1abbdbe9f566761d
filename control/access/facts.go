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
	"k8s.io/apiserver/pkg/admission"
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

// Stored is what the API itself knows.
type Stored interface {
	Facts
	Kept
}

// Admissions are all that look into objects before the API takes them, in their order.
func Admissions(facts Stored) []admission.Interface {
	return []admission.Interface{
		HostAdmission{}, OrchAdmission{Kept: facts}, ActionAdmission{Facts: facts}, KeepAdmission{Kept: facts},
	}
}

// NewFacts returns what is read with the rights of config.
func NewFacts(config *rest.Config) (Stored, error) {
	client, err := newClient(config)
	if err != nil {
		return nil, err
	}
	return &storedFacts{client}, nil
}

// Approval implements Facts.
func (f *storedFacts) Approval(ctx context.Context, namespace, cluster string) (api.Approval, bool, error) {
	c, err := f.Cluster(ctx, namespace, cluster)
	if err != nil || c == nil {
		return "", false, err
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
	daemons, err := f.Daemons(ctx, "", fields.OneTermEqualSelector("spec.host", host).String())
	if err != nil {
		return "", false, err
	}
	policy, seen := api.ApprovalGranted, map[[2]string]bool{}
	for i := range daemons {
		d := &daemons[i]
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

// internal is an error of the server itself: what could not be looked up is no refusal.
func internal(doing string, err error) error {
	return apierrors.NewInternalError(fmt.Errorf("%s: %w", doing, err))
}

// Cluster implements Kept.
func (f *storedFacts) Cluster(ctx context.Context, namespace, name string) (*api.StorageCluster, error) {
	ctx, cancel := context.WithTimeout(ctx, askDeadline)
	defer cancel()
	var c api.StorageCluster
	err := f.client.Get().Namespace(namespace).Resource("storageclusters").Name(name).Do(ctx).Into(&c)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("while reading storagecluster %s: %w", name, err))
	}
	return &c, nil
}

// Daemons implements Kept.
func (f *storedFacts) Daemons(ctx context.Context, namespace, selector string) ([]api.Daemon, error) {
	ctx, cancel := context.WithTimeout(ctx, askDeadline)
	defer cancel()
	options, list := metav1.ListOptions{FieldSelector: selector}, &api.DaemonList{}
	request := f.client.Get().NamespaceIfScoped(namespace, namespace != "").Resource("daemons")
	if err := request.VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(list); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("while looking which daemons there are: %w", err))
	}
	return list.Items, nil
}
