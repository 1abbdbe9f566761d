// Package gone says to people what happens to an object that was deleted: what the deletion waits for, and what becomes
// of the data.
package gone

import (
	"fmt"
	"io"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// quiet is how long a deletion takes until it is said what it waits for.
const quiet = 2 * time.Second

// Data says what becomes of the data of an object when it is deleted. It is empty for one without data.
func Data(u *unstructured.Unstructured) string {
	policy, _, _ := unstructured.NestedString(u.Object, "spec", "deletionPolicy")
	switch api.DeletionPolicy(policy) {
	case api.DeletionRetain:
		return "; its data is kept (deletionPolicy Retain)"
	case api.DeletionWipe:
		return "; its data is destroyed (deletionPolicy Wipe)"
	}
	return ""
}

// Teller says what a deletion waits for, whenever that changes.
type Teller struct {
	Out   io.Writer
	Name  string
	Since time.Time
	told  string
}

// Tell says what an object that is still there waits for.
func (t *Teller) Tell(u *unstructured.Unstructured, now time.Time) {
	text := waitsFor(u)
	plain := duration.ReplaceAllString(text, "…")
	if t.Out == nil || now.Sub(t.Since) < quiet || plain == t.told {
		return
	}
	t.told = plain
	fmt.Fprintf(t.Out, "waiting until %s is gone: %s\n", t.Name, text)
}

// duration is what changes in a message although nothing else does.
var duration = regexp.MustCompile(`\d+(\.\d+)?(ms|s|m|h)\b`)

// waitsFor is the object's own word, or who holds it.
func waitsFor(u *unstructured.Unstructured) string {
	for _, kind := range []string{api.ConditionStalled, api.ConditionReconciling, api.ConditionReady} {
		if text := message(u, kind); text != "" {
			return text
		}
	}
	if holders := u.GetFinalizers(); len(holders) > 0 {
		return fmt.Sprintf("its finalizers %s are there", holders)
	}
	return "the server removes it"
}

// message is that of a condition which says that the object is not as desired.
func message(u *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		m, ok := c.(map[string]any)
		if !ok || m["type"] != kind || (m["status"] == "True") == (kind == api.ConditionReady) {
			continue
		}
		text, _ := m["message"].(string)
		return text
	}
	return ""
}
