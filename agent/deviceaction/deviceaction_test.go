package deviceaction

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/hostaction"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// disks are an inventory of a disk with a partition, and of two paths to another disk.
func disks() []api.Device {
	return []api.Device{
		{ID: "wwn-1", Path: "/dev/sda", Kind: api.DeviceDisk, WWN: "1", Serial: "S1"},
		{ID: "partuuid-1", Path: "/dev/sda1", Kind: api.DevicePartition, Parent: "wwn-1"},
		{ID: "dm-mpath-2", Path: "/dev/dm-0", Kind: api.DeviceMapped},
	}
}

// fake is a host with the inventory of disks, and a /sys of its own.
type fake struct {
	Host
	reports int
	failing error
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{}
	devices := func(context.Context) ([]api.Device, error) { return disks(), f.failing }
	f.Host = Host{
		Name: "h1", Root: t.TempDir(), Devices: devices, Scan: devices,
		Report:  func(context.Context) error { f.reports++; return nil },
		Daemons: func() ([]*api.Daemon, bool) { return nil, true },
		Working: func(string) string { return "" },
		Hold:    func([]string, string) func() { return func() {} },
		Busy:    func(context.Context, string) ([]string, error) { return nil, nil },
	}
	return f
}

// file makes a file of /sys.
func (f *fake) file(t *testing.T, path string) string {
	t.Helper()
	path = filepath.Join(f.Root, "sys", path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

func newAction(kind, target string, parameters ...string) *api.Action {
	a := &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: "a", UID: "u"},
		Spec: api.ActionSpec{
			Kind: kind, Target: target, Host: "h1", Parameters: map[string]api.ActionParameter{},
		},
	}
	for i := 0; i < len(parameters); i += 2 {
		a.Spec.Parameters[parameters[i]] = api.ActionParameter(parameters[i+1])
	}
	return a
}

// do carries an action out, as action.Execute does.
func do(t *testing.T, h action.Handler, a *api.Action) (string, error) {
	t.Helper()
	if err := h.Check(t.Context(), a); err != nil {
		return "", err
	}
	message := ""
	for _, step := range h.Kind().Steps {
		p, err := h.Step(t.Context(), a, step)
		if err != nil {
			return "", err
		}
		if !p.Done {
			t.Fatalf("step %s is not done: %+v", step, p)
		}
		message = p.Message
	}
	return message, nil
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestHandlers_areTheKinds(t *testing.T) {
	var handled []string
	for _, h := range Handlers(newFake(t).Host) {
		handled = append(handled, h.Kind().Name)
		if p, err := h.Undo(t.Context(), &api.Action{}, ""); err != nil || !p.Done {
			t.Errorf("%s: %+v, %v", h.Kind().Name, p, err)
		}
	}
	for _, k := range Kinds() {
		if !slices.Contains(handled, k.Name) || !k.Final || k.Executor != api.ByAgent {
			t.Errorf("%+v of %v", k, handled)
		}
	}
}

func TestRescan(t *testing.T) {
	f := newFake(t)
	a := newAction(hostaction.Rescan, "host/h1")
	message, err := do(t, &rescan{f.Host}, a)
	if err != nil || message != "asked 0 SCSI adapters for new devices; host h1 has 2 devices" {
		t.Errorf("without adapters: %q, %v", message, err)
	}
	good := f.file(t, "class/scsi_host/host0/scan")
	bad := filepath.Join(f.Root, "sys/class/scsi_host/host1/scan")
	if err := os.MkdirAll(bad, 0o755); err != nil { // a directory cannot be written to, not even by root
		t.Fatal(err)
	}
	message, err = do(t, &rescan{f.Host}, a)
	want := "asked 2 SCSI adapters for new devices, of which 1 failed (host1: is a directory); host h1 has 2 devices"
	if err != nil || message != want {
		t.Errorf("got %q, %v, want %q", message, err, want)
	}
	if text := read(t, good); text != "- - -" {
		t.Errorf("the adapter was asked for %q", text)
	}
	if f.reports != 2 {
		t.Errorf("%d reports", f.reports)
	}
}

// What cannot be done now is tried again, and is no end of the action.
func TestRescan_fails(t *testing.T) {
	f := newFake(t)
	f.failing = errors.New("no blkid")
	_, err := do(t, &rescan{f.Host}, newAction(hostaction.Rescan, "host/h1"))
	if !errors.Is(err, f.failing) || f.reports != 0 {
		t.Errorf("%v, %d reports", err, f.reports)
	}
	f.failing = nil
	f.Report = func(context.Context) error { return errors.New("no server") }
	_, err = do(t, &rescan{f.Host}, newAction(hostaction.Rescan, "host/h1"))
	if err == nil || errors.Is(err, action.ErrRefused) {
		t.Errorf("without a server: %v", err)
	}
	if _, err := do(t, &rescan{f.Host}, newAction(hostaction.Rescan, "host/h2")); !errors.Is(err, action.ErrRefused) {
		t.Errorf("of another host: %v", err)
	}
}

// TestRescan_hangs: an adapter that does not answer holds up nothing but its own answer.
func TestRescan_hangs(t *testing.T) {
	f := newFake(t)
	f.file(t, "class/scsi_host/host0/scan")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	text := (&rescan{f.Host}).askAdapters(ctx)
	if text != "asked 1 SCSI adapter for new devices" && !strings.Contains(text, "host0: it does not answer") {
		t.Error(text)
	}
}

func lightOf(target, name, state string) *api.Action {
	return newAction(hostaction.Light, target, hostaction.ParamLight, name, hostaction.ParamState, state)
}

func TestLight(t *testing.T) {
	f := newFake(t)
	slot := "class/enclosure/0:0:8:0/Slot 03/"
	locate, fault := f.file(t, slot+"locate"), f.file(t, slot+"fault")
	f.file(t, slot+"device/block/sda/size")
	for _, c := range []struct {
		a           *api.Action
		file, holds string
	}{
		{lightOf("device/wwn-1", "ident", "on"), locate, "1"},
		{lightOf("device/partuuid-1", "fault", "on"), fault, "1"},
		{lightOf("device/S1", "ident", "off"), locate, "0"},
		{lightOf("device//dev/sda", "ident", "off"), locate, "0"},
	} {
		message, err := do(t, &light{f.Host}, c.a)
		if err != nil || !strings.HasSuffix(message, "(slot Slot 03 of enclosure 0:0:8:0)") ||
			!strings.Contains(message, "disk wwn-1 (/dev/sda, serial number S1) of host h1") {
			t.Errorf("%+v: %q, %v", c.a.Spec, message, err)
		}
		if text := read(t, c.file); text != c.holds {
			t.Errorf("%+v: the file holds %q", c.a.Spec, text)
		}
	}
}

// Other drivers link the slot from the disk, and of a disk with several paths the paths have the slot.
func TestLight_links(t *testing.T) {
	f := newFake(t)
	locate := f.file(t, "devices/enclosure/1:0:0:0/7/locate")
	f.file(t, "block/dm-0/slaves/sdx/size")
	f.file(t, "block/sdx/device/model")
	link := filepath.Join(f.Root, "sys/block/sdx/device/enclosure_device:7")
	if err := os.Symlink(filepath.Dir(locate), link); err != nil {
		t.Fatal(err)
	}
	message, err := do(t, &light{f.Host}, lightOf("device/dm-mpath-2", "ident", "on"))
	want := "the ident light of disk dm-mpath-2 (/dev/dm-0) of host h1 is on (slot 7 of enclosure 1:0:0:0)"
	if err != nil || message != want {
		t.Errorf("%q, %v", message, err)
	}
	if text := read(t, locate); text != "1" {
		t.Errorf("the file holds %q", text)
	}
	_, err = do(t, &light{f.Host}, lightOf("device/dm-mpath-2", "fault", "on"))
	if !errors.Is(err, action.ErrRefused) {
		t.Errorf("a slot without that light: %v", err)
	}
}

func TestLight_refused(t *testing.T) {
	f := newFake(t)
	for name, c := range map[string]struct {
		a    *api.Action
		want string
	}{
		"no enclosure": {
			lightOf("device/wwn-1", "ident", "on"),
			"disk wwn-1 (/dev/sda, serial number S1) of host h1 is in no enclosure whose lights the kernel can switch",
		},
		"no such device": {lightOf("device/wwn-9", "ident", "on"), "no device of host h1 matches wwn-9"},
		"no such light":  {lightOf("device/wwn-1", "red", "on"), `the parameter "light" is "red"`},
		"no such state":  {lightOf("device/wwn-1", "ident", "yes"), `the parameter "state" is "yes"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := do(t, &light{f.Host}, c.a)
			if !errors.Is(err, action.ErrRefused) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	f.failing = errors.New("no blkid")
	if _, err := do(t, &light{f.Host}, lightOf("device/wwn-1", "ident", "on")); !errors.Is(err, f.failing) {
		t.Errorf("without an inventory: %v", err)
	}
}
