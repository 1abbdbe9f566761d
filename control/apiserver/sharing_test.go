package apiserver

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

func decode(t rapid.TB, c runtime.Codec, object map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	o, _, err := c.Decode(text, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return o.(*unstructured.Unstructured).Object
}

func same(a, b any) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }

// TestSharingCodec: what is equal in two versions of an object is one thing, and its metadata is each version's own.
func TestSharingCodec(t *testing.T) {
	c := &sharingCodec{Codec: unstructured.UnstructuredJSONScheme}
	daemon := func(uid, state string) map[string]any {
		return map[string]any{
			"apiVersion": "holdfast.io/v1alpha1", "kind": "Daemon", "metadata": map[string]any{"name": "a", "uid": uid},
			"spec":   map[string]any{"host": "h1", "command": []any{"ceph-osd", "-i", "1"}},
			"status": map[string]any{"state": state, "exit": map[string]any{"reason": "exit code 1"}},
		}
	}
	first, second, other := decode(t, c, daemon("1", "Running")), decode(t, c, daemon("1", "BackOff")), decode(t, c, daemon("2", "Running"))
	if !same(first["spec"], second["spec"]) {
		t.Error("two versions have each their own spec")
	}
	was, is := first["status"].(map[string]any), second["status"].(map[string]any)
	if same(was, is) || is["state"] != "BackOff" || was["state"] != "Running" {
		t.Errorf("the states are %v and %v", was["state"], is["state"])
	}
	if !same(was["exit"], is["exit"]) {
		t.Error("two versions have each their own part of the status")
	}
	if same(first["metadata"], second["metadata"]) {
		t.Error("two versions have one metadata, into which the library writes the version")
	}
	if same(first["spec"], other["spec"]) {
		t.Error("two objects share")
	}
	into := &unstructured.Unstructured{}
	text, _ := json.Marshal(daemon("1", "BackOff"))
	if _, _, err := c.Decode(text, nil, into); err != nil || same(into.Object["spec"], second["spec"]) {
		t.Errorf("what a request asked for, and may change, is shared (%v)", err)
	}
}

// TestSharingCodec_bound: objects that are gone are forgotten.
func TestSharingCodec_bound(t *testing.T) {
	c := &sharingCodec{Codec: unstructured.UnstructuredJSONScheme}
	for n := range 3 * rememberedObjects {
		decode(t, c, map[string]any{"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"uid": fmt.Sprint(n)}})
	}
	if n := len(c.recent) + len(c.older); n > 2*rememberedObjects {
		t.Errorf("%d objects are remembered", n)
	}
}

// TestSharingCodec_anything: whatever an object holds, it reads as it was written, and no version before it changes.
func TestSharingCodec_anything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &sharingCodec{Codec: unstructured.UnstructuredJSONScheme}
		var want []string
		var have []map[string]any
		for range rapid.IntRange(2, 6).Draw(t, "versions") {
			object := map[string]any{
				"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"uid": "1"}, "spec": drawJSON(t, 3), "status": drawJSON(t, 3),
			}
			text, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			want, have = append(want, string(text)), append(have, decode(t, c, object))
		}
		for i, object := range have {
			text, err := json.Marshal(object)
			if err != nil || string(text) != want[i] {
				t.Fatalf("version %d reads %s, %s was written (%v)", i, text, want[i], err)
			}
		}
	})
}

func drawJSON(t *rapid.T, depth int) any {
	if kind := rapid.IntRange(0, 5).Draw(t, "kind"); kind == 0 && depth > 0 {
		m := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "keys") {
			m[rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")] = drawJSON(t, depth-1)
		}
		return m
	} else if kind == 1 && depth > 0 {
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			list = append(list, drawJSON(t, depth-1))
		}
		return list
	}
	return rapid.SampledFrom([]any{nil, true, false, 1, 2, 1.5, "", "a", "b"}).Draw(t, "value")
}
