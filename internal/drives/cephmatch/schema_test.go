package cephmatch

import (
	"math"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/holdfast-storage/holdfast/api/crd"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// groupSchema is the schema of DriveGroups with its rules.
func groupSchema(t *testing.T) (*schema.Structural, *cel.Validator) {
	all, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if d.Spec.Names.Kind != "DriveGroup" {
			continue
		}
		var props apiextensions.JSONSchemaProps
		from := d.Spec.Versions[0].Schema.OpenAPIV3Schema
		if err := extensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(from, &props, nil); err != nil {
			t.Fatal(err)
		}
		s, err := schema.NewStructural(&props)
		if err != nil {
			t.Fatal(err)
		}
		return s, cel.NewValidator(s, true, math.MaxUint64)
	}
	t.Fatal("there is no DriveGroup")
	return nil, nil
}

// TestSchema: the schema of DriveGroup refuses the filters that Validate refuses, and no others.
func TestSchema(t *testing.T) {
	s, rules := groupSchema(t)
	refused := func(data, db api.DriveFilter) bool {
		g := &api.DriveGroup{}
		g.Spec.Cluster, g.Spec.Placement.Pattern, g.Spec.DataDevices = "c", "*", []api.DriveFilter{data}
		if db.Match != "" {
			g.Spec.DBDevices = []api.DriveFilter{db}
		}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(g)
		if err != nil {
			t.Fatal(err)
		}
		errs, _ := rules.Validate(t.Context(), field.NewPath(""), s, object, nil, math.MaxInt64)
		return len(errs) > 0
	}
	yes, no, refusals := true, false, 0
	for _, size := range []string{
		"", "10GB:40GB", "10G:", ":40G", "666GB", "3.64TB", "1.T", "1T:2TB", "4tb", "4TB:8tb", "1PB", "1Ti", ":", "10",
		"1.5TB:", "1TB:2TB:3TB", "1TBB",
	} {
		for _, f := range []api.DriveFilter{
			{},
			{All: true},
			{Paths: []string{"/dev/sdb"}},
			{All: true, Paths: []string{"/dev/sdb"}},
			{Model: "a"},
			{Paths: []string{"/dev/sdb"}, Vendor: "a"},
			{All: true, Model: "a"},
			{Rotational: &yes},
			{Rotational: &no, Limit: 2},
			{Limit: 2},
		} {
			f.Size, f.Match = size, api.DriveMatchCeph
			good := api.DriveFilter{Match: api.DriveMatchCeph, Model: "a"}
			if got, want := refused(f, api.DriveFilter{}), Validate(&f, true); got != (want != nil) {
				t.Errorf("data %+v: the schema refuses it: %v; Validate says %v", f, got, want)
			} else if got {
				refusals++
			}
			if got, want := refused(good, f), Validate(&f, false); got != (want != nil) {
				t.Errorf("db %+v: the schema refuses it: %v; Validate says %v", f, got, want)
			}
		}
	}
	if refusals < 50 || refusals > 165 {
		t.Errorf("%d filters are refused", refusals)
	}
	for size, want := range map[string]bool{"1T:2T": false, "4Ti": false, "4TB": true, "": false, ":": true} {
		if got := refused(api.DriveFilter{Size: size, All: true}, api.DriveFilter{}); got != want {
			t.Errorf("Holdfast's own size %q is refused: %v", size, got)
		}
	}
}
