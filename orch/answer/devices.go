package answer

import (
	"cmp"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/drives/cephmatch"
)

// Inventory is an InventoryHost.
type Inventory struct {
	Name    string   `json:"name"`
	Addr    string   `json:"addr"`
	Labels  []string `json:"labels"`
	Devices []Device `json:"devices"`
}

// Device is a Device of ceph.deployment.inventory.
type Device struct {
	Path      string         `json:"path"`
	Available bool           `json:"available"`
	Reasons   []string       `json:"rejected_reasons"`
	Facts     map[string]any `json:"sys_api"`
	ID        string         `json:"device_id"`
	// LVs has to be a list: the dashboard counts its entries.
	LVs     []string `json:"lvs"`
	Ceph    bool     `json:"ceph_device"`
	Created string   `json:"created"`
}

// whole are the kinds of devices that an OSD can be put on as a whole.
var whole = []api.DeviceKind{api.DeviceDisk, api.DeviceLoop, api.DeviceRaid}

// filter is an InventoryFilter.
type filter struct {
	Hosts  []string `json:"hosts"`
	Labels []string `json:"labels"`
}

func (f *filter) wants(host string, labels []string) bool {
	if f == nil {
		return true
	}
	return (len(f.Hosts) == 0 || slices.Contains(f.Hosts, host)) &&
		(len(f.Labels) == 0 || slices.ContainsFunc(f.Labels, func(l string) bool { return slices.Contains(labels, l) }))
}

// devices need no refresh: agents report a device when the kernel announces it.
func devices(c *Call) (any, error) {
	a, err := args[struct {
		Filter *filter `json:"host_filter"`
	}](c)
	if err != nil {
		return nil, err
	}
	rows := []Inventory{}
	for _, h := range c.used() {
		if !a.Filter.wants(h.Name, labels(h)) {
			continue
		}
		row := Inventory{Name: h.Name, Addr: c.address(h), Labels: labels(h), Devices: []Device{}}
		for i := range h.Status.Devices {
			if d := &h.Status.Devices[i]; slices.Contains(whole, d.Kind) {
				row.Devices = append(row.Devices, c.device(d))
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (c *Call) device(d *api.Device) Device {
	size := d.Size.Value()
	rotational := map[bool]string{true: "1", false: "0"}[d.Media == api.MediaRotational]
	reasons := slices.Concat([]string{}, d.Reasons)
	if taken := d.Taken(); taken != "" && len(reasons) == 0 {
		reasons = []string{taken}
	}
	return Device{
		Path: cmp.Or(d.Path, d.ID), ID: d.ID, Available: d.Taken() == "", Reasons: reasons,
		LVs: []string{}, Ceph: d.Ceph != nil, Created: stamp(c.Now),
		Facts: map[string]any{
			"size": float64(size), "human_readable_size": cephmatch.HumanSize(size), "rotational": rotational,
			"model": d.Model, "vendor": d.Vendor, "removable": "0",
		},
	}
}
