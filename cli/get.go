package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// requestTimeout bounds each single request of a command.
const requestTimeout = 30 * time.Second

func newGet(g *globals) *cobra.Command {
	var output string
	var all bool
	cmd := &cobra.Command{
		Use:   "get KIND [NAME]",
		Short: "Show objects: hosts, storageclusters, storagenodes, storagestatuses, daemons, clusterevents …",
		Example: `  holdfast get hosts
  holdfast get hosts node1 -o yaml        the devices of a machine, and why one cannot be used
  holdfast get daemons
  holdfast get clusterevents`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" && output != "yaml" && output != "json" {
				return &exitError{exitUsage, fmt.Errorf("-o %s is not known: use yaml or json", output)}
			}
			return g.get(cmd.Context(), args, output, all)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "yaml or json instead of a table")
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "show the objects of all namespaces")
	return cmd
}

func (g *globals) get(ctx context.Context, args []string, output string, all bool) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := g.request(args[0], all)
	if err != nil {
		return err
	}
	if len(args) == 2 {
		request = request.Name(args[1])
	}
	if output == "" {
		request = request.SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	}
	body, err := request.Do(ctx).Raw()
	if err != nil {
		return decodeStatus(body, err)
	}
	if output != "" {
		return printObject(g.out, body, output)
	}
	return printTable(g.out, body, all)
}

// request starts a GET of the objects of this kind.
func (g *globals) request(kind string, all bool) (*rest.Request, error) {
	config, err := g.restConfig()
	if err != nil {
		return nil, err
	}
	mapper, err := g.mapper(config)
	if err != nil {
		return nil, err
	}
	mapping, err := findKind(mapper, kind)
	if err != nil {
		return nil, err
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
		return nil, fmt.Errorf("while connecting to %s: %w", config.Host, err)
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace && !all
	return rc.Get().NamespaceIfScoped(g.namespace, namespaced).Resource(mapping.Resource.Resource), nil
}

func findKind(mapper meta.RESTMapper, kind string) (*meta.RESTMapping, error) {
	resource := schema.GroupVersionResource{Resource: strings.ToLower(kind)}
	gvk, err := mapper.KindFor(resource)
	if err != nil {
		if meta.IsNoMatchError(err) {
			return nil, &exitError{exitUsage, fmt.Errorf("there is no kind %q: try hosts, storageclusters, storagenodes, storagestatuses, daemons or clusterevents", kind)}
		}
		return nil, fmt.Errorf("while asking the server for its kinds: %w", err)
	}
	return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// decodeStatus makes the server's own words of an error that carries only its HTTP code.
func decodeStatus(body []byte, err error) error {
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		return errors.New(status.Message)
	}
	return err
}

func printObject(w io.Writer, body []byte, output string) error {
	var u unstructured.Unstructured
	if err := json.Unmarshal(body, &u.Object); err != nil {
		return fmt.Errorf("while reading the server's answer: %w", err)
	}
	dropManagedFields(u.Object)
	data, err := yaml.Marshal(u.Object)
	if output == "json" {
		data, err = json.MarshalIndent(u.Object, "", "  ")
		data = append(data, '\n')
	}
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// dropManagedFields removes bookkeeping that nobody reads from an object or a list.
func dropManagedFields(o map[string]any) {
	unstructured.RemoveNestedField(o, "metadata", "managedFields")
	items, _ := o["items"].([]any)
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			unstructured.RemoveNestedField(m, "metadata", "managedFields")
		}
	}
}

func printTable(w io.Writer, body []byte, namespaces bool) error {
	var table metav1.Table
	if err := json.Unmarshal(body, &table); err != nil {
		return fmt.Errorf("while reading the server's answer: %w", err)
	}
	if len(table.Rows) == 0 {
		_, err := fmt.Fprintln(w, "there are none")
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	writeRow(tw, namespaces, "NAMESPACE", headings(table))
	for _, row := range table.Rows {
		writeRow(tw, namespaces, rowNamespace(row), cells(table, row))
	}
	return tw.Flush()
}

func writeRow(w io.Writer, namespaces bool, namespace string, cells []string) {
	if namespaces {
		cells = append([]string{namespace}, cells...)
	}
	fmt.Fprintln(w, strings.Join(cells, "\t"))
}

func headings(t metav1.Table) []string {
	var names []string
	for _, c := range t.ColumnDefinitions {
		if c.Priority == 0 {
			names = append(names, strings.ToUpper(c.Name))
		}
	}
	return names
}

func cells(t metav1.Table, row metav1.TableRow) []string {
	var values []string
	for i, c := range t.ColumnDefinitions {
		if c.Priority == 0 {
			values = append(values, cell(c, row.Cells[i]))
		}
	}
	return values
}

func cell(c metav1.TableColumnDefinition, value any) string {
	if value == nil {
		return "-"
	}
	s := fmt.Sprint(value)
	if c.Type == "date" {
		if t, err := time.Parse(time.RFC3339, s); err == nil {
			return duration.HumanDuration(time.Since(t))
		}
	}
	return s
}

func rowNamespace(row metav1.TableRow) string {
	var o metav1.PartialObjectMetadata
	if json.Unmarshal(row.Object.Raw, &o) != nil {
		return ""
	}
	return o.Namespace
}
