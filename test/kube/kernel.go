package kube

import (
	"os"
	"path/filepath"

	"github.com/holdfast-storage/holdfast/test/hosts"
)

// kernelSettings are what a kubelet writes where it finds something else, for the whole machine. A
// node sees files in their place that have these values already.
var kernelSettings = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// watchKernel fails the test if the kernel's settings are others at its end.
func watchKernel(t hosts.T) {
	t.Helper()
	before := readKernel(t)
	t.Cleanup(func() {
		for name, now := range readKernel(t) {
			if now != before[name] {
				t.Errorf("kube: left behind: /proc/sys/%s is %q, and was %q", name, now, before[name])
			}
		}
	})
}

func readKernel(t hosts.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name := range kernelSettings {
		text, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if err != nil {
			t.Fatalf("kube: while reading a setting of the kernel: %v", err)
		}
		all[name] = string(text)
	}
	return all
}
