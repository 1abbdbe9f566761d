package events

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// columns are those that Kubernetes prints Events with. Those of priority 1 are for -o wide.
var columns = []metav1.TableColumnDefinition{
	{Name: "Last Seen", Type: "string"},
	{Name: "Type", Type: "string"},
	{Name: "Reason", Type: "string"},
	{Name: "Object", Type: "string"},
	{Name: "Subobject", Type: "string", Priority: 1},
	{Name: "Source", Type: "string", Priority: 1},
	{Name: "Message", Type: "string"},
	{Name: "First Seen", Type: "string", Priority: 1},
	{Name: "Count", Type: "string", Priority: 1},
	{Name: "Name", Type: "string", Format: "name", Priority: 1},
}

// ConvertToTable makes the table of one Event or a list.
func (v *View) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	switch x := object.(type) {
	case *corev1.Event:
		table.ResourceVersion = x.ResourceVersion
		table.Rows = []metav1.TableRow{row(x)}
	case *corev1.EventList:
		table.ListMeta = x.ListMeta
		for i := range x.Items {
			table.Rows = append(table.Rows, row(&x.Items[i]))
		}
	default:
		return nil, fmt.Errorf("%T is no event", object)
	}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		table.ColumnDefinitions = columns
	}
	return table, nil
}

func row(e *corev1.Event) metav1.TableRow {
	seen := duration.HumanDuration(time.Since(e.LastTimestamp.Time))
	object := e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name
	return metav1.TableRow{
		Cells: []any{
			seen, e.Type, e.Reason, object, e.InvolvedObject.FieldPath, e.Source.Component, e.Message,
			seen, fmt.Sprint(e.Count), e.Name,
		},
		Object: runtime.RawExtension{Object: e},
	}
}
