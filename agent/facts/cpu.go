package facts

import (
	"cmp"
	"path/filepath"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// processors counts the processors that the kernel uses. Numbers of cores repeat, in other sockets
// and clusters, so that the list of the threads of a core stands for it.
func (r Reader) processors(f *api.HostFacts) {
	info := r.values("proc/cpuinfo", ":")
	f.CPUModel = text(cmp.Or(info["model name"], info["Model"], info["cpu model"], info["cpu"]))
	sockets, cores := map[string]bool{}, map[string]bool{}
	// A pattern without special characters but these is never malformed.
	dirs, _ := filepath.Glob(filepath.Join(r.Root, "/sys/devices/system/cpu/cpu[0-9]*/topology"))
	for _, dir := range dirs {
		dir = strings.TrimPrefix(dir, r.Root)
		threads := cmp.Or(r.attr(dir+"/core_cpus_list"), r.attr(dir+"/thread_siblings_list"))
		if threads == "" {
			continue // it goes off line just now
		}
		sockets[r.attr(dir+"/physical_package_id")], cores[threads] = true, true
		f.CPUThreads++
	}
	f.CPUSockets, f.CPUCores = int32(len(sockets)), int32(len(cores)) //nolint:gosec // there are not that many
}
