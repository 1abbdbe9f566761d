package access

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/routine"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/pki"
)

var hostResource = schema.GroupVersionResource{Group: api.Group, Version: api.GroupVersion.Version, Resource: "hosts"}

// Revocation refuses hosts whose certificate counts no more, because their Host was deleted or belongs to another key. It does
// not look at anybody else, the servers themselves least of all: whatever becomes of the Hosts, they can be repaired. To refuse the certificate
// of a removed server would keep nobody out: it has the authority's key, and can make another one, until the authority is replaced.
//
// A yes comes from a copy of the Hosts that follows the changes, and so may be some milliseconds old. A no is asked for again,
// from etcd, so that a host that joined just now over another server is let in. What cannot be looked up is refused.
type Revocation struct {
	client  metadata.Interface
	factory metadatainformer.SharedInformerFactory
	hosts   cache.SharedIndexInformer

	mu      sync.Mutex
	running map[*running]struct{}
}

// running is a request of a host that is being answered, such as a watch.
type running struct {
	host, key string
	cancel    context.CancelCauseFunc
}

// NewRevocation returns a Revocation that reads Hosts with the rights of config. No request is sent yet.
func NewRevocation(config *rest.Config) (*Revocation, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	client = listing{client}
	r := &Revocation{client: client, running: map[*running]struct{}{}}
	r.factory = metadatainformer.NewSharedInformerFactory(client, 0)
	r.hosts = r.factory.ForResource(hostResource).Informer()
	if err := r.hosts.SetTransform(bare); err != nil {
		return nil, err
	}
	_, err = r.hosts.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { r.changed(obj.(*metav1.PartialObjectMetadata)) },
		UpdateFunc: func(_, obj any) { r.changed(obj.(*metav1.PartialObjectMetadata)) },
		DeleteFunc: r.deleted,
	})
	return r, err
}

// bare leaves out who manages which field of a host, which is most of its metadata.
func bare(o any) (any, error) {
	if host, ok := o.(*metav1.PartialObjectMetadata); ok {
		host.ManagedFields = nil
	}
	return o, nil
}

// listing has informers list what there is before they watch. A watch that begins with it ends its beginning with the next
// bookmark, up to a second later, and a server that starts waits for that.
type listing struct{ metadata.Interface }

// IsWatchListSemanticsUnSupported is what client-go asks.
func (listing) IsWatchListSemanticsUnSupported() bool { return true }

// WaitSynced returns once the Hosts are followed, or with an error when ctx ends. Before, a revocation would not end what runs.
func (r *Revocation) WaitSynced(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), r.hosts.HasSynced) {
		return fmt.Errorf("while reading the Hosts: %w", context.Cause(ctx))
	}
	return nil
}

// Run follows the Hosts until ctx ends.
func (r *Revocation) Run(ctx context.Context) {
	r.factory.Start(ctx.Done())
	<-ctx.Done()
	r.factory.Shutdown()
}

// Running counts the requests of each host that are being answered, such as its watches.
func (r *Revocation) Running() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := map[string]int{}
	for q := range r.running {
		n[q.host]++
	}
	return n
}

func (r *Revocation) changed(host *metav1.PartialObjectMetadata) {
	r.end(host.Name, host.Annotations[HostKey])
}

func (r *Revocation) deleted(obj any) {
	if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
		r.end(name, "")
	}
}

// end cuts off the requests of a host that came with another key than the one that is good.
func (r *Revocation) end(host, good string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for q := range r.running {
		if q.host == host && q.key != good {
			q.cancel(fmt.Errorf("the certificate of host %s was revoked", host))
		}
	}
}

// Guard answers requests that a certificate which counts no more came with, and passes all others on.
func (r *Revocation) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		host, ok := requester(q)
		if !ok {
			next.ServeHTTP(w, q)
			return
		}
		key := pki.Fingerprint(q.TLS.PeerCertificates[0])
		ctx, done := r.track(q.Context(), host, key)
		defer func() {
			if task := routine.TaskFrom(ctx); task != nil && task.Func != nil {
				context.AfterFunc(q.Context(), done) // a watch has only begun when next returns: the library serves it after that
				return
			}
			done()
		}()
		if err := r.Check(ctx, host, key); err != nil {
			refuse(w, q, err)
			return
		}
		next.ServeHTTP(w, q.WithContext(ctx))
	})
}

// requester returns the host that a request comes from.
func requester(q *http.Request) (host string, ok bool) {
	u, ok := request.UserFrom(q.Context())
	if !ok || inGroup(u, GroupMasters) || inGroup(u, GroupAdmins) {
		return "", false
	}
	return AgentOf(u)
}

// track comes before the check: a host that is revoked between them is noticed by one or the other.
func (r *Revocation) track(ctx context.Context, host, key string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	q := &running{host, key, cancel}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[q] = struct{}{}
	return ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.running, q)
		cancel(nil)
	}
}

// lookupTimeout bounds the question to etcd.
const lookupTimeout = 10 * time.Second

// Check returns an error of the reason Unauthorized where a host that has this key is let in no more, and another one where that cannot be
// looked up. An empty key stands for any.
func (r *Revocation) Check(ctx context.Context, host, key string) error {
	if obj, ok, _ := r.hosts.GetStore().GetByKey(host); ok && belongs(obj.(*metav1.PartialObjectMetadata), key) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := r.client.Resource(hostResource).Get(ctx, host, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return revoked("host %s was deleted", host)
	case err != nil:
		return apierrors.NewServiceUnavailable(fmt.Sprintf("cannot check now whether host %s has access: %v", host, err))
	case !belongs(found, key):
		return revoked("host %s joined again with another key", host)
	}
	return nil
}

func belongs(host *metav1.PartialObjectMetadata, key string) bool {
	return key == "" || host.Annotations[HostKey] == key
}

func revoked(format, host string) error {
	return apierrors.NewUnauthorized(fmt.Sprintf(format, host) + ", so this certificate is revoked: to add the host again, create a token " +
		"on a server with 'holdfast token create', and start its agent with 'holdfast agent --join TOKEN'; where it runs a server, the token is of " +
		"'holdfast token create --role server', and the start 'holdfast server --join TOKEN'")
}

var codecs = newCodecs()

func newCodecs() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"}, &metav1.Status{})
	return serializer.NewCodecFactory(scheme)
}

func refuse(w http.ResponseWriter, q *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, codecs, schema.GroupVersion{Version: "v1"}, w, q)
}
