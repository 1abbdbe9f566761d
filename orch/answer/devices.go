package answer

import (
	"cmp"
	"encoding/json"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/drives/cephmatch"
)

// Inventory is an InventoryHost. Devices, a list of Device, are added to it as they were encoded.
type Inventory struct {
	Name   string   `json:"name"`
	Addr   string   `json:"addr"`
	Labels []string `json:"labels"`
	// Created is that of all of its devices.
	Created string `json:"created"`
}

// Device is a Device of ceph.deployment.inventory.
type Device struct {
	Path      string   `json:"path"`
	Available bool     `json:"available"`
	Reasons   []string `json:"rejected_reasons"`
	Facts     Facts    `json:"sys_api"`
	ID        string   `json:"device_id"`
	// LVs has to be a list: the dashboard counts its entries.
	LVs  []string `json:"lvs"`
	Ceph bool     `json:"ceph_device"`
}

// Facts are what ceph-volume calls sys_api.
type Facts struct {
	Size       float64 `json:"size"`
	HumanSize  string  `json:"human_readable_size"`
	Rotational string  `json:"rotational"`
	Model      string  `json:"model"`
	Vendor     string  `json:"vendor"`
	Removable  string  `json:"removable"`
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
	listens, now, rows := c.addresses(), stamp(c.Now), list{field: "devices"}
	for _, h := range c.used() {
		labels := labels(h)
		if !a.Filter.wants(h.Name, labels) {
			continue
		}
		row, err := json.Marshal(Inventory{Name: h.Name, Addr: address(h, listens), Labels: labels, Created: now})
		if err != nil {
			return nil, err
		}
		devices, err := c.Rows.of(h, "", func() any { return devicesOf(h) })
		if err != nil {
			return nil, err
		}
		rows.add(row, devices)
	}
	return rows.text(), nil
}

func devicesOf(h *api.Host) []Device {
	all := []Device{}
	for i := range h.Status.Devices {
		if d := &h.Status.Devices[i]; slices.Contains(whole, d.Kind) {
			all = append(all, describeDevice(d))
		}
	}
	return all
}

func describeDevice(d *api.Device) Device {
	size := d.Size.Value()
	rotational := map[bool]string{true: "1", false: "0"}[d.Media == api.MediaRotational]
	reasons := slices.Concat([]string{}, d.Reasons)
	if taken := d.Taken(); taken != "" && len(reasons) == 0 {
		reasons = []string{taken}
	}
	return Device{
		Path: cmp.Or(d.Path, d.ID), ID: d.ID, Available: d.Taken() == "", Reasons: reasons,
		LVs: []string{}, Ceph: d.Ceph != nil,
		Facts: Facts{
			Size: float64(size), HumanSize: cephmatch.HumanSize(size), Rotational: rotational,
			Model: d.Model, Vendor: d.Vendor, Removable: "0",
		},
	}
}
