package agent

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/agent/runtime/runtimetest"
	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/heir"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// keeper is a service agent of daemons with many devices, whose process leaves others behind.
type keeper struct{ *sleeper }

func (keeper) Name() string { return "keeper" }

// ConfigureDevices implements service.DeviceKeeper: it notes the devices in a file.
func (keeper) ConfigureDevices(_ context.Context, l *service.Local) error {
	text := strings.Join(slices.Sorted(maps.Keys(l.Devices)), " ")
	if err := os.WriteFile(filepath.Join(l.Data, "devices"), []byte(text), 0o600); err != nil {
		return err
	}
	for _, d := range l.Devices {
		if d.Availability != api.DeviceAvailable {
			return fmt.Errorf("device %s is not empty", d.ID)
		}
	}
	return nil
}

// EndOthers implements service.Forker.
func (keeper) EndOthers(_ context.Context, l *service.Local) error {
	text, err := os.ReadFile(filepath.Join(l.Data, "child"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	note := filepath.Join(filepath.Dir(filepath.Dir(l.Data)), "ended")
	if _, err := os.Stat(note); err == nil {
		return nil // it is called again and again
	}
	return os.WriteFile(note, []byte(strconv.Itoa(pid)), 0o600)
}

func keeperDaemon(name string, devices ...string) *api.Daemon {
	return sleeperDaemon(name, func(d *api.Daemon) {
		d.Spec.Type = "keeper"
		d.Spec.Command = []string{"sh", "-c", `[ -e child ] || { sleep 1000 & echo $! > child; }; exec sleep 1000`}
		for _, id := range devices {
			d.Spec.Devices = append(d.Spec.Devices, api.DaemonDevice{Name: id, ID: id})
		}
	})
}

func (w *world) read(name, file string) string {
	text, _ := os.ReadFile(filepath.Join(w.data(name), file))
	return strings.TrimSpace(string(text))
}

// None of a daemon's devices holds up the process; devices come while it runs.
func TestKeeper_devices(t *testing.T) {
	w := newWorld(t, keeperDaemon("one", "a", "b"))
	w.also = []service.ServiceAgent{keeper{w.service}}
	w.devices.devices = []api.Device{{ID: "a", Path: "/dev/a", Availability: api.DeviceAvailable}, {ID: "c", Path: "/dev/c", Availability: api.DeviceUnavailable}}
	w.run()
	w.await("a start without a device", func() bool {
		d := w.daemon("one")
		return d.Status.State == api.DaemonRunning && strings.HasPrefix(d.Status.Message, "device b is missing on this host") && w.read("one", "devices") == "a"
	})
	pid := w.daemon("one").Status.PID

	w.change("one", func(d *api.Daemon) { d.Spec.Devices[1] = api.DaemonDevice{Name: "c", ID: "c"} })
	w.await("another device while it runs", func() bool {
		return w.read("one", "devices") == "a c" && w.daemon("one").Status.Message == "device c is not empty"
	})
	w.devices.mu.Lock()
	w.devices.devices[1].Availability = api.DeviceAvailable
	w.devices.mu.Unlock()
	w.await("a device that was mended", func() bool { return w.daemon("one").Status.Message == "" })
	if now := w.daemon("one").Status; now.PID != pid || now.Restarts != 0 {
		t.Errorf("the process was started again: %+v", now)
	}
}

// What the process started survives it, and ends when the daemon is wanted stopped.
func TestKeeper_children(t *testing.T) {
	w := newWorld(t, keeperDaemon("one"))
	w.also = []service.ServiceAgent{keeper{w.service}}
	w.run()
	first := w.awaitState("one", api.DaemonRunning)
	w.await("a child", func() bool { return w.read("one", "child") != "" })
	child, err := strconv.Atoi(w.read("one", "child"))
	if err != nil {
		t.Fatal(err)
	}
	defer kill(t, child)
	kill(t, int(first.Status.PID))
	w.await("a restart", func() bool {
		return w.daemon("one").Status.Restarts == 1 && w.daemon("one").Status.State == api.DaemonRunning
	})
	if !runtimetest.Alive(child) {
		t.Error("the child ended with the process")
	}
	ended := func() string {
		text, _ := os.ReadFile(filepath.Join(w.dir, "data/agent/daemons/ended"))
		return string(text)
	}
	if ended() != "" {
		t.Error("the child was ended while the daemon is wanted running")
	}
	w.change("one", func(d *api.Daemon) { d.Spec.State = api.WantStopped })
	w.awaitState("one", api.DaemonStopped)
	if ended() != strconv.Itoa(child) {
		t.Errorf("ended is %q, want the child %d", ended(), child)
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Errorf("process %d: %v", pid, err)
	}
}

// warden is a keeper that misses a device which somebody took away.
type warden struct{ keeper }

func (warden) Name() string { return "warden" }

// DevicesKept implements service.DeviceWarden.
func (warden) DevicesKept(l *service.Local) bool {
	_, err := os.Stat(filepath.Join(l.Data, "devices"))
	return err == nil
}

// Report implements service.Reporter.
func (warden) Report(context.Context, *service.Local) (string, error) { return "{}", nil }

// What somebody takes away from a daemon that runs is made ready again.
func TestWarden(t *testing.T) {
	d := keeperDaemon("one", "a")
	d.Spec.Type, d.Spec.Parameters = "warden", map[string]string{api.ParameterReport: "all"}
	w := newWorld(t, d)
	w.also = []service.ServiceAgent{warden{keeper{w.service}}}
	w.devices.devices = []api.Device{{ID: "a", Path: "/dev/a", Availability: api.DeviceAvailable}}
	w.run()
	pid := w.awaitState("one", api.DaemonRunning).Status.PID
	w.await("its device", func() bool { return w.read("one", "devices") == "a" })
	if err := os.Remove(filepath.Join(w.data("one"), "devices")); err != nil {
		t.Fatal(err)
	}
	w.await("its device again", func() bool { return w.read("one", "devices") == "a" })
	if now := w.daemon("one").Status; now.PID != pid || now.Restarts != 0 {
		t.Errorf("the process was started again: %+v", now)
	}
}

// inheritor is a service agent that takes over nothing of a Daemon that is gone.
type inheritor struct{ *sleeper }

func (inheritor) Name() string { return "inheritor" }

// Foreign implements service.Inheritor.
func (inheritor) Foreign(l *service.Local) (bool, error) { return heir.Foreign(l, "") }

// ConfigureLocalService notes whose directory it is.
func (inheritor) ConfigureLocalService(_ context.Context, l *service.Local) error {
	return heir.Inherit(l, "")
}

// What a Daemon of the same name left on a host, which was removed while it was away, is moved aside, and its process ends.
func TestInheritor(t *testing.T) {
	d := sleeperDaemon("one", func(d *api.Daemon) {
		d.UID, d.Spec.Type, d.Spec.Parameters = "uid-2", "inheritor", map[string]string{api.ParameterNewcomer: "true"}
	})
	w := newWorld(t, d)
	w.also = []service.ServiceAgent{inheritor{w.service}}
	if err := os.MkdirAll(w.data("one"), 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"owner": "uid-1 \n", "state": "of the pool that let it go"} {
		if err := os.WriteFile(filepath.Join(w.data("one"), file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.run()
	w.awaitState("one", api.DaemonRunning)
	if w.read("one", "state") != "" {
		t.Error("it runs on what the other one left")
	}
	kept, err := filepath.Glob(filepath.Join(w.dir, "data/agent/retired/*/data/state"))
	if err != nil || len(kept) != 1 {
		t.Errorf("what the other one left is at %v, %v", kept, err)
	}
}

// TestInheritor_fails: what a preparation that fails leaves is not taken for an earlier daemon's when it is tried again.
func TestInheritor_fails(t *testing.T) {
	d := sleeperDaemon("one", func(d *api.Daemon) {
		d.Spec.Type, d.Spec.Parameters = "inheritor", map[string]string{api.ParameterNewcomer: "true"}
		d.Spec.Devices = []api.DaemonDevice{{Name: "block", ID: "late"}}
	})
	w := newWorld(t, d)
	w.also, w.retryMax = []service.ServiceAgent{inheritor{w.service}}, 5*time.Millisecond
	w.run()
	w.awaitState("one", api.DaemonFailed)
	w.await("further attempts", func() bool {
		w.devices.mu.Lock()
		defer w.devices.mu.Unlock()
		return w.devices.rescans > 3
	})
	w.devices.mu.Lock()
	w.devices.devices = []api.Device{{ID: "late", Path: "/dev/a"}}
	w.devices.mu.Unlock()
	w.awaitState("one", api.DaemonRunning)
	if kept, err := filepath.Glob(filepath.Join(w.dir, "data/agent/retired/*")); err != nil || len(kept) != 0 {
		t.Errorf("moved aside were %v, %v", kept, err)
	}
}

// TestInheritor_upgraded: a daemon that an agent of an earlier version prepared, which noted no owner, runs on in its directory.
func TestInheritor_upgraded(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one", func(d *api.Daemon) {
		d.UID, d.Spec.Type, d.Spec.Parameters = "uid-1", "inheritor", map[string]string{api.ParameterNewcomer: "true"}
	}))
	w.also = []service.ServiceAgent{inheritor{w.service}}
	w.run()
	pid := w.awaitState("one", api.DaemonRunning).Status.PID
	w.halt()
	if err := os.Remove(filepath.Join(w.data("one"), "owner")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.data("one"), "blocks"), []byte("of users"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run()
	w.await("the owner", func() bool { return w.read("one", "owner") == "uid-1" })
	if w.read("one", "blocks") != "of users" {
		t.Error("its data was moved away")
	}
	if s := w.awaitState("one", api.DaemonRunning).Status; s.PID != pid || s.Restarts != 0 {
		t.Errorf("the process was stopped: %+v, it was %d", s, pid)
	}
}
