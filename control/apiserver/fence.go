package apiserver

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"

	"github.com/holdfast-storage/holdfast/internal/fence"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// passFences takes the fence tokens of a request along to etcd. Only the servers themselves may send any: who could set a
// fence could end another server's leadership.
func passFences(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		need, set := r.Header.Get(fence.Header), r.Header.Get(fence.SetHeader)
		if need == "" && set == "" {
			api.ServeHTTP(w, r)
			return
		}
		if !mayFence(r, set != "") {
			http.Error(w, "the headers "+fence.Header+" and "+fence.SetHeader+" are for servers alone", http.StatusForbidden)
			return
		}
		for _, header := range []string{need, set} {
			if _, err := fence.Parse(header); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		}
		w.Header().Set(fence.KeptHeader, "true")
		ctx := r.Context()
		for key, value := range map[string]string{fence.MetadataKey: need, fence.SetMetadataKey: set} {
			if value != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, key, value)
			}
		}
		api.ServeHTTP(w, r.WithContext(ctx))
	})
}

// mayFence says whether the sender of a request may use fences: the servers, and the leader in the
// name of 'ceph orch', which sets none.
func mayFence(r *http.Request, sets bool) bool {
	u, ok := request.UserFrom(r.Context())
	if !ok {
		return false
	}
	_, orch := wire.ClusterOf(u.GetName(), u.GetGroups())
	return slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) || orch && !sets
}

// fencedOptions makes storages whose errors say in plain words that a fence is lost.
type fencedOptions struct{ generic.RESTOptionsGetter }

// GetRESTOptions returns the options of one resource.
func (f fencedOptions) GetRESTOptions(gr schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	o, err := f.RESTOptionsGetter.GetRESTOptions(gr, example)
	if err != nil {
		return o, err
	}
	return around(o, func(s storage.Interface) storage.Interface { return &fencedStorage{s, gr} }), nil
}

// fencedStorage turns etcd's word that a fence is lost into a refusal that clients understand.
type fencedStorage struct {
	storage.Interface
	resource schema.GroupResource
}

func (s *fencedStorage) refusal(key string, err error) error {
	st, ok := status.FromError(err)
	if err == nil || !ok || st.Code() != codes.FailedPrecondition || !strings.HasPrefix(st.Message(), fence.LostPrefix) {
		return err
	}
	why := strings.TrimSpace(strings.TrimPrefix(st.Message(), fence.LostPrefix))
	return fence.NewRefusal(s.resource, key[strings.LastIndexByte(key, '/')+1:], "the writer was replaced: "+why)
}

// Create stores a new object.
func (s *fencedStorage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	return s.refusal(key, s.Interface.Create(ctx, key, obj, out, ttl))
}

// Delete removes an object.
func (s *fencedStorage) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions,
) error {
	return s.refusal(key, s.Interface.Delete(ctx, key, out, preconditions, validate, cached, opts))
}

// GuaranteedUpdate changes an object.
func (s *fencedStorage) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cached runtime.Object,
) error {
	return s.refusal(key, s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, cached))
}
