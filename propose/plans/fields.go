package plans

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// unset is shown for a field that is not there.
const unset = "(unset)"

// FieldChange is a field that becomes another.
type FieldChange struct{ Path, Old, New string }

func (c FieldChange) String() string { return c.Path + ": " + c.Old + " -> " + c.New }

// Fields are the fields of an object that people write, by their paths: everything but the status and what the server itself
// keeps. An object that is nil has none.
func Fields(u *unstructured.Unstructured) map[string]string {
	fields := map[string]string{}
	if u == nil {
		return fields
	}
	for key, value := range u.Object {
		switch key {
		case "apiVersion", "kind", "status":
		case "metadata":
			metadata, _ := value.(map[string]any)
			for _, part := range []string{"labels", "annotations"} {
				flatten(fields, "metadata."+part, metadata[part])
			}
		default:
			flatten(fields, key, value)
		}
	}
	if u.GetDeletionTimestamp() != nil {
		fields["deletion"] = "asked for"
	}
	return fields
}

// flatten takes a map apart. Lists are values: an entry that is added shows the whole list. An empty one is none: the server takes a list without
// entries away when it is emptied, and keeps it when it was not there.
func flatten(fields map[string]string, path string, value any) {
	switch v := value.(type) {
	case nil:
	case map[string]any:
		for key, inner := range v {
			flatten(fields, join(path, key), inner)
		}
	case []any:
		if len(v) > 0 {
			fields[path] = jsonText(v)
		}
	case string:
		fields[path] = plainString(v)
	default:
		fields[path] = jsonText(v)
	}
}

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// join quotes a key that has dots of its own, such as a label's.
func join(path, key string) string {
	if strings.ContainsAny(key, "./") {
		return path + "[" + key + "]"
	}
	return path + "." + key
}

// plainString quotes what could be taken for several words or lines.
func plainString(s string) string {
	if s == "" || strings.ContainsAny(s, " \t\n\r\"") {
		return fmt.Sprintf("%q", s)
	}
	return s
}

// Differences are the fields that differ, by path.
func Differences(from, to map[string]string) []FieldChange {
	all := maps.Clone(from)
	maps.Copy(all, to)
	var changes []FieldChange
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if c := (FieldChange{path, valueOf(from, path), valueOf(to, path)}); c.Old != c.New {
			changes = append(changes, c)
		}
	}
	return changes
}

func valueOf(fields map[string]string, path string) string {
	if v, ok := fields[path]; ok {
		return v
	}
	return unset
}
