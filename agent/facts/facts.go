// Package facts reads what a machine is: its kernel, processors, memory, hardware and network
// interfaces, as /proc and /sys show them. It reads nothing that changes by itself all the time, so
// that a host reports its facts once.
package facts

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Reader reads the facts of a machine.
type Reader struct {
	// Root is prefixed to /proc, /sys and /etc.
	Root string
	// Links lists the network interfaces. Nil: those of the own network namespace.
	Links func() ([]Link, error)
}

// Read reads the facts. What cannot be read is left out: facts are for people, and no decision
// depends on them. before are the facts that were reported last, nil where there are none.
func (r Reader) Read(before *api.HostFacts) *api.HostFacts {
	f := &api.HostFacts{
		Kernel: text(r.attr("proc/sys/kernel/osrelease")),
		OS:     text(r.distribution()), Architecture: text(r.architecture()),
		Vendor: text(r.attr("sys/class/dmi/id/sys_vendor")),
		Model:  text(cmp.Or(r.attr("sys/class/dmi/id/product_name"), r.attr("proc/device-tree/model"))),
		Memory: r.memory(), BootTime: r.bootTime(), Interfaces: r.interfaces(),
	}
	r.processors(f)
	steady(f, before)
	return f
}

// Balloons and clocks that are set change these a little, again and again. Such a difference is not
// worth a report.
const (
	memoryShare = 64
	clockError  = 10 * time.Second
)

// steady keeps what was reported before where it differs by next to nothing.
func steady(f, before *api.HostFacts) {
	if before == nil {
		return
	}
	if f.Memory != nil && before.Memory != nil {
		is, was := f.Memory.Value(), before.Memory.Value()
		if max(is-was, was-is) < was/memoryShare {
			f.Memory = before.Memory
		}
	}
	if f.BootTime != nil && before.BootTime != nil && f.BootTime.Sub(before.BootTime.Time).Abs() < clockError {
		f.BootTime = before.BootTime
	}
}

// attr reads a small file; one that is missing is the same as an empty one.
func (r Reader) attr(path string) string {
	data, err := os.ReadFile(filepath.Join(r.Root, "/", path))
	if err != nil {
		return ""
	}
	return strings.Trim(string(data), " \t\n\x00")
}

// number reads a small file with a number; zero where there is none.
func (r Reader) number(path string) int32 {
	n, err := strconv.ParseInt(r.attr(path), 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

// text makes what a file says fit for the API.
func text(s string) api.FactText {
	const most = 256
	return api.FactText(words.Line(strings.TrimSpace(s), most))
}

// values reads a file of lines with a key and a value; the first line of a key counts.
func (r Reader) values(path, separator string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(r.attr(path)) { // those of /proc/stat may be longer than a bufio.Scanner takes
		key, value, ok := strings.Cut(line, separator)
		if key = strings.TrimSpace(key); ok && found[key] == "" {
			found[key] = strings.TrimSpace(value)
		}
	}
	return found
}

// distribution is the name of the operating system (os-release(5)). In a container the host's own
// first process has another root directory than the agent.
func (r Reader) distribution() string {
	for _, path := range []string{"proc/1/root/etc/os-release", "etc/os-release", "usr/lib/os-release"} {
		if name := r.values(path, "=")["PRETTY_NAME"]; name != "" {
			return strings.Trim(name, `"'`)
		}
	}
	return ""
}

// architecture is as uname has it. Kernels before 6.1 have no file for it.
func (r Reader) architecture() string {
	if name := r.attr("proc/sys/kernel/arch"); name != "" {
		return name
	}
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Machine[:])
}

func (r Reader) memory() *resource.Quantity {
	total, _, _ := strings.Cut(r.values("proc/meminfo", ":")["MemTotal"], " ")
	kib, err := strconv.ParseInt(total, 10, 64)
	if err != nil {
		return nil
	}
	return resource.NewQuantity(kib<<10, resource.BinarySI)
}

// bootTime is in the precision of the API.
func (r Reader) bootTime() *metav1.Time {
	seconds, err := strconv.ParseInt(r.values("proc/stat", " ")["btime"], 10, 64)
	if err != nil {
		return nil
	}
	at := metav1.Unix(seconds, 0)
	return &at
}
