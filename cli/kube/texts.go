package kube

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// OptionsAsText makes texts of the numbers and booleans that the options of a StorageCluster's spec.ceph.config have: a
// user writes osd_max_scrubs: 2 without quotes, and the kind has texts, as ceph.conf.
func OptionsAsText(u *unstructured.Unstructured) {
	sections, found, err := unstructured.NestedMap(u.Object, "spec", "ceph", "config")
	if u.GetKind() != "StorageCluster" || !found || err != nil {
		return
	}
	for _, section := range sections {
		options, _ := section.(map[string]any)
		for name, value := range options {
			options[name] = asText(value)
		}
	}
	_ = unstructured.SetNestedMap(u.Object, sections, "spec", "ceph", "config") // it was there
}

func asText(value any) any {
	switch v := value.(type) {
	case int64, bool:
		return fmt.Sprint(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return value
}
