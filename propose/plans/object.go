package plans

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// What becomes of an object, in words.
const (
	created   = "new"
	changed   = "changed"
	unchanged = "unchanged"
	deleted   = "deleted"
)

// ObjectChange is what applying an object changes of it. live is nil for one that does not exist;
// after is what it becomes, nil for one that is deleted.
func ObjectChange(name string, live, after *unstructured.Unstructured) Change {
	c := Change{Verb: VerbApply, Object: name, Reason: changed}
	switch {
	case after == nil:
		c.Verb, c.Reason = VerbDelete, deleted
		return c
	case live == nil:
		c.Reason = created
	}
	if c.Fields = Differences(Fields(live), Fields(after)); len(c.Fields) == 0 {
		c.Reason = unchanged
	}
	if after.GetKind() == "Secret" {
		for i := range c.Fields {
			c.Fields[i].Old, c.Fields[i].New = "(hidden)", "(hidden)"
		}
	}
	return c
}

// WhoChanged says who wrote last to an object, and when. Statuses do not count.
func WhoChanged(o metav1.Object) string {
	var last *metav1.Time
	var who []string
	for _, m := range o.GetManagedFields() {
		switch {
		case m.Subresource != "" || m.Time == nil || last != nil && m.Time.Before(last):
			continue
		case last == nil || last.Before(m.Time):
			last, who = m.Time, nil
		}
		if !slices.Contains(who, m.Manager) {
			who = append(who, m.Manager) // the API tells times in whole seconds: of two in one of them nobody knows who was later
		}
	}
	if last == nil {
		return "by another user"
	}
	slices.Sort(who)
	return fmt.Sprintf("by %s at %s", strings.Join(who, " or "), last.UTC().Format(time.RFC3339))
}

// Unstructured is an object of one of our kinds without its type.
func Unstructured(kind string, o runtime.Object) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		panic(err) // our own types can be converted
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(api.GroupVersion.WithKind(kind))
	return u
}
