package spec

import (
	"maps"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// matchCeph has a filter compare as Ceph's own orchestrator does
// (src/python-common/ceph/deployment/drive_selection/matchers.py).
const matchCeph = "Ceph"

// mostDisks bounds how many disks of one host a filter takes.
const mostDisks = 512

// filters translates a DeviceSelection: one filter, which matches what all its properties do. With
// filter_logic OR: one for each property.
func (d *document) filters(field string, or bool) []any {
	value := d.take(field)
	in, ok := value.(map[string]any)
	if !ok {
		if value != nil {
			d.refuse(field, "it must be an object such as {rotational: 1}")
		}
		return nil
	}
	s := &document{service: d.service + ": " + field, fields: maps.Clone(in)}
	properties := s.properties()
	limit := s.number("limit", 1, mostDisks)
	if or && limit > 0 {
		s.refuse("limit", "with filter_logic OR it has no single meaning: leave it out, or use AND")
	}
	if field != "data_devices" && properties["all"] != nil {
		s.refuse("all", "Ceph takes it for data_devices alone: select the disks by their properties")
	}
	if len(properties) == 0 {
		s.refuse("limit", "it selects nothing by itself: select the disks by their properties, too")
	}
	if s.finish(); s.problem != nil && d.problem == nil {
		d.problem = s.problem
	}
	all := []any{}
	if or {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			all = append(all, map[string]any{name: properties[name], "match": matchCeph})
		}
		return all
	}
	properties.put("limit", limit)
	properties["match"] = matchCeph
	return append(all, map[string]any(properties))
}

// properties are the conditions on disks, as a DriveFilter has them.
func (d *document) properties() fields {
	p := fields{}
	p.put("all", d.flag("all"))
	p.put("paths", listOf(d.paths()))
	p.put("model", d.text("model"))
	p.put("vendor", d.text("vendor"))
	p.put("size", d.text("size"))
	switch v := d.take("rotational").(type) {
	case nil:
	case bool:
		p["rotational"] = v
	default:
		n, ok := whole(v)
		if !ok || n < 0 || n > 1 {
			d.refuse("rotational", "it must be 0 or 1")
		}
		p["rotational"] = n == 1
	}
	return p
}

// paths takes out paths of disks: each a text, or an object that has it.
func (d *document) paths() (paths []string) {
	value := d.take("paths")
	all, ok := value.([]any)
	if !ok && value != nil {
		d.refuse("paths", "it must be a list")
	}
	for _, one := range all {
		path, _ := one.(string)
		if o, is := one.(map[string]any); is {
			path, _ = o["path"].(string)
			if !isEmpty(o["crush_device_class"]) {
				d.refuse("paths", "%s: a single disk has no crush_device_class: put it into the document's own, and "+
					"disks of another class into a document of their own", path)
			}
		}
		if path == "" {
			d.refuse("paths", "each must be a text such as /dev/disk/by-id/ID")
		}
		paths = append(paths, path)
	}
	return paths
}

// deviceSelection is the reverse of filters; ok is false where Ceph has no words for it.
func deviceSelection(filters []api.DriveFilter, or bool) (selection fields, ok bool) {
	selection = fields{}
	for i := range filters {
		one := properties(&filters[i])
		if or && len(one) != 1 {
			return nil, false
		}
		for name, value := range one {
			if selection[name] != nil {
				return nil, false
			}
			selection[name] = value
		}
	}
	limited := 0
	if selection["limit"] != nil {
		limited = 1
	}
	alone := selection["all"] != nil || selection["paths"] != nil // Ceph takes these with no other
	return selection, !alone || len(selection)-limited == 1
}

func properties(f *api.DriveFilter) fields {
	p := fields{}
	p.put("all", f.All)
	p.put("paths", listOf(f.Paths))
	p.put("model", f.Model)
	p.put("vendor", f.Vendor)
	p.put("size", f.Size)
	p.put("limit", int64(f.Limit))
	if f.Rotational != nil {
		p["rotational"] = 0
		if *f.Rotational {
			p["rotational"] = 1
		}
	}
	return p
}
