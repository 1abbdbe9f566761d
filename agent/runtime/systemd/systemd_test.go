package systemd

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	"github.com/coreos/go-systemd/v22/unit"
	godbus "github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/runtimetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The suite runs against a stand-in for systemd; see standIn for what that shows and what not.
func TestConformance(t *testing.T) {
	buses := map[string]string{}
	runtimetest.Run(t, runtimetest.Harness{Open: func(t *testing.T, dir string) runtime.Runtime {
		units := filepath.Join(dir, "units")
		if buses[dir] == "" {
			if err := os.Mkdir(units, 0o755); err != nil {
				t.Fatal(err)
			}
			buses[dir] = startBus(t)
			newStandIn(t, buses[dir], units)
		}
		return open(t, buses[dir], units)
	}})
}

func open(t *testing.T, address, units string) *Runtime {
	t.Helper()
	r, err := New(t.Context(), Config{
		Dir: filepath.Join(units, "restarts"), UnitDir: units, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), RestartDelay: 50 * time.Millisecond,
		Dial: func(ctx context.Context) (*dbus.Conn, error) {
			return dbus.NewConnection(func() (*godbus.Conn, error) { return dial(address)(ctx) })
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A unit of the same name that someone else wrote is neither changed, nor stopped, nor known.
func TestForeignUnit(t *testing.T) {
	units := t.TempDir()
	path := filepath.Join(units, "holdfast-server.service")
	if err := os.WriteFile(path, []byte("[Service]\nExecStart=/bin/true\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	address := startBus(t)
	newStandIn(t, address, units)
	r := open(t, address, units)
	defer r.Close()
	if names := r.Names(); len(names) != 0 {
		t.Errorf("names %v", names)
	}
	p := runtime.Process{Name: "server", Command: []string{"sleep", "1000"}, LogFile: filepath.Join(units, "log")}
	if err := r.Start(t.Context(), p); err == nil || !strings.Contains(err.Error(), "not written by Holdfast") {
		t.Errorf("start: %v", err)
	}
	if err := r.Stop(t.Context(), "server"); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(path); err != nil || !strings.Contains(string(b), "/bin/true") {
		t.Errorf("the unit is now %q (%v)", b, err)
	}
}

func TestUnitText(t *testing.T) {
	p := runtime.Process{
		Name: "default.ceph-mon-a", Command: []string{"sh", "-c", `echo "$HOME" 100%`}, Dir: "/data/100%", RunDir: "/run/holdfast/x", LogFile: "/log/l",
		StopTimeout: 90 * time.Second,
	}
	text, err := unitText(p, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	opts, err := unit.DeserializeOptions(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, o := range opts {
		got[o.Name] = o.Value
	}
	for key, want := range map[string]string{
		"ExecStartPre": `/bin/mkdir -p "/run/holdfast/x"`, "WorkingDirectory": "/data/100%%", "StandardOutput": "append:/log/l",
		"TimeoutStopSec": "90000ms", "Restart": "always", "KillMode": "mixed", "WantedBy": "multi-user.target", "StartLimitIntervalSec": "0",
	} {
		if got[key] != want {
			t.Errorf("%s=%q, want %q", key, got[key], want)
		}
	}
	if want := `"-c" "echo \"$$HOME\" 100%%"`; !strings.HasSuffix(got["ExecStart"], want) {
		t.Errorf("ExecStart=%s, want it to end with %s", got["ExecStart"], want)
	}
}

// Whatever an argument holds, it comes out of the unit file as it went in.
func TestQuote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		args := rapid.SliceOfN(rapid.StringMatching(`[a-z "\\$%'\n\t;{}=#]*`), 1, 5).Draw(t, "args")
		var line []string
		for _, a := range args {
			line = append(line, quote(a))
		}
		if diff := cmp.Diff(args, split(strings.Join(line, " "))); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestReadUnits(t *testing.T) {
	dir := t.TempDir()
	p := runtime.Process{Name: "a.b", Command: []string{"sleep", "1"}, LogFile: filepath.Join(dir, "l"), StopTimeout: time.Second}
	for range 2 {
		if _, err := writeUnit(dir, p, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if changed, err := writeUnit(dir, p, time.Second); err != nil || changed {
		t.Errorf("changed %v, %v", changed, err)
	}
	got, err := readUnits(dir)
	if diff := cmp.Diff([]runtime.Process{p}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}
