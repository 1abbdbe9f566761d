package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// What 'get -o yaml' prints is edited and applied. It carries the object's resourceVersion, by which nothing is written over that somebody else has
// changed since; but the status of what lives changes every few seconds, and that is none of their business.

// asRead is a document without what the server keeps itself, and, where it was read from the server, without what was asked for at some moment: such a
// request is not made again, and belongs to who made it.
func (o object) asRead() object {
	u := o.DeepCopy()
	if o.wasRead() {
		for _, request := range []string{api.AnnotationOrchestrate, api.AnnotationStart} {
			unstructured.RemoveNestedField(u.Object, "metadata", "annotations", request)
		}
	}
	for _, field := range []string{"resourceVersion", "uid", "generation", "creationTimestamp", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	return object{u, o.source, o.file}
}

// wasRead says whether a document was read from the server, and not written by hand.
func (o object) wasRead() bool { return o.GetResourceVersion() != "" || o.GetUID() != "" }

// outdated says whether an object is not any more what a document was made from, as far as that says what it was: by its generation, which counts the
// changes of what is wanted, or else by its resourceVersion.
func (o object) outdated(live *unstructured.Unstructured) bool {
	switch {
	case !o.wasRead():
		return false
	case live == nil || o.GetUID() != "" && o.GetUID() != live.GetUID():
		return true
	case o.GetResourceVersion() == "" || o.GetResourceVersion() == live.GetResourceVersion():
		return false
	}
	return o.generation() != strconv.FormatInt(live.GetGeneration(), 10)
}

// generation is that of a document, whose numbers are of another type than those of an answer of the server.
func (o object) generation() string {
	n, _, _ := unstructured.NestedFieldNoCopy(o.Object, "metadata", "generation")
	return fmt.Sprint(n)
}

// checkAsRead refuses a document that was made from an object as it was before somebody else changed it, with what it would change now.
func checkAsRead(document object, t target) error {
	switch {
	case !document.outdated(t.live):
		return nil
	case t.live == nil || document.GetUID() != "" && document.GetUID() != t.live.GetUID():
		return &exitError{exitRefused, errors.New("the object in this file was deleted since you read it: to create it " +
			"again, remove metadata.uid and metadata.resourceVersion")}
	}
	mine := plans.Differences(plans.Fields(t.live), plans.Fields(t.after))
	if len(mine) == 0 {
		return nil
	}
	lines := make([]string, len(mine))
	for i, c := range mine {
		lines[i] = c.String()
	}
	return &exitError{exitRefused, fmt.Errorf("the object changed %s, after you read it. The file would now change:\n "+
		" %s\nRead the object again, or remove metadata.resourceVersion to make these changes",
		plans.WhoChanged(t.live), strings.Join(lines, "\n  "))}
}
