package events

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
)

const fieldUID = "involvedObject.uid"

// Fields are the fields of an Event that it is selected by, such as by 'kubectl describe'.
func Fields(e *corev1.Event) fields.Set {
	return fields.Set{
		"metadata.name":                  e.Name,
		"metadata.namespace":             e.Namespace,
		"involvedObject.kind":            e.InvolvedObject.Kind,
		"involvedObject.namespace":       e.InvolvedObject.Namespace,
		"involvedObject.name":            e.InvolvedObject.Name,
		fieldUID:                         string(e.InvolvedObject.UID),
		"involvedObject.apiVersion":      e.InvolvedObject.APIVersion,
		"involvedObject.resourceVersion": e.InvolvedObject.ResourceVersion,
		"involvedObject.fieldPath":       e.InvolvedObject.FieldPath,
		"reason":                         e.Reason,
		"reportingComponent":             e.ReportingController,
		"source":                         e.Source.Component,
		"type":                           e.Type,
	}
}

// selection is what a list or watch selects. The UID of an object has to be looked up, so that it
// is asked for last.
type selection struct {
	withoutUID, all fields.Selector
	byUID           bool
}

func newSelection(options *internalversion.ListOptions) (selection, error) {
	if options == nil || options.FieldSelector == nil {
		return selection{withoutUID: fields.Everything(), all: fields.Everything()}, nil
	}
	byUID := false
	cheap, err := options.FieldSelector.Transform(func(field, value string) (string, string, error) {
		if field == fieldUID {
			byUID = true
			return "", "", nil
		}
		return field, value, nil
	})
	return selection{cheap, options.FieldSelector, byUID}, err
}

// selected says whether an Event is, and gives it the UID of its object.
func (v *View) selected(ctx context.Context, known *identities, selects selection, e *corev1.Event) bool {
	if !selects.withoutUID.Matches(Fields(e)) {
		return false
	}
	v.identify(ctx, known, e)
	return selects.all.Matches(Fields(e))
}
