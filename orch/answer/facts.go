package answer

import (
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// facts are what is known of machines, by the names that 'cephadm gather-facts' gives them: 'ceph
// orch host ls --detail' and the dashboard read them.
func facts(c *Call) (any, error) {
	a, err := args[struct {
		Host string `json:"hostname"`
	}](c)
	if err != nil {
		return nil, err
	}
	rows := []map[string]any{}
	for _, h := range c.used() {
		if is(a.Host, h.Name) {
			rows = append(rows, factsOf(h))
		}
	}
	if a.Host != "" && len(rows) == 0 {
		return nil, Errorf("host %s is no host of cluster %s: see 'ceph orch host ls'", a.Host, c.View.Cluster.Name)
	}
	return rows, nil
}

func factsOf(h *api.Host) map[string]any {
	row := map[string]any{"hostname": h.Name}
	addDisks(row, h)
	f := h.Status.Facts
	if f == nil {
		return row
	}
	row["kernel"], row["operating_system"], row["arch"] = f.Kernel, f.OS, f.Architecture
	row["vendor"], row["model"], row["cpu_model"] = f.Vendor, f.Model, f.CPUModel
	// Ceph multiplies the cores and threads of one processor by the number of processors.
	sockets := max(f.CPUSockets, 1)
	row["cpu_count"], row["cpu_cores"], row["cpu_threads"] = sockets, f.CPUCores/sockets, f.CPUThreads/sockets
	if f.Memory != nil {
		row["memory_total_kb"] = f.Memory.Value() / 1024
	}
	nics := map[string]any{}
	for _, i := range f.Interfaces {
		state := "down"
		if i.Up {
			state = "up"
		}
		nics[string(i.Name)] = map[string]any{
			"mtu": i.MTU, "speed": i.Speed, "operstate": state, "nic_type": "ethernet",
			"ipv4_address": first(i.Addresses),
		}
	}
	row["interfaces"], row["nic_count"] = nics, len(nics)
	return row
}

func first(texts []api.FactText) api.FactText {
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}

// addDisks sums up the disks of a host.
func addDisks(row map[string]any, h *api.Host) {
	count, bytes := map[api.MediaKind]int{}, map[api.MediaKind]int64{}
	for i := range h.Status.Devices {
		if d := &h.Status.Devices[i]; d.Kind == api.DeviceDisk {
			count[d.Media]++
			bytes[d.Media] += d.Size.Value()
		}
	}
	row["hdd_count"], row["hdd_capacity_bytes"] = count[api.MediaRotational], bytes[api.MediaRotational]
	row["flash_count"], row["flash_capacity_bytes"] = count[api.MediaSolidState], bytes[api.MediaSolidState]
}
