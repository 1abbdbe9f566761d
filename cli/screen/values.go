package screen

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Add adds to what programs read of a cluster what Numbers shows to people, as the StorageStatus
// has it; nothing where there is none.
func Add(to map[string]any, status *api.StorageStatus, live *api.StorageFigures) {
	if status == nil {
		return
	}
	s := &status.Status
	to["state"], to["health"], to["daemons"] = s.Status, s.Health, List(s.Daemons)
	if live == nil {
		live = s.Figures
	}
	if live != nil {
		to[figures] = live
	}
	switch {
	case s.Ceph != nil:
		to["ceph"] = s.Ceph
	case s.GlusterFS != nil:
		to["glusterfs"] = s.GlusterFS
	case s.Torus != nil:
		to["torus"] = s.Torus
	}
}

// figures is the field that Add puts figures into.
const figures = "figures"

// List is a list that programs read as one, also where it is empty.
func List[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Timeless is a text of the figures that Add added, which differs when they do. That they were read
// again makes no difference.
func Timeless(said map[string]any) string {
	f, ok := said[figures].(*api.StorageFigures)
	if !ok {
		return ""
	}
	f = f.DeepCopy()
	f.Time = metav1.Time{}
	return Encode(f, false)
}

// Encode writes an object on one line as JSON, or as a YAML document.
func Encode(v any, asYAML bool) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // only maps of plain values are given
	}
	if !asYAML {
		return words.JSON(string(data)) + "\n"
	}
	if data, err = words.JSONToYAML(data); err != nil {
		panic(fmt.Sprintf("the output is not valid JSON: %v", err))
	}
	return "---\n" + string(data)
}
