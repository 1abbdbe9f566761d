package drives

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/drives/cephmatch"
)

// cephFilter is a DeviceSelection of Ceph's library.
type cephFilter struct {
	Paths      []string `json:"paths,omitempty"`
	Model      string   `json:"model,omitempty"`
	Vendor     string   `json:"vendor,omitempty"`
	Size       string   `json:"size,omitempty"`
	Rotational *bool    `json:"rotational,omitempty"`
	Limit      int32    `json:"limit,omitempty"`
	All        bool     `json:"all,omitempty"`
}

type cephGroup struct {
	Data  *cephFilter `json:"data_devices"`
	DB    *cephFilter `json:"db_devices,omitempty"`
	WAL   *cephFilter `json:"wal_devices,omitempty"`
	Logic string      `json:"filter_logic,omitempty"`
}

type cephDisk struct {
	Path      string         `json:"path"`
	Available bool           `json:"available"`
	Facts     map[string]any `json:"sys_api"`
}

type cephCase struct {
	Group cephGroup  `json:"group"`
	Disks []cephDisk `json:"disks"`

	host api.Host
}

// cephAnswer are the paths of what is selected, or why the group is refused.
type cephAnswer struct {
	Data  []string `json:"data"`
	DB    []string `json:"db"`
	WAL   []string `json:"wal"`
	Error string   `json:"error"`
}

// drawing makes random cases.
type drawing struct{ *rand.Rand }

func one[T any](r *drawing, of ...T) T { return of[r.IntN(len(of))] }

// size is one at which the texts of ceph-volume round, or that of a disk one can buy.
func (r *drawing) size() int64 {
	if r.IntN(3) == 0 {
		return one(r, int64(4_000_787_030_016), 1_000_204_886_016, 480_103_981_056, 10_000_831_348_736, 1<<40, 1<<30,
			40e9, 666e9)
	}
	unit := float64(one(r, int64(1)<<20, 1<<30, 1<<40))
	number := one(r, 1023.99, 1023.994, 1023.995, 1023.996, 1024, 1.0, 1.004, 1.005, 1.006, 3.645, 10, 39.995, 40,
		666, 9.31)
	if unit == 1<<40 && number > 1023 {
		number /= 1024 // Ceph's library fails where one disk has a petabyte
	}
	return int64(number*unit) + int64(r.IntN(3)) - 1
}

func (r *drawing) disks() []api.Device {
	var all []api.Device
	for i := range 1 + r.IntN(14) {
		d := disk(fmt.Sprintf("d%02d", r.IntN(90)*100+i), "1T")
		d.Path = "/dev/sd" + string(rune('a'+13-i))
		if i%5 == 4 {
			d.Path = "/dev/sda" + string(rune('a'+i)) // before sdb
		}
		d.Size = *resource.NewQuantity(r.size(), resource.DecimalSI)
		d.Model, d.Vendor = one(r, "PM1733 SSD", "pm1733", "Ultrastar HC550", ""), one(r, "ATA", "Samsung", "samsung")
		d.Media = one(r, api.MediaRotational, api.MediaSolidState, "")
		if r.IntN(8) == 0 {
			mounted(&d)
		}
		all = append(all, d)
	}
	return all
}

// sizeText is the size of a filter, which few disks meet by chance: it is near that of one of them.
func (r *drawing) sizeText(disks []api.Device) string {
	text := cephmatch.HumanSize(disks[r.IntN(len(disks))].Size.Value())
	var near float64
	var unit string
	if _, err := fmt.Sscan(text, &near, &unit); err != nil {
		panic(err)
	}
	short := one(r, unit, unit[:1])
	whole := func(by int) string { return fmt.Sprintf("%d%s", max(0, int(near)+by), short) }
	switch r.IntN(12) {
	case 0, 1:
		return text[:len(text)-3] + short
	case 2, 3:
		return whole(-r.IntN(3)) + ":" + whole(r.IntN(3))
	case 4, 5:
		return whole(r.IntN(3)-1) + ":"
	case 6, 7:
		return ":" + whole(r.IntN(3)-1)
	case 8:
		return one(r, "1000GB:1TB", "1024G", "1TB:", ":1T", "1.00TB", "1.TB", "10MB:40TB", "40T:10M")
	case 9:
		return one(r, "4tb:", "10gb:40gb", "1PB:", ":", "10", "1.5TB:", "1TB:2TB:3TB", "10XB", "1Ti", "4 TB", ":4",
			"1TBB", "GB")
	}
	return whole(0)
}

func (r *drawing) filter(disks []api.Device) *cephFilter {
	f := &cephFilter{}
	if r.IntN(6) == 0 {
		f.All = true
	}
	if r.IntN(12) == 0 {
		if d := disks[r.IntN(len(disks))]; d.Taken() == "" {
			f.Paths = []string{d.Path}
		}
	}
	if !f.All && len(f.Paths) == 0 || r.IntN(20) == 0 {
		if r.IntN(3) == 0 {
			f.Model = one(r, "PM1733", "SSD", "pm", "Ultra")
		}
		if r.IntN(4) == 0 {
			f.Vendor = one(r, "Samsung", "sung", "ATA", "ata")
		}
		if r.IntN(2) == 0 {
			f.Size = r.sizeText(disks)
		}
		if r.IntN(3) == 0 {
			spins := r.IntN(2) == 0
			f.Rotational = &spins
		}
	}
	if r.IntN(3) == 0 {
		f.Limit = int32(1 + r.IntN(3))
	}
	return f
}

func (r *drawing) one() cephCase {
	x := cephCase{host: testHost("h1", r.disks()...)}
	x.Group.Data = r.filter(x.host.Status.Devices)
	if r.IntN(2) == 0 {
		x.Group.DB = r.filter(x.host.Status.Devices)
	}
	if r.IntN(3) == 0 {
		x.Group.WAL = r.filter(x.host.Status.Devices)
	}
	if r.IntN(5) == 0 {
		x.Group.Logic = "OR"
	}
	named := false
	for _, f := range []*cephFilter{x.Group.Data, x.Group.WAL, x.Group.DB} {
		if f == nil {
			continue
		}
		if x.Group.Logic == "OR" || named {
			f.Limit = 0 // of several filters each has a limit of its own; and see sortedPaths
		}
		if dump(f) == "{}" {
			f.Model = "PM"
		}
		named = named || len(f.Paths) > 0
	}
	for _, d := range x.host.Status.Devices {
		x.Disks = append(x.Disks, cephDisk{Path: d.Path, Available: d.Taken() == "", Facts: map[string]any{
			"size": float64(d.Size.Value()), "model": d.Model, "vendor": d.Vendor,
			"rotational": map[bool]string{true: "1", false: "0"}[d.Media == api.MediaRotational],
		}})
	}
	return x
}

// filters are those of Holdfast that mean the same as one of Ceph: with OR, one for each property.
func (f *cephFilter) filters(logic string) []api.DriveFilter {
	if f == nil {
		return nil
	}
	whole := api.DriveFilter{
		Match: api.DriveMatchCeph, All: f.All, Paths: f.Paths, Model: f.Model, Vendor: f.Vendor, Size: f.Size,
		Rotational: f.Rotational, Limit: f.Limit,
	}
	if logic != "OR" || f.All || len(f.Paths) > 0 {
		return []api.DriveFilter{whole}
	}
	var all []api.DriveFilter
	for _, has := range []struct {
		is     bool
		filter api.DriveFilter
	}{
		{f.Model != "", api.DriveFilter{Model: f.Model}},
		{f.Vendor != "", api.DriveFilter{Vendor: f.Vendor}},
		{f.Size != "", api.DriveFilter{Size: f.Size}},
		{f.Rotational != nil, api.DriveFilter{Rotational: f.Rotational}},
	} {
		if has.is {
			has.filter.Match = api.DriveMatchCeph
			all = append(all, has.filter)
		}
	}
	if len(all) == 0 {
		return []api.DriveFilter{whole}
	}
	return all
}

// selected is what Holdfast selects, or why it refuses the group.
func (x *cephCase) selected() (a cephAnswer) {
	g := group("g", nil)
	g.Spec.NewDevices, g.Spec.DataDevices = api.NewDevicesReport, x.Group.Data.filters(x.Group.Logic)
	g.Spec.DBDevices, g.Spec.WALDevices = x.Group.DB.filters(x.Group.Logic), x.Group.WAL.filters(x.Group.Logic)
	for i, list := range [][]api.DriveFilter{g.Spec.DataDevices, g.Spec.DBDevices, g.Spec.WALDevices} {
		for j := range list {
			if err := cephmatch.Validate(&list[j], i == 0); err != nil {
				a.Error = err.Error()
			}
		}
	}
	if a.Error != "" {
		return a
	}
	o := newOutcome(g)
	o.look([]api.Host{x.host}, env(nobody), nobody)
	for _, at := range o.places() {
		path := inventoried(&x.host, at.ID).Path
		switch {
		case o.shared[at]:
			a.Error = "a disk is for two"
		case o.matches[at] != nil:
			a.Data = append(a.Data, path)
		case o.shelves[at] == DB:
			a.DB = append(a.DB, path)
		case o.shelves[at] == WAL:
			a.WAL = append(a.WAL, path)
		}
	}
	return a
}

// sortedPaths are those that are not taken by what chose before. Ceph's library forgets that for those
// that are named by their paths.
func sortedPaths(paths []string, before ...[]string) string {
	taken := slices.Concat(before...)
	left := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return slices.Contains(taken, p) })
	slices.Sort(left)
	return fmt.Sprint(left)
}

// TestMatch_likeCeph compares what groups with match Ceph select with what Ceph's own library does. Which
// disks are available is not compared: Holdfast decides that.
func TestMatch_likeCeph(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := &drawing{rand.New(rand.NewPCG(seed, 0))}
	cases := make([]cephCase, 500)
	for i := range cases {
		cases[i] = r.one()
	}
	refused, some := 0, 0
	for i, want := range askCeph(t, cases) {
		x := &cases[i]
		got := x.selected()
		if refused += boolean(got.Error != ""); got.Error != "" {
			if want.Error == "" && !onlyHereRefused(x) {
				t.Errorf("case %d: Holdfast refuses it (%s), Ceph does not: %s", i, got.Error, dump(x))
			}
			continue
		}
		if want.Error != "" {
			t.Errorf("case %d: Ceph refuses it (%s), Holdfast does not: %s", i, want.Error, dump(x))
			continue
		}
		some += boolean(len(want.Data)+len(want.DB)+len(want.WAL) > 0)
		texts := func(a cephAnswer) []string {
			return []string{sortedPaths(a.Data), sortedPaths(a.WAL, a.Data), sortedPaths(a.DB, a.Data, a.WAL)}
		}
		if diff := cmp.Diff(texts(want), texts(got)); diff != "" {
			t.Errorf("case %d: data, wal, db (-Ceph +Holdfast):\n%s%s", i, diff, dump(x))
		}
	}
	if refused < 25 || refused > 250 || some < 150 {
		t.Errorf("of %d cases %d are refused and %d select something: the test is worth little", len(cases), refused, some)
	}
}

// onlyHereRefused says whether a size is one of those that Ceph looks at only when it has a disk to
// compare, and then by its beginning alone.
func onlyHereRefused(x *cephCase) bool {
	return slices.ContainsFunc([]*cephFilter{x.Group.Data, x.Group.DB, x.Group.WAL}, func(f *cephFilter) bool {
		if f == nil || f.Size == "" {
			return false
		}
		_, err := cephmatch.ParseSize(f.Size)
		return err != nil
	})
}

func boolean(is bool) int {
	if is {
		return 1
	}
	return 0
}

func dump(x any) string {
	text, err := json.Marshal(x)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// askCeph asks the library once for all cases.
func askCeph(t *testing.T, cases []cephCase) (answers []cephAnswer) {
	t.Helper()
	in, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/usr/bin/python3", "testdata/drive_selection.py")
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		text := ""
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			text = string(exit.Stderr)
		}
		t.Fatalf("Ceph's library does not answer: %v\n%s\n'hack/install-deps tests' installs it", err, text)
	}
	if err := json.Unmarshal(out, &answers); err != nil || len(answers) != len(cases) {
		t.Fatalf("%d answers, %v", len(answers), err)
	}
	return answers
}
