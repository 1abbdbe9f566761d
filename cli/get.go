package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/cli/kube"
	"github.com/holdfast-storage/holdfast/internal/spell"
)

// requestTimeout bounds each single request of a command.
const requestTimeout = 30 * time.Second

func newGet(g *globals) *cobra.Command {
	get := kube.NewGet(g.in, g.out, g.err)
	cmd := &cobra.Command{
		Use:   "get KIND[,KIND] [NAME...] | get KIND/NAME...",
		Short: "List objects, or print some",
		Long: `Lists objects, or prints some of them, as 'kubectl get' does: -w shows changes, too, -l selects by labels,
and -o takes wide, name, yaml, json, jsonpath=..., custom-columns=... and go-template=...`,
		Example: `  holdfast get hosts
  holdfast get hosts node1 -o yaml        the devices of a machine, and why one cannot be used
  holdfast get pools,filesystems -A
  holdfast get daemons -w --field-selector spec.host=node1
  holdfast get host/node1 -o jsonpath='{.status.addresses}'`,
		RunE: func(cmd *cobra.Command, args []string) error { return g.get(cmd, get, args) },
	}
	get.Bind(cmd)
	return cmd
}

// getter tells kubectl's code how to reach the API.
func getterOf(g *globals) (*kube.Getter, error) {
	config, err := g.restConfig()
	if err != nil {
		return nil, err
	}
	reach := func() (*rest.Config, error) { return rest.CopyConfig(config), nil }
	return &kube.Getter{Config: reach, Namespace: g.namespace}, nil
}

func (g *globals) get(cmd *cobra.Command, get *kube.Get, args []string) error {
	if len(args) == 0 && !get.FromFiles() {
		return &exitError{exitUsage, errors.New("name a kind, such as hosts: see 'holdfast get --help'")}
	}
	from, err := getterOf(g)
	if err != nil {
		return err
	}
	reach := from.Config
	from.Config = func() (*rest.Config, error) {
		config, err := reach()
		if err == nil && !get.Watches() {
			config.Timeout = requestTimeout
			config.Wrap(func(by http.RoundTripper) http.RoundTripper { return unheardMarker{g, by} })
		}
		return config, err
	}
	if err := knownKinds(from, args); err != nil {
		return err
	}
	err = get.Run(cmd, from, args)
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return &exitError{exitUsage, err}
	}
	return toldMissing(cmd.Context(), g, err)
}

// knownKinds refuses a kind that does not exist, and says which there are.
func knownKinds(from *kube.Getter, args []string) error {
	if len(args) == 0 {
		return nil
	}
	mapper, err := from.ToRESTMapper()
	if err != nil {
		return err
	}
	var kinds []string
	for _, arg := range args {
		if kind, _, named := strings.Cut(arg, "/"); named {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 {
		kinds = strings.Split(args[0], ",")
	}
	for _, kind := range kinds {
		if _, err := findKind(mapper, kind); err != nil {
			return err
		}
	}
	return nil
}

// toldMissing says of each object that does not exist which may have been meant.
func toldMissing(ctx context.Context, g *globals, err error) error {
	if many, ok := err.(utilerrors.Aggregate); ok { //nolint:errorlint // it has no Unwrap
		var all []error
		for _, e := range many.Errors() {
			all = append(all, toldMissing(ctx, g, e))
		}
		return errors.Join(all...)
	}
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return err
	}
	details := status.Status().Details
	_, mapping, mapErr := g.request(details.Kind, false)
	if mapErr != nil || details.Name == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return g.noSuch(ctx, mapping, details.Name)
}

// noSuch says that there is no object of this name, and which may have been meant.
func (g *globals) noSuch(ctx context.Context, mapping *meta.RESTMapping, name string) error {
	text := fmt.Sprintf("%s %s does not exist", strings.ToLower(mapping.GroupVersionKind.Kind), name)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		text += " in namespace " + g.namespace
	}
	if request, _, err := g.request(mapping.Resource.Resource, false); err == nil {
		var list metav1.PartialObjectMetadataList
		body, err := request.Do(ctx).Raw()
		if err == nil && json.Unmarshal(body, &list) == nil {
			names := make([]string, len(list.Items))
			for i := range list.Items {
				names[i] = list.Items[i].Name
			}
			if like := spell.Nearest(name, names); like != "" {
				text += fmt.Sprintf(": did you mean %s?", like)
			}
		}
	}
	return &exitError{exitRefused, errors.New(text)}
}

// request starts a GET of the objects of this kind.
func (g *globals) request(kind string, all bool) (*rest.Request, *meta.RESTMapping, error) {
	config, err := g.restConfig()
	if err != nil {
		return nil, nil, err
	}
	mapper, err := g.mapper(config)
	if err != nil {
		return nil, nil, err
	}
	mapping, err := findKind(mapper, kind)
	if err != nil {
		return nil, nil, err
	}
	gv := mapping.GroupVersionKind.GroupVersion()
	config.GroupVersion = &gv
	config.APIPath = "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	rc, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("while connecting to %s: %w", config.Host, err)
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace && !all
	return rc.Get().NamespaceIfScoped(g.namespace, namespaced).Resource(mapping.Resource.Resource), mapping, nil
}

func findKind(mapper meta.RESTMapper, kind string) (*meta.RESTMapping, error) {
	resource := schema.GroupVersionResource{Resource: strings.ToLower(kind)}
	gvk, err := mapper.KindFor(resource)
	if err != nil {
		if meta.IsNoMatchError(err) {
			return nil, &exitError{exitUsage, fmt.Errorf("kind %q does not exist: try hosts, storageclusters, storagenodes, "+
				"storagestatuses, volumes, nfsexports, daemons or clusterevents", kind)}
		}
		return nil, fmt.Errorf("while reading the kinds of the server: %w", err)
	}
	return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}
