package screen

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Add adds to what programs read of a cluster what Numbers shows to people, as the StorageStatus
// has it.
func Add(to map[string]any, s *api.StorageStatusStatus, live *api.StorageFigures) {
	to["state"], to["health"], to["daemons"] = s.Status, s.Health, s.Daemons
	if live == nil {
		live = s.Figures
	}
	if live != nil {
		to["figures"] = live
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

// Encode writes an object on one line as JSON, or as a YAML document.
func Encode(v any, asYAML bool) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // only maps of plain values are given
	}
	text := words.JSON(string(data)) + "\n"
	if !asYAML {
		return text
	}
	if data, err = yaml.JSONToYAML([]byte(text)); err != nil {
		panic(fmt.Sprintf("what was written as JSON is none: %v", err))
	}
	return "---\n" + string(data)
}
