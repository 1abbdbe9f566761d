// Package location says where hosts are in CRUSH by their labels, and whether that can be so. It is pure.
package location

import (
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/crushmap"
)

// Root is the root of CRUSH that hosts are in, and that pools are spread below.
const Root = "default"

// Levels are the types of CRUSH's buckets that hosts can be labelled with, the smallest first.
var Levels = levels()

// Labels are the labels of Levels.
var Labels = labels()

func levels() (levels []string) {
	for _, label := range api.LocationLabels() {
		levels = append(levels, levelOf(label))
	}
	return levels
}

func labels() map[string]string {
	byLevel := map[string]string{}
	for _, label := range api.LocationLabels() {
		byLevel[levelOf(label)] = label
	}
	return byLevel
}

func levelOf(label string) string {
	_, level, _ := strings.Cut(label, "/")
	return level
}

// ToRoot are the levels and then the root, which is no label's.
var ToRoot = append(slices.Clone(Levels), "root")

// Above are those of them that are larger than one.
func Above(level string) []string { return ToRoot[slices.Index(ToRoot, level)+1:] }

// Located says whether a host is labelled with where it is.
func Located(h *api.Host) bool {
	return slices.ContainsFunc(Levels, func(level string) bool { return h.Labels[Labels[level]] != "" })
}

// Of is where a host is by its labels: names of buckets by their levels.
func Of(h *api.Host) map[string]string {
	in := map[string]string{}
	for _, level := range Levels {
		if name := h.Labels[Labels[level]]; name != "" {
			in[level] = name
		}
	}
	return in
}

// Text is a location as Ceph's commands want it, the largest bucket first.
func Text(in map[string]string) string {
	text := "root=" + Root
	for _, level := range slices.Backward(Levels) {
		if in[level] != "" {
			text += " " + level + "=" + in[level]
		}
	}
	return text
}

// Agrees says whether a bucket is in all that a location names. What else it is in is somebody else's affair.
func Agrees(b crushmap.Bucket, in map[string]string) bool {
	for level, name := range in {
		if b.In[level] != name {
			return false
		}
	}
	return true
}

// Free says whether a host may be moved: it holds no data, and nobody has put it where the labels say nothing of.
func Free(b crushmap.Bucket, in map[string]string) bool {
	for level, name := range b.In {
		if in[level] == "" && (level != "root" || name != Root) {
			return false
		}
	}
	return b.Weight == 0
}
