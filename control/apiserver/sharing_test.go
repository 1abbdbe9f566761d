package apiserver

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"unsafe"

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

// aDaemon is a Daemon that runs on h1.
func aDaemon(uid, state string) map[string]any {
	return map[string]any{
		"apiVersion": "holdfast.io/v1alpha1", "kind": "Daemon",
		"metadata": map[string]any{"name": "daemon-" + uid, "uid": uid, "labels": map[string]any{"holdfast.io/cluster": "a"}},
		"spec":     map[string]any{"host": "h1", "id": uid, "command": []any{"ceph-osd", "-f"}},
		"status":   map[string]any{"state": state, "exit": map[string]any{"reason": "exit code 1"}},
	}
}

func at(o map[string]any, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(o, path...)
	return v
}

// TestSharingCodec: what is equal in two versions of an object is one thing, and its metadata is each version's own, but for its parts.
func TestSharingCodec(t *testing.T) {
	c := &sharingCodec{Codec: unstructured.UnstructuredJSONScheme}
	first, second := decode(t, c, aDaemon("1", "Running")), decode(t, c, aDaemon("1", "BackOff"))
	if !same(first["spec"], second["spec"]) {
		t.Error("two versions have each their own spec")
	}
	if same(first["status"], second["status"]) || at(second, "status", "state") != "BackOff" || at(first, "status", "state") != "Running" {
		t.Errorf("the states are %v and %v", at(first, "status", "state"), at(second, "status", "state"))
	}
	if !same(at(first, "status", "exit"), at(second, "status", "exit")) {
		t.Error("two versions have each their own part of the status")
	}
	if same(first["metadata"], second["metadata"]) {
		t.Error("two versions have one metadata, into which the library writes the version")
	}
	if !same(at(first, "metadata", "labels"), at(second, "metadata", "labels")) {
		t.Error("two versions have each their own labels")
	}
	into := &unstructured.Unstructured{}
	text, _ := json.Marshal(aDaemon("1", "BackOff"))
	if _, _, err := c.Decode(text, nil, into); err != nil || same(into.Object["spec"], second["spec"]) {
		t.Errorf("what a request asked for, and may change, is shared (%v)", err)
	}
}

// TestSharingCodec_keys: the keys of maps that differ are the same strings.
func TestSharingCodec_keys(t *testing.T) {
	c := &sharingCodec{Codec: unstructured.UnstructuredJSONScheme}
	keyOf := func(o map[string]any, name string) *byte {
		for key := range o {
			if key == name {
				return unsafe.StringData(key)
			}
		}
		return nil
	}
	first, other := decode(t, c, aDaemon("1", "Running")), decode(t, c, aDaemon("2", "BackOff"))
	for _, path := range [][]string{{}, {"metadata"}, {"spec"}, {"status"}} {
		a, b := at(first, path...).(map[string]any), at(other, path...).(map[string]any)
		if same(a, b) {
			t.Errorf("%v of two objects that differ is one map", path)
		}
		for key := range a {
			if keyOf(a, key) != keyOf(b, key) {
				t.Errorf("the key %s of %v is two strings", key, path)
			}
		}
	}
	for n := range 3 * rememberedKeys {
		c.key(fmt.Sprint("key", n))
	}
	if len(c.keys) > rememberedKeys {
		t.Errorf("%d keys are remembered", len(c.keys))
	}
}

// TestSharingCodec_others: what is equal in two objects is one thing, too, and two versions of one share where another was decoded between them.
func TestSharingCodec_others(t *testing.T) {
	c := &sharingCodec{Codec: unstructured.UnstructuredJSONScheme}
	first, other, again := decode(t, c, aDaemon("1", "Running")), decode(t, c, aDaemon("2", "Running")), decode(t, c, aDaemon("1", "Running"))
	for _, path := range [][]string{{"metadata", "labels"}, {"spec", "command"}, {"status"}} {
		if !same(at(first, path...), at(other, path...)) {
			t.Errorf("two objects have each their own %v", path)
		}
	}
	if at(first, "spec", "id") != "1" || at(other, "spec", "id") != "2" || same(first["metadata"], other["metadata"]) {
		t.Errorf("the other object is %v", other)
	}
	if !same(first["spec"], again["spec"]) {
		t.Error("a version shares nothing with the one before")
	}
}

// TestSharingCodec_beside: what an object says alike of each of many, such as who manages the fields of each disk, it holds once.
func TestSharingCodec_beside(t *testing.T) {
	c := &sharingCodec{Codec: unstructured.UnstructuredJSONScheme}
	fields := func() any { return map[string]any{"f:id": map[string]any{}, "f:size": map[string]any{}} }
	o := decode(t, c, map[string]any{
		"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"uid": "1", "managedFields": []any{map[string]any{"a": fields(), "b": fields(), "c": fields()}}},
		"status": map[string]any{"devices": []any{fields(), fields()}},
	})
	m := at(o, "metadata", "managedFields").([]any)[0].(map[string]any)
	if !same(m["a"], m["b"]) || !same(m["b"], m["c"]) || !same(at(m, "a", "f:id"), at(m, "a", "f:size")) {
		t.Error("parts of a map that are equal are several things")
	}
	if d := at(o, "status", "devices").([]any); !same(d[0], d[1]) {
		t.Error("parts of a list that are equal are several things")
	}
}

// TestSharingCodec_atOnce: the library numbers an object, and clients read it, while the next ones are decoded (for the race detector).
func TestSharingCodec_atOnce(t *testing.T) {
	c := &sharingCodec{Codec: unstructured.UnstructuredJSONScheme}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for n := range 100 {
				u := &unstructured.Unstructured{Object: decode(t, c, aDaemon(fmt.Sprint(n%3), fmt.Sprint("state ", n%5)))}
				u.SetResourceVersion(fmt.Sprint(n))
				if text, err := u.MarshalJSON(); err != nil || !strings.Contains(string(text), fmt.Sprintf(`"state":"state %d"`, n%5)) {
					t.Errorf("it reads %s (%v)", text, err)
				}
			}
		})
	}
	all.Wait()
}

// TestSharingCodec_bound: objects that are gone are forgotten.
func TestSharingCodec_bound(t *testing.T) {
	c := &sharingCodec{Codec: unstructured.UnstructuredJSONScheme}
	for n := range 3 * rememberedObjects {
		decode(t, c, map[string]any{"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"uid": fmt.Sprint(n)}})
	}
	if n := len(c.versions.recent) + len(c.versions.older); n > 2*rememberedObjects {
		t.Errorf("%d objects are remembered", n)
	}
}

// TestSharingCodec_anything: whatever objects hold, each reads as it was written, and none that was decoded before changes.
func TestSharingCodec_anything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &sharingCodec{Codec: unstructured.UnstructuredJSONScheme}
		var want []string
		var have []map[string]any
		for range rapid.IntRange(2, 6).Draw(t, "versions") {
			object := map[string]any{
				"apiVersion": "v1", "kind": "X", "spec": drawJSON(t, 3), "status": drawJSON(t, 3),
				"metadata": map[string]any{"uid": rapid.SampledFrom([]string{"1", "2"}).Draw(t, "uid"), "managedFields": drawJSON(t, 3)},
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
