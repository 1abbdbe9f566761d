package apiserver

import (
	extensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/tools/cache"
)

// crdHook is the library's hook for the time after the start that waits until the definitions that there are are known. It fails when the server is
// told to stop before, and a hook that fails ends the process on the spot (klog.Fatalf): nothing would be put in order. The library's other hooks end
// without an error. definitionsHook takes its place.
const (
	crdHook         = "crd-informer-synced"
	definitionsHook = "definitions-known"
)

// crdSignal is given by crdHook, and would never be. Only Kubernetes' own server asks for it, for whom others serve what it does not.
const crdSignal = "CRDInformerHasNotSynced"

// awaitDefinitions has the server not be ready until the definitions that there are are known, as the library's hook would, and lets it be stopped before.
func awaitDefinitions(ext *extensions.CustomResourceDefinitions) error {
	server, definitions := ext.GenericAPIServer, ext.Informers.Apiextensions().V1().CustomResourceDefinitions().Informer()
	delete(server.MuxAndDiscoveryCompleteSignals(), crdSignal)
	return server.AddPostStartHook(definitionsHook, func(hook genericapiserver.PostStartHookContext) error {
		cache.WaitForCacheSync(hook.Done(), definitions.HasSynced)
		return nil
	})
}
