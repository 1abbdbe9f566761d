package kube

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// OptionsAsText makes texts of the numbers and booleans that the options of a storage system have
// in an object: a user writes osd_max_scrubs: 2 or network.ping-timeout: 20 without quotes, and the
// kinds have texts, as the system does.
func OptionsAsText(u *unstructured.Unstructured) {
	switch u.GetKind() {
	case "StorageCluster":
		inside(u, func(config map[string]any) {
			for _, section := range config {
				optionsAsText(section)
			}
		}, "spec", "ceph", "config")
		inside(u, func(options map[string]any) { optionsAsText(options) }, "spec", "glusterfs", "options")
	case "Volume":
		inside(u, func(options map[string]any) { optionsAsText(options) }, "spec", "options")
	}
}

// inside changes a map of an object, if it is there.
func inside(u *unstructured.Unstructured, change func(map[string]any), path ...string) {
	found, is, err := unstructured.NestedMap(u.Object, path...)
	if !is || err != nil {
		return
	}
	change(found)
	_ = unstructured.SetNestedMap(u.Object, found, path...) // it was there
}

func optionsAsText(section any) {
	options, _ := section.(map[string]any)
	for name, value := range options {
		options[name] = asText(value)
	}
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
