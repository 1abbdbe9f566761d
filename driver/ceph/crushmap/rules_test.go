package crushmap

import (
	"fmt"
	"testing"
)

// racks has OSDs in these racks and hosts: "r1/h1" twice is two OSDs on one host. The device class is that of the
// host's first letter.
func racks(osds ...string) []Place {
	var all []Place
	for i, at := range osds {
		class := map[byte]string{'h': "hdd", 's': "ssd"}[at[3]]
		all = append(all, Place{class, 1, map[string]string{
			"osd": fmt.Sprint("osd.", i), "host": at[3:], "rack": at[:2], "root": "default",
		}})
	}
	return all
}

func TestRule_room(t *testing.T) {
	over := func(steps ...Choose) Rule { return Rule{Takes: []Take{{Root: "default", Steps: steps}}} }
	six := racks("r1/h1", "r1/h2", "r2/h3", "r2/h3", "r3/s4", "r3/s5")
	for name, tt := range map[string]struct {
		rule       Rule
		osds       []Place
		size, want int
	}{
		"OSDs":                      {over(Choose{"osd", 0}), six, 5, 5},
		"hosts":                     {over(Choose{"host", 0}), six, 6, 5},
		"racks":                     {over(Choose{"rack", 0}), six, 4, 3},
		"no such level":             {over(Choose{"datacenter", 0}), six, 3, 0},
		"no more than there are":    {over(Choose{"rack", 0}), six, 2, 2},
		"two racks, two hosts each": {over(Choose{"rack", 2}, Choose{"host", 2}), six, 4, 4},
		"one rack has one host": {
			over(Choose{"rack", 2}, Choose{"host", 2}), racks("r1/h1", "r1/h2", "r2/h3", "r2/h3"), 4, 3,
		},
		"another root":       {Rule{Takes: []Take{{Root: "fast", Steps: []Choose{{"host", 0}}}}}, six, 3, 0},
		"a rack as the root": {Rule{Takes: []Take{{Root: "r1", Steps: []Choose{{"host", 0}}}}}, six, 3, 2},
		"a device class":     {Rule{Takes: []Take{{Root: "default", Class: "ssd", Steps: []Choose{{"host", 0}}}}}, six, 3, 2},
		"one on flash, the rest not": {Rule{Takes: []Take{
			{"default", "ssd", []Choose{{"host", 1}}}, {"default", "hdd", []Choose{{"host", -1}}},
		}}, six, 3, 3},
		"nothing left":                {over(Choose{"host", 0}), nil, 3, 0},
		"fewer copies than are taken": {over(Choose{"host", -3}), six, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.rule.Room(tt.osds, tt.size); got != tt.want {
				t.Errorf("%d, want %d", got, tt.want)
			}
		})
	}
}
