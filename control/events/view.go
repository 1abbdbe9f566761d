// Package events serves core Events: what the ClusterEvents tell, in the form that 'kubectl get
// events', 'kubectl describe' and other tools of Kubernetes read. Nothing is stored. Each answer is
// made from the ClusterEvents, so that the two never differ, and has their resourceVersions, so
// that a watch goes on where a list ended.
package events

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/metadata"
	clientrest "k8s.io/client-go/rest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/coreevent"
)

// resource is where the ClusterEvents are.
const resource = "clusterevents"

// View is the registry of core Events. It may be read, and not written.
type View struct {
	client  clientrest.Interface
	objects metadata.Interface
}

var (
	_ rest.Getter               = &View{}
	_ rest.Lister               = &View{}
	_ rest.Watcher              = &View{}
	_ rest.Scoper               = &View{}
	_ rest.SingularNameProvider = &View{}
	_ rest.ShortNamesProvider   = &View{}
)

// New returns a View that reads with the rights of config, which reaches the API server itself. No
// request is sent yet.
func New(config *clientrest.Config) (*View, error) {
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = clientrest.CopyConfig(config)
	config.QPS = -1 // those who ask are bounded
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	config.GroupVersion = &schema.GroupVersion{Group: api.GroupVersion.Group, Version: api.GroupVersion.Version}
	config.APIPath, config.NegotiatedSerializer = "/apis", serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := clientrest.RESTClientFor(config)
	return &View{client, objects}, err
}

// New returns an empty Event.
func (v *View) New() runtime.Object { return &corev1.Event{} }

// NewList returns an empty list.
func (v *View) NewList() runtime.Object { return &corev1.EventList{} }

// Destroy has nothing to clean up.
func (v *View) Destroy() {}

// NamespaceScoped says that Events lie in namespaces.
func (v *View) NamespaceScoped() bool { return true }

// GetSingularName is the name of one.
func (v *View) GetSingularName() string { return "event" }

// ShortNames are what kubectl lets one type.
func (v *View) ShortNames() []string { return []string{"ev"} }

// Get returns one Event.
func (v *View) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	e, err := v.get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (v *View) get(ctx context.Context, name string, options *metav1.GetOptions) (*corev1.Event, error) {
	var e api.ClusterEvent
	err := v.read(ctx).Name(name).VersionedParams(options, metav1.ParameterCodec).Do(ctx).Into(&e)
	if apierrors.IsNotFound(err) {
		return nil, apierrors.NewNotFound(corev1.Resource("events"), name)
	}
	if err != nil {
		return nil, fmt.Errorf("while reading clusterevent %s: %w", name, err)
	}
	shown := coreevent.From(&e)
	v.identify(ctx, newIdentities(), shown)
	return shown, nil
}

// List returns those Events that the options select. A part of a list may have fewer than was asked
// for: those of a part of the ClusterEvents that are selected.
func (v *View) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	list, err := v.list(ctx, options)
	if err != nil {
		return nil, err
	}
	return list, nil
}

func (v *View) list(ctx context.Context, options *internalversion.ListOptions) (*corev1.EventList, error) {
	selects, err := newSelection(options)
	if err != nil {
		return nil, err
	}
	asked, err := plain(options)
	if err != nil {
		return nil, err
	}
	var found api.ClusterEventList
	if err := v.read(ctx).VersionedParams(asked, metav1.ParameterCodec).Do(ctx).Into(&found); err != nil {
		return nil, err
	}
	list := &corev1.EventList{ListMeta: found.ListMeta, Items: []corev1.Event{}}
	list.RemainingItemCount = nil // nobody knows how many of the others are selected
	known := newIdentities()
	for i := range found.Items {
		if e := coreevent.From(&found.Items[i]); v.selected(ctx, known, selects, e) {
			list.Items = append(list.Items, *e)
		}
	}
	if selects.byUID {
		if err := known.incomplete(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Watch follows the ClusterEvents.
func (v *View) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	selects, err := newSelection(options)
	if err != nil {
		return nil, err
	}
	asked, err := plain(options)
	if err != nil {
		return nil, err
	}
	asked.Watch = true
	changes, err := v.read(ctx).VersionedParams(asked, metav1.ParameterCodec).Watch(ctx)
	if err != nil {
		return nil, err
	}
	return follow(ctx, changes, func(change watch.Event) (watch.Event, bool) { return v.show(ctx, selects, change) }), nil
}

// read begins a request for ClusterEvents of the namespace that ctx says, or of all.
func (v *View) read(ctx context.Context) *clientrest.Request {
	namespace := request.NamespaceValue(ctx)
	return v.client.Get().NamespaceIfScoped(namespace, namespace != metav1.NamespaceNone).Resource(resource)
}

// plain are the options for the ClusterEvents. What an Event is selected by is not known to them,
// but for labels.
func plain(options *internalversion.ListOptions) (*metav1.ListOptions, error) {
	asked := &metav1.ListOptions{}
	if options == nil {
		return asked, nil
	}
	err := internalversion.Convert_internalversion_ListOptions_To_v1_ListOptions(options, asked, nil)
	asked.FieldSelector = ""
	return asked, err
}
