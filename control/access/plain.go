package access

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// maxKey bounds the keys of what a host reports, in bytes.
const maxKey = 63

// plain refuses what a host reports if any text in it holds what a terminal acts on, or a byte that is no text. The schema
// bounds each text and gives most of them a format; this holds for all, those that are added later too.
func plain(path string, value any) error {
	switch x := value.(type) {
	case string:
		if words.Visible(x) != x {
			return fmt.Errorf("%s has characters that are not printable: an agent writes them as escapes; upgrade the agent of this host", path)
		}
	case []any:
		for i, item := range x {
			if err := plain(fmt.Sprintf("%s[%d]", path, i), item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			if len(key) > maxKey || words.Visible(key) != key || strings.ContainsAny(key, "\n\t") {
				return fmt.Errorf("%s has a key that is longer than %d bytes or not printable", path, maxKey)
			}
			if err := plain(path+"."+key, x[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// plainStatus is plain for the status of an object.
func plainStatus(object map[string]any) error { return plain("status", object["status"]) }

// hostConditions are the conditions of its Host that a host writes. The leader writes the others, and believes them.
var hostConditions = []string{api.HostEncryption, api.HostClockInSync, api.HostDirectoryWritable}

// leadersConditions are the conditions of a Host that its agent does not write.
func leadersConditions(object map[string]any) []any {
	all, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	return slices.DeleteFunc(all, func(c any) bool {
		fields, _ := c.(map[string]any)
		kind, _ := fields["type"].(string)
		return slices.Contains(hostConditions, kind)
	})
}

// sameConditions refuses a host's change of a condition that the leader writes, or of the
// generation that they speak of.
func sameConditions(before, after map[string]any) error {
	seen, _, _ := unstructured.NestedInt64(before, "status", "observedGeneration")
	if sees, _, _ := unstructured.NestedInt64(after, "status", "observedGeneration"); sees != seen {
		return errors.New("a host may not write status.observedGeneration of its Host: the leader writes it")
	}
	had, has := leadersConditions(before), leadersConditions(after)
	if len(had) == 0 && len(has) == 0 || reflect.DeepEqual(had, has) {
		return nil
	}
	return fmt.Errorf("a host may write only the conditions %s of its Host; the leader writes the others",
		strings.Join(hostConditions, ", "))
}
