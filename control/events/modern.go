package events

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Modern shows the same Events in the form of the group events.k8s.io, which k9s reads.
type Modern struct{ *View }

var (
	_ rest.Getter  = Modern{}
	_ rest.Lister  = Modern{}
	_ rest.Watcher = Modern{}
)

// New returns an empty Event.
func (m Modern) New() runtime.Object { return &eventsv1.Event{} }

// NewList returns an empty list.
func (m Modern) NewList() runtime.Object { return &eventsv1.EventList{} }

// Get returns one Event.
func (m Modern) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	e, err := m.View.get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return modern(e), nil
}

// List returns those Events that the options select.
func (m Modern) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	found, err := m.View.list(ctx, options)
	if err != nil {
		return nil, err
	}
	list := &eventsv1.EventList{ListMeta: found.ListMeta, Items: make([]eventsv1.Event, len(found.Items))}
	for i := range found.Items {
		list.Items[i] = *modern(&found.Items[i])
	}
	return list, nil
}

// Watch follows the ClusterEvents.
func (m Modern) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	changes, err := m.View.Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	return follow(ctx, changes, func(change watch.Event) (watch.Event, bool) {
		if e, ok := change.Object.(*corev1.Event); ok {
			change.Object = modern(e)
		}
		return change, true
	}), nil
}

// ConvertToTable makes the table of one Event or a list.
func (m Modern) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	switch x := object.(type) {
	case *eventsv1.Event:
		table, err := m.View.ConvertToTable(ctx, classic(x), options)
		if err == nil {
			table.Rows[0].Object.Object = x
		}
		return table, err
	case *eventsv1.EventList:
		list := &corev1.EventList{ListMeta: x.ListMeta}
		for i := range x.Items {
			list.Items = append(list.Items, *classic(&x.Items[i]))
		}
		table, err := m.View.ConvertToTable(ctx, list, options)
		if err != nil {
			return nil, err
		}
		for i := range x.Items {
			table.Rows[i].Object.Object = &x.Items[i]
		}
		return table, nil
	}
	return m.View.ConvertToTable(ctx, object, options)
}

func modern(e *corev1.Event) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: e.ObjectMeta, EventTime: e.EventTime, ReportingController: e.ReportingController,
		ReportingInstance: e.Source.Component, Action: e.Action, Reason: e.Reason, Regarding: e.InvolvedObject,
		Note: e.Message, Type: e.Type, DeprecatedSource: e.Source, DeprecatedFirstTimestamp: e.FirstTimestamp,
		DeprecatedLastTimestamp: e.LastTimestamp, DeprecatedCount: e.Count,
	}
}

func classic(e *eventsv1.Event) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: e.ObjectMeta, EventTime: e.EventTime, ReportingController: e.ReportingController,
		Action: e.Action, Reason: e.Reason, InvolvedObject: e.Regarding, Message: e.Note, Type: e.Type,
		Source: e.DeprecatedSource, FirstTimestamp: e.DeprecatedFirstTimestamp, LastTimestamp: e.DeprecatedLastTimestamp,
		Count: e.DeprecatedCount,
	}
}

// ModernField is the field of a core Event that a field selector of the group events.k8s.io means.
func ModernField(label string) string {
	if rest, ok := strings.CutPrefix(label, "regarding."); ok {
		return "involvedObject." + rest
	}
	if label == "reportingController" {
		return "reportingComponent"
	}
	return label
}
