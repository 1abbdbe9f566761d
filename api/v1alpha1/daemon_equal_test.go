package v1alpha1

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func fullSpec() *DaemonSpec {
	return &DaemonSpec{
		Cluster: "c", Type: "t", ID: "1", Host: "h", State: WantRunning, Command: []string{"a", "b"},
		Files:   []DaemonFile{{Path: "p", Sources: []FileSource{{Text: new("x"), Secret: &SecretKey{Name: "n", Key: "k"}}}}},
		Devices: []DaemonDevice{{Name: "block", ID: "wwn", Of: "disk", Bytes: 1, KeySecret: "s"}}, Parameters: map[string]string{"k": "v"},
		StopTimeout: metav1.Duration{Duration: time.Second}, OnRemoval: DeletionRetain, StopOrder: 3,
	}
}

// TestDaemonSpec_Equal changes each field, however deep, one at a time: a field that is added and not compared fails it, and so does
// one that the full spec lacks.
func TestDaemonSpec_Equal(t *testing.T) {
	full := fullSpec()
	if !full.Equal(fullSpec()) {
		t.Fatal("a spec differs from itself")
	}
	changes := 0
	eachLeaf(t, reflect.ValueOf(full).Elem(), "spec", func(path string) {
		changes++
		if full.Equal(fullSpec()) || fullSpec().Equal(full) {
			t.Errorf("%s is not compared", path)
		}
	})
	if changes < 15 {
		t.Errorf("only %d fields were changed", changes)
	}
	if !full.Equal(fullSpec()) {
		t.Error("the changes were not taken back")
	}
}

func TestDaemonSpec_Equal_emptyAndMissing(t *testing.T) {
	missing := &DaemonSpec{}
	empty := &DaemonSpec{Command: []string{}, Files: []DaemonFile{}, Devices: []DaemonDevice{}, Parameters: map[string]string{}}
	if !missing.Equal(empty) || !empty.Equal(missing) {
		t.Error("what is empty differs from what is missing")
	}
}

// eachLeaf calls f with each string or number below v changed.
func eachLeaf(t *testing.T, v reflect.Value, path string, f func(path string)) {
	t.Helper()
	if v.IsZero() {
		t.Fatalf("%s is not set in the full spec", path)
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			eachLeaf(t, v.Field(i), path+"."+v.Type().Field(i).Name, f)
		}
	case reflect.Pointer:
		eachLeaf(t, v.Elem(), path, f)
		changed(v, reflect.Zero(v.Type()), path+" (none)", f)
	case reflect.Slice:
		eachLeaf(t, v.Index(0), path, f)
		changed(v, v.Slice(0, v.Len()-1), path+" (shorter)", f)
	case reflect.Map:
		changed(v, reflect.MakeMap(v.Type()), path+" (empty)", f)
	case reflect.String:
		changed(v, reflect.ValueOf(v.String()+"!").Convert(v.Type()), path, f)
	case reflect.Int32, reflect.Int64:
		changed(v, reflect.ValueOf(v.Int()+1).Convert(v.Type()), path, f)
	default:
		t.Fatalf("%s is a %s, which this test cannot change", path, v.Kind())
	}
}

func changed(v, to reflect.Value, path string, f func(string)) {
	was := reflect.New(v.Type()).Elem()
	was.Set(v)
	v.Set(to)
	f(path)
	v.Set(was)
}
