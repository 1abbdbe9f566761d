package radostest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// bucket is a bucket of CRUSH: its type, and the one that it is in, which is none for one that was only just added.
type bucket struct{ kind, in string }

// crushRoot is the root of CRUSH, and crushKinds its types of buckets, the smallest first, as in the map of a new Ceph 16.
const crushRoot = "default"

var crushKinds = []string{"osd", "host", "chassis", "rack", "row", "pdu", "pod", "room", "datacenter", "zone", "region", "root"}

// start is where an OSD puts itself when it starts, by its ceph.conf; one that stays does not.
type start struct {
	host, address string
	stays         bool
}

// startOf reads what a real OSD reads: crush_location, or the kernel's short name of the host, and whether it is to put itself anywhere.
func (c *Cluster) startOf(d *api.Daemon) start {
	kernel := cmp.Or(c.kernels[d.Spec.Host], d.Spec.Host)
	s := start{address: d.Spec.Parameters["address"]}
	s.host, _, _ = strings.Cut(kernel, ".")
	for _, f := range d.Spec.Files {
		for _, src := range f.Sources {
			if f.Path != "ceph.conf" || src.Text == nil {
				continue
			}
			for line := range strings.Lines(*src.Text) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), " = ")
				_, host, is := strings.Cut(value, "host=")
				switch {
				case name == "crush_location" && is:
					s.host = host
				case name == "osd_crush_update_on_start":
					s.stays = value == "false"
				}
			}
		}
	}
	return s
}

// HostOf is the bucket that CRUSH has an OSD in.
func (c *Cluster) HostOf(id int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.osds[id].host
}

// Call has the kernel of a host call it by another name than Holdfast does.
func (c *Cluster) Call(host, kernel string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kernels[host] = kernel
}

// hostStarts has an OSD start on a host, which puts itself below it as 'osd crush create-or-move' does: a host that is there stays where it is.
func (c *Cluster) hostStarts(host string) {
	if _, there := c.buckets[host]; !there {
		c.buckets[host] = bucket{"host", crushRoot}
	}
}

// addBucket makes a bucket, at a location if one is given; one that is there stays where it is.
func (c *Cluster) addBucket(name, kind string, to []any) (syscall.Errno, string) {
	if !slices.Contains(crushKinds, kind) || kind == c.without {
		return syscall.EINVAL, "type '" + kind + "' does not exist"
	}
	if _, there := c.buckets[name]; there {
		return 0, "bucket '" + name + "' already exists"
	}
	c.buckets[name] = bucket{kind: kind}
	c.epoch++
	if len(to) == 0 {
		return 0, ""
	}
	return c.moveBucket(name, to)
}

// moveBucket follows CrushWrapper::move_bucket of Ceph 16: a bucket comes below the smallest one of its location, and what is missing of that
// is made, up to the first that is there, which stays where it is. Of a type that there is none of it takes no notice.
func (c *Cluster) moveBucket(name string, args []any) (syscall.Errno, string) {
	to := map[string]string{}
	for _, arg := range args {
		kind, in, _ := strings.Cut(fmt.Sprint(arg), "=")
		to[kind] = in
	}
	if id, err := strconv.Atoi(strings.TrimPrefix(name, "osd.")); err == nil && c.osds[id] != nil {
		c.osds[id].host = to["host"]
		c.hostStarts(to["host"])
		c.changed()
		return 0, ""
	}
	moved, there := c.buckets[name]
	if !there {
		return syscall.ENOENT, "item " + name + " does not exist"
	}
	child := name
	for _, kind := range crushKinds {
		in := to[kind]
		if in == "" {
			continue
		}
		if b, there := c.buckets[in]; there && b.kind != kind {
			return syscall.EINVAL, fmt.Sprintf("bucket %s has type '%s' != '%s'", in, b.kind, kind)
		}
		c.buckets[child] = bucket{moved.kind, in}
		if _, there := c.buckets[in]; there || in == crushRoot {
			break
		}
		child, moved = in, bucket{kind: kind}
		c.buckets[in] = moved
	}
	c.changed()
	return 0, ""
}

// crushRm refuses what is not empty. An OSD runs on without a place.
func (c *Cluster) crushRm(name string) syscall.Errno {
	if id, err := strconv.Atoi(strings.TrimPrefix(name, "osd.")); err == nil && c.osds[id] != nil {
		c.osds[id].host = ""
		c.changed()
		return 0
	}
	if len(c.below(name)) > 0 {
		return syscall.ENOTEMPTY
	}
	delete(c.buckets, name)
	c.epoch++
	return 0
}

// below are the buckets or OSDs of a bucket.
func (c *Cluster) below(name string) []string {
	names := []string{}
	for child, b := range c.buckets {
		if b.in == name {
			names = append(names, child)
		}
	}
	for id, o := range c.osds {
		if o.host == name {
			names = append(names, "osd."+strconv.Itoa(id))
		}
	}
	slices.Sort(names)
	return names
}

// bucketOf is the bucket of a level that an OSD is in; its own name where there is none.
func (c *Cluster) bucketOf(id int, level string) string {
	for name := c.osds[id].host; name != "" && level != "osd"; name = c.buckets[name].in {
		if c.buckets[name].kind == level {
			return name
		}
	}
	return "osd." + strconv.Itoa(id)
}

func (c *Cluster) hosts() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.buckets)), func(name string) bool { return c.buckets[name].kind != "host" })
}

// Buckets are CRUSH's hosts.
func (c *Cluster) Buckets() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hosts()
}

// Locations are where CRUSH has its hosts, as "HOST in BUCKET in BUCKET".
func (c *Cluster) Locations() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.hosts()
	for i, name := range all {
		for in := c.buckets[name].in; in != ""; in = c.buckets[in].in {
			all[i] += " in " + in
		}
	}
	return all
}

// Put puts a bucket below another one, as a person does.
func (c *Cluster) Put(name, kind, in string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buckets[name] = bucket{kind, in}
	c.changed()
}

// Adopt has OSDs be below another bucket, as a person moves them.
func (c *Cluster) Adopt(bucket string, osds ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range osds {
		c.osds[id].host = bucket
	}
	c.changed()
}

// WithoutType has CRUSH know no buckets of a type, as where somebody wrote another map.
func (c *Cluster) WithoutType(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.without = kind
}

// Weighs says whether CRUSH has OSDs of a weight below a host.
func (c *Cluster) Weighs(host string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.osds {
		if o.host == host && o.weight > 0 {
			return true
		}
	}
	return false
}

// SpreadOver has copies spread over the racks that hosts, by CRUSH's names, are in.
func (c *Cluster) SpreadOver(racks map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.domain = "rack"
	for host, rack := range racks {
		c.buckets[rack], c.buckets[host] = bucket{"rack", crushRoot}, bucket{"host", rack}
	}
	c.changed()
}

// levelOf is what a rule spreads over.
func (c *Cluster) levelOf(rule string) string {
	if rule == firstRule {
		return cmp.Or(c.domain, c.birth, "host")
	}
	for _, r := range c.made {
		if r.name == rule {
			return r.domain
		}
	}
	return ""
}

// tree has the root, and what is in none, at the top.
func (c *Cluster) tree() any {
	a := recorded("osd-tree")
	names, numbers, children := slices.Sorted(maps.Keys(c.buckets)), map[string]int{}, map[string][]int{}
	for i, name := range names {
		numbers[name], children[name] = -100-i, []int{}
	}
	for _, name := range names {
		in := c.buckets[name].in
		children[in] = append(children[in], numbers[name])
	}
	osds := []any{}
	for _, id := range slices.Sorted(maps.Keys(c.osds)) {
		o := c.osds[id]
		if o.host != "" {
			children[o.host] = append(children[o.host], id)
		}
		osds = append(osds, map[string]any{"id": id, "name": "osd." + strconv.Itoa(id), "type": "osd", "device_class": "hdd", "crush_weight": o.weight})
	}
	root := maps.Clone(a["nodes"].([]any)[0].(map[string]any))
	root["children"] = append([]int{}, children[crushRoot]...)
	nodes := []any{root}
	for _, name := range names {
		kind := c.buckets[name].kind
		nodes = append(nodes, map[string]any{"id": numbers[name], "name": name, "type": kind, "type_id": slices.Index(crushKinds, kind), "children": children[name]})
	}
	a["nodes"] = append(nodes, osds...)
	return a
}

// crushVersion counts how often CRUSH was another one when it was looked at.
func (c *Cluster) crushVersion() int {
	var b strings.Builder
	fmt.Fprint(&b, c.buckets, c.domain, c.birth, c.made)
	for _, id := range slices.Sorted(maps.Keys(c.osds)) {
		fmt.Fprintln(&b, id, c.osds[id].host, c.osds[id].weight)
	}
	if now := b.String(); now != c.lastTree {
		c.lastTree = now
		c.crush++
	}
	return c.crush
}
