package device

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// fleet is two hosts with disks of all sorts.
func fleet() []client.Object {
	number := int32(7)
	host := func(name string, devices ...api.Device) *api.Host {
		h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}}
		h.Status.Devices = devices
		h.Status.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: metav1.ConditionTrue}}
		return h
	}
	h1 := host("h1",
		api.Device{
			ID: "wwn-1", Path: "/dev/sda", Kind: api.DeviceDisk, Media: api.MediaRotational,
			Reasons: []string{"has partitions"}, MountPoints: []string{"/"},
		},
		api.Device{
			ID: "wwn-2", Path: "/dev/sdb", Kind: api.DeviceDisk, Media: api.MediaSolidState,
			Reasons: []string{"has an OSD"},
		},
		api.Device{
			ID: "part-3", Path: "/dev/sdc1", Kind: api.DevicePartition, Parent: "wwn-3",
			Reasons: []string{"has an OSD"},
		},
		api.Device{ID: "wwn-3", Path: "/dev/sdc", Kind: api.DeviceDisk, Reasons: []string{"has partitions"}},
		api.Device{ID: "wwn-4", Path: "/dev/sdd", Kind: api.DeviceDisk, Availability: api.DeviceAvailable},
		api.Device{ID: "wwn-5", Path: "/dev/sde", Kind: api.DeviceDisk, Availability: api.DeviceAvailable},
	)
	h2 := host("h2",
		api.Device{
			ID: "wwn-6", Path: "/dev/sda", Kind: api.DeviceDisk,
			Ceph: &api.DeviceCeph{OSDID: &number, FSID: "f"},
		},
		api.Device{
			ID: "unstable-sdb", Path: "/dev/sdb", Kind: api.DeviceDisk,
			Filesystem: &api.DeviceFilesystem{Type: "xfs"},
		},
	)
	h2.Status.Conditions = nil
	daemon := func(id string, device api.DaemonDevice) *api.Daemon {
		d := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "ceph-osd-" + id}}
		d.Spec = api.DaemonSpec{Host: "h1", Type: "ceph-osd", ID: id, Devices: []api.DaemonDevice{device}}
		return d
	}
	node := &api.StorageNode{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "n1"}}
	node.Spec.Devices = []string{"/dev/sdb", "S4"}
	node.Status.Host = "h1"
	node.Status.Devices = []api.ClaimedDevice{
		{Name: "/dev/sdb", ID: "wwn-2"},
		{Name: "S4", ID: "wwn-4"},
		{Name: "excluded", ID: "wwn-5"},
	}
	group := &api.DriveGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "g"}}
	group.Status.Devices = []api.GroupDevice{{Host: "h1", ID: "part-3", DB: &api.DeviceSlot{ID: "wwn-3"}}}
	return []client.Object{
		h1, h2, node, group, daemon("2", api.DaemonDevice{ID: "wwn-2"}),
		daemon("3", api.DaemonDevice{ID: "part-3"}),
	}
}

// home is a fleet, and what was done to it.
func home(t *testing.T) (h Home, out, problems *bytes.Buffer, done *[]*api.Action) {
	t.Helper()
	s := runtime.NewScheme()
	if err := api.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(fleet()...).Build()
	out, problems, done = &bytes.Buffer{}, &bytes.Buffer{}, &[]*api.Action{}
	return Home{
		Connect: func() (client.Client, error) { return c, nil }, Out: out, Err: problems,
		Act: func(_ context.Context, a *api.Action, _ bool, _ time.Duration) error {
			*done = append(*done, a)
			return nil
		},
	}, out, problems, done
}

// do runs a command and returns its exit code.
func do(t *testing.T, h Home, args ...string) (int, error) {
	t.Helper()
	cmd := Command(h)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	var coded interface{ ExitCode() int }
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &coded):
		return coded.ExitCode(), err
	}
	return 1, err
}

func TestList(t *testing.T) {
	h, out, problems, _ := home(t)
	if _, err := do(t, h, "list"); err != nil {
		t.Fatal(err)
	}
	want := `HOST   PATH       TYPE   DEVICE ID      SIZE   AVAILABLE   USED BY              REJECT REASONS
h1     /dev/sda   hdd    wwn-1          0      No          mounted at /         has partitions
h1     /dev/sdb   ssd    wwn-2          0      No          osd.2, node/n1       has an OSD
h1     /dev/sdc   disk   wwn-3          0      No          osd.3, drivegroup/g  has partitions
h1     /dev/sdd   disk   wwn-4          0      Yes         node/n1              -
h1     /dev/sde   disk   wwn-5          0      Yes         -                    -
h2     /dev/sda   disk   wwn-6          0      No          osd.7 of cluster f   it is not empty
h2     /dev/sdb   disk   unstable-sdb   0      No          xfs                  it is not empty
`
	if squeeze(out.String()) != squeeze(want) {
		t.Errorf("\n%s", out)
	}
	if !strings.Contains(problems.String(), "host h2 is not connected") || strings.Contains(problems.String(), "h1") {
		t.Error(problems)
	}
}

func squeeze(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestList_options(t *testing.T) {
	for args, want := range map[string]string{
		"list --available": "HOST wwn-5", "list h2": "HOST wwn-6 unstable-sdb",
		"list --all h1": "HOST wwn-1 wwn-2 wwn-3 part-3 wwn-4 wwn-5",
	} {
		h, out, _, _ := home(t)
		if _, err := do(t, h, strings.Fields(args)...); err != nil {
			t.Fatal(err)
		}
		got := []string{"HOST"}
		for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n")[1:] {
			got = append(got, strings.Fields(line)[3])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s", args, got)
		}
	}
	h, _, _, _ := home(t)
	if code, err := do(t, h, "list", "h9"); code != 3 {
		t.Error(err)
	}
}

// TestWipe: nothing is done without the id, and the action names the device by it.
func TestWipe(t *testing.T) {
	for args, want := range map[string]string{
		"wipe /dev/sda":                           "matches 2 devices",
		"wipe /dev/sda --host h2":                 "run the command again with --confirm wwn-6",
		"wipe /dev/sda --host h2 --confirm wwn-1": "is wwn-6, not wwn-1: nothing was changed",
		"wipe unstable-sdb --confirm x":           "no persistent id",
		"wipe part-3 --confirm part-3":            "is not a whole disk",
		"wipe nosuch":                             "no device of the hosts matches",
	} {
		h, _, _, done := home(t)
		code, err := do(t, h, strings.Fields(args)...)
		if code != 3 || err == nil || !strings.Contains(err.Error(), want) || len(*done) > 0 {
			t.Errorf("%s: %d, %v", args, code, err)
		}
	}
	h, _, _, done := home(t)
	if _, err := do(t, h, "wipe", "/dev/sda", "--host", "h2", "--confirm", "wwn-6"); err != nil || len(*done) != 1 {
		t.Fatal(err)
	}
	if a := (*done)[0]; a.Namespace != api.SystemNamespace || a.Spec.Host != "h2" ||
		a.Spec.Target != "device/wwn-6" || a.Spec.Parameters["confirm"] != "wwn-6" {
		t.Errorf("%+v", a.Spec)
	}
}

func TestLight(t *testing.T) {
	h, _, _, done := home(t)
	if _, err := do(t, h, "light", "on", "wwn-2", "--fault"); err != nil {
		t.Fatal(err)
	}
	if a := (*done)[0]; a.Spec.Kind != "device.light" || a.Spec.Parameters["light"] != "fault" ||
		a.Spec.Parameters["state"] != "on" || a.Spec.Host != "h1" {
		t.Errorf("%+v", a.Spec)
	}
	if code, err := do(t, h, "light", "blink", "wwn-2"); code != 2 {
		t.Error(err)
	}
}
