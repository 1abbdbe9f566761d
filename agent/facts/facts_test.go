package facts

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

func prefixes(all ...string) (out []netip.Prefix) {
	for _, p := range all {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// networks are those of the machines in testdata. sysfs does not have the addresses.
var networks = map[string]func() ([]Link, error){
	"server": func() ([]Link, error) {
		return []Link{
			{Name: "veth4711", MAC: "02:00:00:00:00:09", MTU: 1500, Up: true, Addresses: prefixes("fe80::9/64")},
			{Name: "kube-ipvs0", MTU: 1500, Addresses: prefixes("10.96.0.1/32")},
			{Name: "docker0", MAC: "02:00:00:00:00:03", MTU: 1500, Up: true, Addresses: prefixes("172.17.0.1/16")},
			{Name: "eno2", MAC: "02:00:00:00:00:02", MTU: 1500},
			{Name: "eno1", MAC: "02:00:00:00:00:01", MTU: 9000, Up: true},
			{
				Name: "bond0", MAC: "02:00:00:00:00:01", MTU: 9000, Up: true,
				Addresses: prefixes("fe80::1/64", "2001:db8::1/64", "192.0.2.1/24", "192.0.2.1/24"),
			},
		}, nil
	},
	"board": func() ([]Link, error) { return nil, errors.New("no permission") },
}

// machine is a machine of testdata with the facts that Read has to find.
func machine(t *testing.T, name string) (Reader, string) {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	r, want := Reader{Root: t.TempDir(), Links: networks[name]}, ""
	for _, f := range archive.Files {
		if f.Name == "want" {
			want = string(f.Data)
			continue
		}
		write(t, r, f.Name, string(f.Data))
	}
	return r, want
}

func write(t *testing.T, r Reader, path, text string) {
	t.Helper()
	path = filepath.Join(r.Root, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestRead(t *testing.T) {
	for name := range networks {
		t.Run(name, func(t *testing.T) {
			r, want := machine(t, name)
			f := r.Read(nil)
			got, err := yaml.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(f, r.Read(f)); diff != "" {
				t.Errorf("nothing changed, and the facts did:\n%s", diff)
			}
		})
	}
}

// Of a machine that shows nothing at all, nothing is reported but what the kernel itself says.
func TestRead_nothing(t *testing.T) {
	f := Reader{Root: t.TempDir(), Links: networks["board"]}.Read(nil)
	if f.Architecture == "" {
		t.Error("no architecture")
	}
	f.Architecture = ""
	if diff := cmp.Diff(&api.HostFacts{}, f); diff != "" {
		t.Error(diff)
	}
}

// What a balloon or a clock changes a little is no news, and what is another machine or another
// boot is.
func TestRead_steady(t *testing.T) {
	for name, tt := range map[string]struct {
		path, text string
		same       bool
	}{
		"a balloon":       {"proc/meminfo", "MemTotal: 65800000 kB\n", true},
		"less memory":     {"proc/meminfo", "MemTotal: 49381548 kB\n", false},
		"a clock was set": {"proc/stat", "btime 1700000003\n", true},
		"another boot":    {"proc/stat", "btime 1700003600\n", false},
		"another kernel":  {"proc/sys/kernel/osrelease", "6.1.0-19-amd64\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := machine(t, "server")
			before := r.Read(nil)
			write(t, r, tt.path, tt.text)
			if diff := cmp.Diff(before, r.Read(before)); (diff == "") != tt.same {
				t.Errorf("the change of the facts: %s", diff)
			}
		})
	}
}

// A machine with more interfaces and addresses than the API takes reports the first of them, always
// the same.
func TestRead_bounds(t *testing.T) {
	r := Reader{Root: t.TempDir()}
	for i := range 100 {
		write(t, r, fmt.Sprintf("sys/class/net/p%03d/device/x", i), "")
	}
	reversed := false
	r.Links = func() (all []Link, err error) {
		for i := range 100 {
			n := i
			if reversed {
				n = 99 - i
			}
			l := Link{Name: fmt.Sprintf("p%03d", n)}
			for k := range 100 {
				l.Addresses = append(l.Addresses, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(n), byte(100 - k)}), 8))
			}
			all = append(all, l)
		}
		return all, nil
	}
	write(t, r, "sys/class/dmi/id/product_name", "\x1b[31m"+strings.Repeat("é", 1000))
	f := r.Read(nil)
	if len(f.Interfaces) != 32 || len(f.Interfaces[0].Addresses) != 16 || f.Interfaces[0].Addresses[0] != "10.0.0.1/8" {
		t.Errorf("%d interfaces: %+v", len(f.Interfaces), f.Interfaces[0])
	}
	if m := string(f.Model); len(m) > 256 || words.Visible(m) != m {
		t.Errorf("the model has %d bytes: %q", len(m), m)
	}
	reversed = true
	if diff := cmp.Diff(f, r.Read(f)); diff != "" {
		t.Errorf("in another order: %s", diff)
	}
}

// The machine that runs the test says what it is, too, and says it again.
func TestRead_thisMachine(t *testing.T) {
	f := Reader{}.Read(nil)
	if f.Kernel == "" || f.Memory == nil || f.BootTime == nil || f.CPUThreads < 1 || f.OS == "" {
		t.Errorf("%+v", f)
	}
	if f.BootTime != nil && time.Since(f.BootTime.Time) < 0 {
		t.Errorf("it boots at %s", f.BootTime)
	}
	if diff := cmp.Diff(f, Reader{}.Read(f)); diff != "" {
		t.Errorf("a moment later: %s", diff)
	}
}

func TestSteady_unknown(t *testing.T) {
	memory, at := resource.MustParse("1Gi"), metav1.Unix(1, 0)
	for _, before := range []*api.HostFacts{nil, {}} {
		f := &api.HostFacts{Memory: &memory, BootTime: &at}
		if steady(f, before); f.Memory != &memory || f.BootTime != &at {
			t.Errorf("after %+v: %+v", before, f)
		}
	}
	steady(&api.HostFacts{}, &api.HostFacts{Memory: &memory, BootTime: &at})
}

func TestLine(t *testing.T) {
	server, _ := machine(t, "server")
	board, _ := machine(t, "board")
	for want, f := range map[string]*api.HostFacts{
		"": nil,
		"Supermicro SYS-6029P-TR, Intel(R) Xeon(R) Silver 4110 CPU @ 2.10GHz, 2 sockets, 4 cores, 7 threads, " +
			"62.8 GiB of memory, Debian GNU/Linux 12 (bookworm), 6.1.0-18-amd64 x86_64": server.Read(nil),
		"Raspberry Pi 4 Model B Rev 1.4, 1 socket, 1 core, 1 thread, Ubuntu 22.04.3 LTS, 5.10.0 aarch64": board.Read(nil),
	} {
		if got := Line(f); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
