package spec

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestManager: names of field managers are as long as the API takes them, and differ.
func TestManager(t *testing.T) {
	long := strings.Repeat("€", 100)
	a, b := Manager(long+"a"), Manager(long+"b")
	if a == b || len(a) > 128 || !utf8.ValidString(a) || Manager("mon") != "ceph-orch.mon" {
		t.Errorf("%q, %q", a, b)
	}
}

// TestPreview_forms: a call is a dry run by any document that asks for it, in whatever form.
func TestPreview_forms(t *testing.T) {
	for text, want := range map[string]bool{
		`{"preview_only":true}`: true, `{"spec":{"preview_only":true}}`: true, `{"preview_only":"true"}`: true,
		`{"preview_only":1}`: true, `{"spec":[],"preview_only":true}`: true,
		`{"preview_only":false}`: false, `{"preview_only":null}`: false, `{}`: false, `7`: false, `null`: false, ``: false,
	} {
		if is := Preview([]json.RawMessage{json.RawMessage(text)}); is != want {
			t.Errorf("%s: %v", text, is)
		}
	}
}

// TestHost_keeps: a document that says less than one before takes no label away.
func TestHost_keeps(t *testing.T) {
	for _, text := range []string{
		`{"service_type":"host","hostname":"n1","labels":["x"]}`,
		`{"service_type":"host","hostname":"n1","location":{"row":"7"}}`,
	} {
		v := fresh()
		v.Hosts[0].Labels[api.LabelRack] = "r1"
		all, err := Writes(Request{View: v, Docs: []json.RawMessage{json.RawMessage(text)}})
		if err != nil || len(all) != 2 {
			t.Fatalf("%+v, %v", all, err)
		}
		labels := all[1].Object.GetLabels()
		if _, has := labels["ceph.holdfast.io/label.rgw"]; !has || labels[api.LabelRack] != "r1" || len(labels) != 3 {
			t.Errorf("%v", labels)
		}
	}
}
