package apiserver

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	crdoptions "k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/apiserver/pkg/storage/value/encrypt/secretbox"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// prefix is where everything lies in etcd.
const prefix = "/registry"

// Etcd says how to reach etcd.
type Etcd struct {
	URL                       string
	CertFile, KeyFile, CAFile string
}

// The library would keep, for each change of the last minute, what a whole list held then, so that lists in parts can be read from
// its cache. Etcd has that, too, and such lists are rare.
//
// It would serve a watch for its whole life on the stack on which the request was checked, of 32 KB: that of a fresh goroutine has 8. A watch
// gives its seat (shares) back before what there is was sent, then: for an agent that is a dozen objects.
func init() {
	utilruntime.Must(utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{
		string(features.ListFromCacheSnapshot): false, string(features.APIServingWithRoutine): true,
	}))
}

func (e *Etcd) options(codec runtime.Codec) *options.EtcdOptions {
	o := options.NewEtcdOptions(storagebackend.NewDefaultConfig(prefix, codec))
	o.StorageConfig.Transport.ServerList = []string{e.URL}
	o.StorageConfig.Transport.CertFile = e.CertFile
	o.StorageConfig.Transport.KeyFile = e.KeyFile
	o.StorageConfig.Transport.TrustedCAFile = e.CAFile
	// Counting all objects once a minute feeds a metric alone, and keeps an idle server busy.
	o.StorageConfig.CountMetricPollPeriod = 0
	// What was is needed for watches that begin again and lists in parts, which take seconds. A database with five minutes of a fleet's
	// bring-up in it is some times as large, for good, and most of it in memory.
	o.StorageConfig.CompactionInterval = time.Minute
	// There is no garbage collector, so nothing would ever take its finalizers away again.
	o.EnableGarbageCollection = false
	return o
}

// extensions is for the CustomResourceDefinitions, custom for the objects that they define, core for the core kinds.
func (e *Etcd) extensions(t transformers) generic.RESTOptionsGetter {
	return getter(e.options(extensions.Codecs.LegacyCodec(extensionsv1.SchemeGroupVersion)), t)
}

func (e *Etcd) custom(t transformers) generic.RESTOptionsGetter {
	o := e.options(extensions.Codecs.LegacyCodec(extensionsv1.SchemeGroupVersion))
	return fencedOptions{untrackedOptions{hostOptions{uncachedOptions{sharingOptions{crdoptions.NewCRDRESTOptionsGetter(*o, t, nil)}}}}}
}

func (e *Etcd) core(t transformers) generic.RESTOptionsGetter {
	return getter(e.options(coreCodecs.LegacyCodec(corev1.SchemeGroupVersion, coordinationv1.SchemeGroupVersion)), t)
}

func getter(o *options.EtcdOptions, t transformers) generic.RESTOptionsGetter {
	return fencedOptions{untrackedOptions{uncachedOptions{o.CreateRESTOptionsGetter(&options.SimpleStorageFactory{StorageConfig: o.StorageConfig}, t)}}}
}

// transformers encrypt what has to be secret on its way to etcd.
type transformers map[schema.GroupResource]value.Transformer

// secretTransformers encrypts Secrets. The prefix says which key was used, so that keys can be changed later. A Secret that
// is not encrypted is not accepted: it could only have been put there past the API.
func secretTransformers(key [32]byte) transformers {
	return transformers{corev1.Resource("secrets"): value.NewPrefixTransformers(nil, value.PrefixTransformer{
		Prefix:      []byte("k8s:enc:secretbox:v1:key1:"),
		Transformer: secretbox.NewSecretboxTransformer(key),
	})}
}

// TransformerForResource returns what encrypts a resource, or leaves it as it is.
func (t transformers) TransformerForResource(gr schema.GroupResource) value.Transformer {
	if transformer, ok := t[gr]; ok {
		return transformer
	}
	return identity.NewEncryptCheckTransformer()
}
