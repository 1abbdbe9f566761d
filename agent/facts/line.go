package facts

import (
	"fmt"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Line says in a line what a machine is; empty where nothing is known of it.
func Line(f *api.HostFacts) string {
	if f == nil {
		return ""
	}
	parts := []string{strings.TrimSpace(string(f.Vendor + " " + f.Model)), string(f.CPUModel)}
	if f.CPUThreads > 0 {
		parts = append(parts, fmt.Sprintf("%s, %s, %s", words.Plural(int(f.CPUSockets), "socket"),
			words.Plural(int(f.CPUCores), "core"), words.Plural(int(f.CPUThreads), "thread")))
	}
	if f.Memory != nil {
		parts = append(parts, fmt.Sprintf("%.1f GiB of memory", float64(f.Memory.Value())/(1<<30)))
	}
	parts = append(parts, string(f.OS), strings.TrimSpace(string(f.Kernel+" "+f.Architecture)))
	var known []string
	for _, p := range parts {
		if p != "" {
			known = append(known, p)
		}
	}
	return strings.Join(known, ", ")
}
