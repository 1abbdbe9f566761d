package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/spell"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// requestTimeout bounds each single request of a command.
const requestTimeout = 30 * time.Second

func newGet(g *globals) *cobra.Command {
	var output string
	var all bool
	cmd := &cobra.Command{
		Use:   "get KIND [NAME]",
		Short: "List objects, or print one",
		Example: `  holdfast get hosts
  holdfast get hosts node1 -o yaml        the devices of a machine, and why one cannot be used
  holdfast get daemons
  holdfast get clusterevents`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{"", "wide", "name", "yaml", "json"}, output) {
				return &exitError{exitUsage, fmt.Errorf("unknown output format -o %s: use wide, name, yaml or json", output)}
			}
			return g.get(cmd.Context(), args, output, all)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "wide (more columns), name (only names), yaml or json")
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "list the objects of all namespaces")
	return cmd
}

func (g *globals) get(ctx context.Context, args []string, output string, all bool) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, mapping, err := g.request(args[0], all)
	if err != nil {
		return err
	}
	if len(args) == 2 {
		request = request.Name(args[1])
	}
	if table := output != "yaml" && output != "json"; table {
		request = request.SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	}
	body, err := request.Do(ctx).Raw()
	switch {
	case apierrors.IsNotFound(err) && len(args) == 2:
		return g.noSuch(ctx, mapping, args[1])
	case err != nil:
		return decodeStatus(body, err)
	case output == "yaml", output == "json":
		return printObject(g.out, body, output)
	case output == "name":
		return printNames(g.out, body, mapping)
	}
	var t metav1.Table
	if err := json.Unmarshal(body, &t); err != nil {
		return fmt.Errorf("while reading the server's answer: %w", err)
	}
	if mapping.GroupVersionKind.Kind == engine.KindDaemon {
		if err := g.markUnheard(ctx, &t); err != nil {
			return err
		}
	}
	return printTable(g.out, &t, all, output == "wide")
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
		data = []byte(words.JSON(string(data)) + "\n")
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

// printNames writes what other commands take as a name, such as host.holdfast.io/h1, a line each.
func printNames(w io.Writer, body []byte, mapping *meta.RESTMapping) error {
	var table metav1.Table
	if err := json.Unmarshal(body, &table); err != nil {
		return fmt.Errorf("while reading the server's answer: %w", err)
	}
	kind := mapping.GroupVersionKind.GroupKind()
	kind.Kind = strings.ToLower(kind.Kind)
	for _, row := range table.Rows {
		if _, err := fmt.Fprintf(w, "%s/%s\n", kind, metadataOf(row).Name); err != nil {
			return err
		}
	}
	return nil
}

func printTable(w io.Writer, t *metav1.Table, namespaces, wide bool) error {
	if !wide {
		narrow(t)
	}
	if len(t.Rows) == 0 {
		_, err := fmt.Fprintln(w, "there are none")
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	writeRow(tw, namespaces, "NAMESPACE", headings(t))
	for _, row := range t.Rows {
		writeRow(tw, namespaces, metadataOf(row).Namespace, cells(t, row))
	}
	return tw.Flush()
}

func writeRow(w io.Writer, namespaces bool, namespace string, cells []string) {
	if namespaces {
		cells = append([]string{namespace}, cells...)
	}
	fmt.Fprintln(w, strings.Join(cells, "\t"))
}

func headings(t *metav1.Table) []string {
	var names []string
	for _, c := range t.ColumnDefinitions {
		names = append(names, strings.ToUpper(c.Name))
	}
	return names
}

func cells(t *metav1.Table, row metav1.TableRow) []string {
	var values []string
	for i, c := range t.ColumnDefinitions {
		values = append(values, cell(c, row.Cells[i]))
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

// metadataOf is what a row tells of its object beside its cells.
func metadataOf(row metav1.TableRow) metav1.ObjectMeta {
	var o metav1.PartialObjectMetadata
	if json.Unmarshal(row.Object.Raw, &o) != nil {
		return metav1.ObjectMeta{}
	}
	return o.ObjectMeta
}

// narrow leaves out the columns that are of use now and then.
func narrow(t *metav1.Table) {
	for i, c := range slices.Backward(t.ColumnDefinitions) {
		if c.Priority == 0 {
			continue
		}
		t.ColumnDefinitions = slices.Delete(t.ColumnDefinitions, i, i+1)
		for r := range t.Rows {
			t.Rows[r].Cells = slices.Delete(t.Rows[r].Cells, i, i+1)
		}
	}
}
