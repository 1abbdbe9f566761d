// Package kube has the parts of kubectl that people expect of every command: KIND/NAME, A,B, -l, -w and
// -o. They are kubectl's own, from k8s.io/kubectl and k8s.io/cli-runtime.
package kube

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Getter tells kubectl's code how to reach the API. It is for one command.
type Getter struct {
	// Config says how to reach the API.
	Config func() (*rest.Config, error)
	// Namespace is where objects are looked for.
	Namespace string

	known discovery.CachedDiscoveryInterface
}

var _ genericclioptions.RESTClientGetter = (*Getter)(nil)

// ToRESTConfig implements genericclioptions.RESTClientGetter.
func (g *Getter) ToRESTConfig() (*rest.Config, error) { return g.Config() }

// ToDiscoveryClient implements genericclioptions.RESTClientGetter.
func (g *Getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	if g.known != nil {
		return g.known, nil
	}
	config, err := g.Config()
	if err != nil {
		return nil, err
	}
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("while connecting to %s: %w", config.Host, err)
	}
	g.known = memory.NewMemCacheClient(c)
	return g.known, nil
}

// ToRESTMapper implements genericclioptions.RESTClientGetter.
func (g *Getter) ToRESTMapper() (meta.RESTMapper, error) {
	known, err := g.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(known)
	return restmapper.NewShortcutExpander(mapper, known, nil), nil
}

// ToRawKubeConfigLoader implements genericclioptions.RESTClientGetter, for the namespace.
func (g *Getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: g.Namespace}}
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), overrides)
}
