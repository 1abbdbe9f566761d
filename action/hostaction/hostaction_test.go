package hostaction

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func newAction(kind, target string, parameters ...string) *api.Action {
	a := &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: "a"},
		Spec:       api.ActionSpec{Kind: kind, Target: target, Host: "h1", Parameters: map[string]api.ActionParameter{}},
	}
	for i := 0; i < len(parameters); i += 2 {
		a.Spec.Parameters[parameters[i]] = api.ActionParameter(parameters[i+1])
	}
	return a
}

// wants fails the test unless the error refuses with a text; an empty one stands for no error.
func wants(t *testing.T, err error, text string) {
	t.Helper()
	switch {
	case text == "" && err != nil:
		t.Errorf("error %v", err)
	case text != "" && (!errors.Is(err, action.ErrRefused) || !strings.Contains(err.Error(), text)):
		t.Errorf("error %v, want %q", err, text)
	}
}

func TestCheck(t *testing.T) {
	elsewhere, nowhere := newAction(Rescan, "host/h1"), newAction(Rescan, "host/h1")
	elsewhere.Namespace, nowhere.Spec.Host = "default", ""
	for name, c := range map[string]struct {
		a    *api.Action
		want string
	}{
		"a rescan":               {newAction(Rescan, "host/h1"), ""},
		"another namespace":      {elsewhere, "must be in namespace holdfast-system, not default"},
		"no host":                {nowhere, "spec.host must name the host"},
		"the target is another":  {newAction(Rescan, "host/h2"), "spec.target must be host/h1"},
		"a wipe":                 {newAction(Wipe, "device/wwn-1", ParamConfirm, "wwn-1"), ""},
		"nothing confirms it":    {newAction(Wipe, "device/wwn-1"), `the parameter "confirm" must be the id`},
		"the target is no disk":  {newAction(Wipe, "host/h1", ParamConfirm, "wwn-1"), "spec.target must be device/DEVICE"},
		"the target is nothing":  {newAction(Wipe, "device/", ParamConfirm, "wwn-1"), "spec.target must be device/DEVICE"},
		"a light":                {newAction(Light, "device/wwn-1", ParamLight, Ident, ParamState, Off), ""},
		"a light of what colour": {newAction(Light, "device/wwn-1", ParamState, On), `the parameter "light" is ""`},
		"a light that glows":     {newAction(Light, "device/wwn-1", ParamLight, Fault, ParamState, "Yes"), `"state"`},
	} {
		t.Run(name, func(t *testing.T) { wants(t, Check(c.a), c.want) })
	}
}

// inventory has a disk with two partitions, and two disks with the same serial number.
func inventory() []api.Device {
	return []api.Device{
		{ID: "wwn-1", Path: "/dev/sda", WWN: "1", Serial: "S1", Kind: api.DeviceDisk, Links: []string{"by-id/ata-one"}},
		{ID: "partuuid-1", Path: "/dev/sda1", WWN: "1", Serial: "S1", Kind: api.DevicePartition, Parent: "wwn-1"},
		{ID: "partuuid-2", Path: "/dev/sda2", WWN: "1", Serial: "S1", Kind: api.DevicePartition, Parent: "wwn-1"},
		{ID: "unstable-sdb", Path: "/dev/sdb", WWN: "2", Serial: "S2", Kind: api.DeviceDisk},
		{ID: "unstable-sdc", Path: "/dev/sdc", WWN: "2", Serial: "S2", Kind: api.DeviceDisk},
		{ID: "md-1", Path: "/dev/md0", Kind: api.DeviceRaid},
		{ID: "file-/srv/disk", Path: "/dev/loop0", Kind: api.DeviceLoop},
	}
}

func TestDevice(t *testing.T) {
	for name, c := range map[string]struct {
		target, device, confirm string
		want                    string // the id, or
		err                     string
	}{
		"by id":                {target: "wwn-1", confirm: "wwn-1", want: "wwn-1"},
		"by path":              {target: "/dev/sda", confirm: "wwn-1", want: "wwn-1"},
		"by WWN":               {target: "0x1", confirm: "wwn-1", want: "wwn-1"},
		"by serial number":     {target: "S1", confirm: "wwn-1", want: "wwn-1"},
		"by link":              {target: "/dev/disk/by-id/ata-one", confirm: "wwn-1", want: "wwn-1"},
		"by two names":         {target: "wwn-1", device: "S1", confirm: "wwn-1", want: "wwn-1"},
		"of two disks":         {target: "wwn-1", device: "/dev/md0", confirm: "wwn-1", err: `"device" device md-1`},
		"of no disk":           {target: "wwn-9", confirm: "wwn-9", err: "no device of host h1 matches wwn-9"},
		"of none beside":       {target: "wwn-1", device: "S9", confirm: "wwn-1", err: "no device of host h1 matches S9"},
		"by what two have":     {target: "S2", confirm: "S2", err: "matches 2 devices of host h1 (unstable-sdb,"},
		"confirmed by path":    {target: "wwn-1", confirm: "/dev/sda", err: `"confirm" is "/dev/sda"`},
		"another is confirmed": {target: "/dev/sda", confirm: "wwn-2", err: "but the device (/dev/sda) is wwn-1"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAction(Wipe, "device/"+c.target, ParamConfirm, c.confirm)
			if c.device != "" {
				a.Spec.Parameters[ParamDevice] = api.ActionParameter(c.device)
			}
			d, err := Device(a, inventory())
			wants(t, err, c.err)
			if err == nil && d.ID != c.want {
				t.Errorf("it means %s", d.ID)
			}
		})
	}
	if d, err := Device(newAction(Light, "device/S1"), inventory()); err != nil || d.ID != "wwn-1" {
		t.Errorf("a light needs no confirmation: %v", err)
	}
}

func TestConfirmed(t *testing.T) {
	d, err := Confirmed(newAction(Wipe, "device/gone", ParamConfirm, "wwn-1"), inventory())
	if err != nil || d.ID != "wwn-1" {
		t.Errorf("%+v, %v", d, err)
	}
	_, err = Confirmed(newAction(Wipe, "device/wwn-1", ParamConfirm, "/dev/sda"), inventory())
	wants(t, err, "host h1 has no device /dev/sda now")
}

func TestWipeable(t *testing.T) {
	all := inventory()
	const part, unsteady = "not a whole disk", "no persistent id"
	for i, want := range []string{"", part, part, unsteady, unsteady, "of kind Raid", ""} {
		wants(t, Wipeable(&all[i]), want)
	}
}

func TestClaimedBy(t *testing.T) {
	all := inventory()
	disk := Disk(&all[0], all)
	if len(disk) != 3 || disk[0].ID != "wwn-1" || disk[2].ID != "partuuid-2" {
		t.Fatalf("the disk is %d devices", len(disk))
	}
	for _, c := range []struct{ id, of, want string }{
		{"wwn-1", "", "device wwn-1 is in use by daemon osd of cluster default/ceph"},
		{"partuuid-2", "", "device wwn-1 is in use"},
		{"partuuid-9", "wwn-1", "device wwn-1 is in use"},
		{"md-1", "", ""},
		{"", "", ""},
	} {
		d := &api.Daemon{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "osd"},
			Spec:       api.DaemonSpec{Cluster: "ceph", Devices: []api.DaemonDevice{{ID: "other"}, {ID: c.id, Of: c.of}}},
		}
		wants(t, ClaimedBy([]*api.Daemon{{}, d}, disk), c.want)
	}
}

func TestKnows(t *testing.T) {
	for kind, want := range map[string][2]bool{
		Rescan: {true, false}, Wipe: {true, true}, Light: {true, true}, api.ActionDaemonRestart: {}, "host.drain": {},
	} {
		a := &api.Action{Spec: api.ActionSpec{Kind: kind}}
		if got := [2]bool{Knows(a), OnDevice(a)}; got != want {
			t.Errorf("%s: %v", kind, got)
		}
	}
}
