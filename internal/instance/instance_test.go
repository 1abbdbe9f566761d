package instance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const boot = "8f0f1d4e-4f8a-4f0e-8d55-9d7d3b1f0a11"

func TestParse(t *testing.T) {
	for _, i := range []Instance{
		{Machine: "0123456789abcdef0123456789abcdef", Boot: boot, Process: "0123456789abcdef", Address: "10.0.0.4"},
		{Boot: boot, Process: "0123456789abcdef", Address: "fe80::1"},
		{Boot: boot, Process: "0123456789abcdef"},
	} {
		if got, err := Parse(i.String()); err != nil || got != i {
			t.Errorf("%q is read as %+v: %v", i, got, err)
		}
	}
	good := Instance{Boot: boot, Process: "0123456789abcdef", Address: "10.0.0.4"}.String()
	for _, bad := range []string{
		"", good + "\n", good + " ", "\x1b[2J" + good, strings.Replace(good, "10.0.0.4", "1.2.3", 1), strings.Replace(good, boot, "", 1),
		strings.Replace(good, "machine=", "machine="+strings.Repeat("a", 33), 1), strings.Repeat("a", 1<<20),
	} {
		if got, err := Parse(bad); err == nil {
			t.Errorf("%.100q is taken for %+v", bad, got)
		}
	}
}

func TestNew(t *testing.T) {
	a, err := New("")
	if err != nil {
		t.Fatal(err)
	}
	b, err := New("")
	if err != nil || a.Process == b.Process || a.Boot != b.Boot {
		t.Errorf("two runs are %v and %v: %v", a, b, err)
	}
	if got, err := Parse(a.String()); err != nil || got != a {
		t.Errorf("%q is read as %+v: %v", a, got, err)
	}
}

// TestMachine: what moves with a disk, and what a boot makes anew, changes nothing; another board or adapter does.
func TestMachine(t *testing.T) {
	sys := func(files map[string]string) string {
		dir := t.TempDir()
		for name, text := range files {
			path := filepath.Join(dir, "class", name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	const uuid, serial, mac, is, bridge = "dmi/id/product_uuid", "dmi/id/board_serial", "net/eth0/address", "net/eth0/device", "net/br0/address"
	first := machine(sys(map[string]string{uuid: "u1\n", serial: "s1\n", mac: "m1\n", is: "", bridge: "b1\n"}))
	for name, tt := range map[string]struct {
		files map[string]string
		same  bool
	}{
		"a boot":          {map[string]string{uuid: "u1\n", serial: "s1\n", mac: "m1\n", is: "", bridge: "b2\n"}, true},
		"another board":   {map[string]string{uuid: "u1\n", serial: "s2\n", mac: "m1\n", is: "", bridge: "b1\n"}, false},
		"another machine": {map[string]string{uuid: "u2\n", serial: "s1\n", mac: "m1\n", is: "", bridge: "b1\n"}, false},
		"boards alike":    {map[string]string{uuid: "u1\n", serial: "s1\n", mac: "m2\n", is: "", bridge: "b1\n"}, false},
	} {
		if got := machine(sys(tt.files)); got == "" || (got == first) != tt.same {
			t.Errorf("%s: %s and %s, want the same: %v", name, first, got, tt.same)
		}
	}
	if got := machine(sys(map[string]string{bridge: "b1\n"})); got != "" {
		t.Errorf("a container is taken for the machine %s", got)
	}
	t.Setenv(MachineVariable, "one")
	if got := Machine(); got != digest([]string{"one"}) {
		t.Errorf("the id given by hand is %s", got)
	}
}
