package apiserver

import (
	"context"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/registry/rest"
)

// column is a column that 'kubectl get' prints for a core kind. The name comes first and the age last by themselves.
type column struct {
	name  string
	value func(runtime.Object) any
}

var (
	namespaceColumns = []column{{"Status", func(o runtime.Object) any { return string(o.(*corev1.Namespace).Status.Phase) }}}
	secretColumns    = []column{
		{"Type", func(o runtime.Object) any { return string(o.(*corev1.Secret).Type) }},
		{"Data", func(o runtime.Object) any { return strconv.Itoa(len(o.(*corev1.Secret).Data)) }},
	}
	configMapColumns = []column{{"Data", func(o runtime.Object) any { return strconv.Itoa(len(o.(*corev1.ConfigMap).Data)) }}}
	leaseColumns     = []column{{"Holder", func(o runtime.Object) any {
		if holder := o.(*coordinationv1.Lease).Spec.HolderIdentity; holder != nil {
			return *holder
		}
		return ""
	}}}
)

// table prints a kind. It builds on the default, which has the metadata right.
type table struct {
	rest.TableConvertor
	columns []column
}

func newTable(gr schema.GroupResource, columns []column) *table {
	return &table{rest.NewDefaultTableConvertor(gr), columns}
}

// ConvertToTable makes the table of one object or a list.
func (t *table) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	result, err := t.TableConvertor.ConvertToTable(ctx, obj, options)
	if err != nil {
		return nil, err
	}
	name := result.ColumnDefinitions[:min(1, len(result.ColumnDefinitions))]
	definitions := append([]metav1.TableColumnDefinition{}, name...)
	for _, c := range t.columns {
		definitions = append(definitions, metav1.TableColumnDefinition{Name: c.name, Type: "string"})
	}
	if len(name) > 0 { // Later pieces of a watch come without definitions.
		result.ColumnDefinitions = append(definitions, metav1.TableColumnDefinition{Name: "Age", Type: "string"})
	}
	objects := []runtime.Object{obj}
	if meta.IsListType(obj) {
		if objects, err = meta.ExtractList(obj); err != nil {
			return nil, err
		}
	}
	for i, o := range objects {
		result.Rows[i].Cells = t.cells(o)
	}
	return result, nil
}

func (t *table) cells(obj runtime.Object) []any {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil
	}
	cells := []any{accessor.GetName()}
	for _, c := range t.columns {
		cells = append(cells, c.value(obj))
	}
	return append(cells, duration.HumanDuration(time.Since(accessor.GetCreationTimestamp().Time)))
}
