package crushmap

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOverlapping: pools of a class overlap with those of any class where both may take an OSD.
func TestOverlapping(t *testing.T) {
	of := func(root, class string) Rule { return Rule{Takes: []Take{{Root: root, Class: class}}} }
	osds := racks("r1/h1", "r1/s1", "r2/h2")
	for name, tt := range map[string]struct {
		rules map[string]Rule
		want  Overlap
	}{
		"no class":           {map[string]Rule{".mgr": of("default", ""), "a": of("default", "")}, Overlap{}},
		"a class each":       {map[string]Rule{"fast": of("default", "ssd"), "a": of("default", "hdd")}, Overlap{}},
		"a class nobody has": {map[string]Rule{"fast": of("default", "nvme"), "a": of("default", "")}, Overlap{}},
		"another root":       {map[string]Rule{"fast": of("default", "ssd"), "a": of("elsewhere", "")}, Overlap{}},
		"a class, and any": {
			map[string]Rule{"fast": of("default", "ssd"), "b": of("default", ""), ".mgr": of("default", ""), "n": {}},
			Overlap{Classed: []string{"fast"}, Others: []string{".mgr", "b"}},
		},
	} {
		if diff := cmp.Diff(tt.want, Overlapping(tt.rules, osds)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
