package apiserver

import (
	"net/http"
	"slices"

	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/tools/cache"
)

// serveGroups serves the list of API groups at /apis. In Kubernetes another server, in front of the CRD server, does this.
func serveGroups(ext *extensions.CustomResourceDefinitions) {
	server := ext.GenericAPIServer
	definitions := ext.Informers.Apiextensions().V1().CustomResourceDefinitions()
	groups := &groupLister{server: server}
	// The error says that the informer was stopped already, which cannot be: it is not started yet.
	_, _ = definitions.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { groups.add(obj) },
		UpdateFunc: func(_, obj any) { groups.add(obj) },
	})
	handler := aggregated.WrapAggregatedDiscoveryToHandler(server.DiscoveryGroupManager, server.AggregatedDiscoveryGroupManager, nil)
	mux := server.Handler.NonGoRestfulMux
	mux.Unregister("/apis")
	mux.Handle("/apis", http.HandlerFunc(handler.ServeHTTP))
}

// groupLister puts the groups of custom resources on the list. A group stays there when its last definition is deleted,
// until the server starts anew; it is empty then, which clients accept.
type groupLister struct {
	server *genericapiserver.GenericAPIServer
}

func (l *groupLister) add(obj any) {
	definition, ok := obj.(*extensionsv1.CustomResourceDefinition)
	if !ok {
		return
	}
	group := metav1.APIGroup{Name: definition.Spec.Group}
	for _, v := range definition.Spec.Versions {
		if v.Served {
			gv := metav1.GroupVersionForDiscovery{GroupVersion: group.Name + "/" + v.Name, Version: v.Name}
			group.Versions = append(group.Versions, gv)
		}
	}
	if len(group.Versions) == 0 {
		return
	}
	slices.Reverse(group.Versions)
	group.PreferredVersion = group.Versions[0]
	l.server.DiscoveryGroupManager.AddGroup(group)
}
