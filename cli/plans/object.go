package plans

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What becomes of an object, in words.
const (
	created   = "new"
	changed   = "changed"
	unchanged = "unchanged"
	deleted   = "deleted"
)

// ObjectChange is what applying an object changes of it. live is nil for one that does not exist; after is what it becomes, nil
// for one that is deleted.
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
