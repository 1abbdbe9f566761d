package crd_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/api/crd"
)

// coresOwn are the short names of Kubernetes' own kinds: kubectl would take one of them for the other.
var coresOwn = strings.Fields("cm cs csr ep ev limits no ns pvc pv po rc quota sa svc crd crds ds deploy rs sts hpa cj " +
	"ing netpol pdb pc sc vac")

// records are the kinds that record what was, which 'kubectl get holdfast' leaves out.
var records = []string{"ClusterEvent", "Plan"}

func TestNames(t *testing.T) {
	all, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	owner := map[string]string{}
	for _, d := range all {
		names := d.Spec.Names
		for _, short := range append(names.ShortNames, names.Plural, names.Singular) {
			if slices.Contains(coresOwn, short) || owner[short] != "" && owner[short] != names.Kind {
				t.Errorf("%s is called %s, as %s or a kind of Kubernetes is", names.Kind, short, owner[short])
			}
			owner[short] = names.Kind
		}
		if slices.Contains(names.Categories, "all") {
			t.Errorf("'kubectl delete all --all' would delete each %s", names.Kind)
		}
		if slices.Contains(names.Categories, "holdfast") == slices.Contains(records, names.Kind) {
			t.Errorf("categories of %s: %v", names.Kind, names.Categories)
		}
	}
}

// TestColumns: each kind is printed with its age, and each that has conditions with Ready and its reason.
func TestColumns(t *testing.T) {
	all, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		for _, v := range d.Spec.Versions {
			columns := map[string]string{}
			for _, c := range v.AdditionalPrinterColumns {
				columns[c.Name] = c.JSONPath
			}
			_, conditions := v.Schema.OpenAPIV3Schema.Properties["status"].Properties["conditions"]
			want := map[string]bool{"Ready": conditions, "Reason": conditions, "Age": d.Spec.Names.Kind != "ClusterEvent"}
			for name, wanted := range want {
				if _, ok := columns[name]; ok != wanted {
					t.Errorf("%s has the column %s: %v, want %v", d.Spec.Names.Kind, name, ok, wanted)
				}
			}
		}
	}
}
