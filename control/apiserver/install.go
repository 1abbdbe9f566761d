package apiserver

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/holdfast-storage/holdfast/control/events"
)

// core holds the registries of the core kinds.
type core struct {
	namespaces, secrets, configMaps, leases *store
}

func newCore(options generic.RESTOptionsGetter) (*core, error) {
	c := &core{}
	for _, s := range []struct {
		store **store
		kind  *kind
	}{
		{&c.namespaces, &namespaceKind},
		{&c.secrets, &secretKind},
		{&c.configMaps, &configMapKind},
		{&c.leases, &leaseKind},
	} {
		var err error
		if *s.store, err = newStore(s.kind, options); err != nil {
			return nil, err
		}
	}
	c.namespaces.AfterDelete = c.sweep
	return c, nil
}

// install serves the core kinds from the CRD server itself, and not from a server of their own in front of it, so that there
// is one discovery and one OpenAPI document.
func (c *core) install(
	server *genericapiserver.GenericAPIServer, view *events.View, reviews map[string]map[string]rest.Storage,
) error {
	legacy := groupInfo(corev1.GroupName, map[string]rest.Storage{
		"namespaces": c.namespaces, "secrets": c.secrets, "configmaps": c.configMaps, "events": view,
	})
	if err := server.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, &legacy); err != nil {
		return err
	}
	modern := groupInfo(eventsv1.GroupName, map[string]rest.Storage{"events": events.Modern{View: view}})
	if err := server.InstallAPIGroup(&modern); err != nil {
		return err
	}
	for group, storage := range reviews {
		info := groupInfo(group, storage)
		if err := server.InstallAPIGroup(&info); err != nil {
			return err
		}
	}
	coordination := groupInfo(coordinationv1.GroupName, map[string]rest.Storage{"leases": c.leases})
	return server.InstallAPIGroup(&coordination)
}

func groupInfo(group string, storage map[string]rest.Storage) genericapiserver.APIGroupInfo {
	info := genericapiserver.NewDefaultAPIGroupInfo(group, coreScheme, metav1.ParameterCodec, coreCodecs)
	info.VersionedResourcesStorageMap["v1"] = storage
	return info
}
