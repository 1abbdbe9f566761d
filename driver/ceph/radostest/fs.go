package radostest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// filesystem is one that was made by command.
type filesystem struct {
	id       int
	metadata int
	data     []int
	options  map[string]int
	ranks    map[int]string // the names of the MDS
	groups   map[string]int64
}

// Filesystems are the filesystems that were made, as "NAME: rank 0 MDS …, pools …, options, groups".
func (c *Cluster) Filesystems() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.filesystems)) {
		fs := c.filesystems[name]
		all = append(all, fmt.Sprintf("%s: ranks %v, pools %d %v, %v, groups %v", name, fs.ranks, fs.metadata, fs.data, fs.options, fs.groups))
	}
	return all
}

// Active are the MDS of a filesystem, by their ranks.
func (c *Cluster) Active(name string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	if fs := c.filesystems[name]; fs != nil {
		for _, rank := range slices.Sorted(maps.Keys(fs.ranks)) {
			all = append(all, fs.ranks[rank])
		}
	}
	return all
}

// MakeFilesystem makes a filesystem of pools that are there, as a person does.
func (c *Cluster) MakeFilesystem(name, metadata, data string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errno, said := c.fsNew(name, metadata, data); errno != 0 {
		panic(said) // the test asks for what cannot be
	}
}

// RenameFilesystem gives a filesystem another name, as a person does.
func (c *Cluster) RenameFilesystem(from, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.filesystems[to] = c.filesystems[from]
	delete(c.filesystems, from)
	c.fsEpoch++
}

// DropFilesystem removes a filesystem and leaves its pools, as a person does.
func (c *Cluster) DropFilesystem(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.filesystems, name)
	c.fsEpoch++
}

// TakeDataPool takes a data pool from a filesystem, as a person does.
func (c *Cluster) TakeDataPool(fs, pool string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.filesystems[fs]
	f.data = slices.DeleteFunc(f.data, func(id int) bool { return id == c.pools[pool].id })
	c.fsEpoch++
}

// DropGroup removes a subvolume group, as a person does.
func (c *Cluster) DropGroup(fs, group string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.filesystems[fs].groups, group)
}

// mds are the running MDS that the mons let in, and those of whose end they do not know.
func (c *Cluster) mds() []string {
	in := slices.Clone(c.Ghosts)
	for name := range c.running {
		if id, ok := strings.CutPrefix(name, "mds."); ok {
			if _, known := c.auth[name]; known {
				in = append(in, id)
			}
		}
	}
	slices.Sort(in)
	return in
}

// serveFilesystems gives ranks to those that run: each keeps its own.
func (c *Cluster) serveFilesystems() (free []string) {
	free = c.mds()
	for _, name := range slices.Sorted(maps.Keys(c.filesystems)) {
		fs := c.filesystems[name]
		for rank, id := range fs.ranks {
			if i := slices.Index(free, id); i >= 0 && rank < fs.options["max_mds"] {
				free = slices.Delete(free, i, i+1)
				continue
			}
			delete(fs.ranks, rank)
			c.fsEpoch++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.filesystems)) {
		for rank := range c.filesystems[name].options["max_mds"] {
			if c.filesystems[name].ranks[rank] == "" && len(free) > 0 {
				c.filesystems[name].ranks[rank], free = free[0], free[1:]
				c.fsEpoch++
			}
		}
	}
	if now := fmt.Sprint(free); now != c.lastStandbys {
		c.lastStandbys = now
		c.fsEpoch++
	}
	return free
}

// fsDump is 'fs dump'.
func (c *Cluster) fsDump() map[string]any {
	a := recorded("fs-dump")
	standby := a["standbys"].([]any)[0].(map[string]any)
	pattern := a["filesystems"].([]any)[0].(map[string]any)
	standbys, all := []any{}, []any{}
	for _, id := range c.serveFilesystems() {
		s := maps.Clone(standby)
		s["name"] = id
		standbys = append(standbys, s)
	}
	for _, name := range slices.Sorted(maps.Keys(c.filesystems)) {
		fs, entry := c.filesystems[name], maps.Clone(pattern)
		m := maps.Clone(entry["mdsmap"].(map[string]any))
		info, failed := map[string]any{}, []any{}
		for rank := range fs.options["max_mds"] {
			if fs.ranks[rank] == "" {
				failed = append(failed, rank)
				continue
			}
			info["gid_"+strconv.Itoa(rank)] = map[string]any{"name": fs.ranks[rank], "rank": rank, "state": "up:active"}
		}
		m["fs_name"], m["max_mds"], m["standby_count_wanted"] = name, fs.options["max_mds"], fs.options["standby_count_wanted"]
		m["metadata_pool"], m["data_pools"], m["failed"], m["info"] = fs.metadata, fs.data, failed, info
		entry["id"], entry["mdsmap"] = fs.id, m
		all = append(all, entry)
	}
	a["epoch"], a["standbys"], a["filesystems"] = c.fsEpoch, standbys, all
	return a
}

func (c *Cluster) fsNew(name, metadata, data string) (syscall.Errno, string) {
	if c.filesystems[name] != nil {
		return 0, fmt.Sprintf("filesystem '%s' already exists", name)
	}
	if c.pools[metadata] == nil || c.pools[data] == nil {
		return syscall.ENOENT, fmt.Sprintf("pool '%s' or '%s' does not exist", metadata, data)
	}
	if c.pools[data].erasure {
		return syscall.EINVAL, fmt.Sprintf("pool '%s' is an EC pool. Use of an EC pool for the default data pool is discouraged", data)
	}
	c.lastFS++
	c.filesystems[name] = &filesystem{
		id: c.lastFS, metadata: c.pools[metadata].id, data: []int{c.pools[data].id}, options: map[string]int{"max_mds": 1, "standby_count_wanted": 1},
		ranks: map[int]string{}, groups: map[string]int64{},
	}
	return 0, ""
}

// fsAnswer carries out the commands of filesystems, as MDSMonitor and FSCommands of Ceph 16 do.
func (c *Cluster) fsAnswer(prefix string, cmd map[string]any) (errno syscall.Errno, status string, known bool) {
	if prefix == "mds fail" {
		c.Ghosts = slices.DeleteFunc(c.Ghosts, func(id string) bool { return id == cmd["role_or_gid"] })
		return 0, "", true
	}
	if !strings.HasPrefix(prefix, "fs ") {
		return 0, "", false
	}
	name := fmt.Sprint(cmd["fs_name"])
	fs := c.filesystems[name]
	c.fsEpoch++
	switch prefix {
	case "fs new":
		errno, status = c.fsNew(name, fmt.Sprint(cmd["metadata"]), fmt.Sprint(cmd["data"]))
		return errno, status, true
	case "fs rm":
		if fs != nil && (len(fs.ranks) > 0 || cmd["yes_i_really_mean_it"] != true) {
			return syscall.EINVAL, "all MDS daemons must be inactive/failed before removing filesystem", true
		}
		delete(c.filesystems, name)
		return 0, "", true
	}
	if fs == nil {
		return syscall.ENOENT, fmt.Sprintf("filesystem not found: '%s'", name), true
	}
	switch prefix {
	case "fs set":
		if cmd["var"] == "down" {
			fs.options["max_mds"] = 0
			break
		}
		fs.options[fmt.Sprint(cmd["var"])], _ = strconv.Atoi(fmt.Sprint(cmd["val"]))
	case "fs fail":
		fs.options["max_mds"], fs.ranks = 0, map[int]string{}
	case "fs add_data_pool":
		p := c.pools[fmt.Sprint(cmd["pool"])]
		if p == nil || p.erasure && p.options["allow_ec_overwrites"] != "true" {
			return syscall.EINVAL, "pool is an EC pool, with no overwrite support", true
		}
		if !slices.Contains(fs.data, p.id) {
			fs.data = append(fs.data, p.id)
		}
	default:
		return syscall.EINVAL, "command not known", true
	}
	return 0, "", true
}

// groupAnswer carries out the commands of subvolume groups, as the module volumes of the manager does.
func (c *Cluster) groupAnswer(prefix string, cmd map[string]any) (answer any, errno syscall.Errno, status string) {
	fs, group := c.filesystems[fmt.Sprint(cmd["vol_name"])], fmt.Sprint(cmd["group_name"])
	if fs == nil || len(fs.ranks) == 0 {
		return nil, syscall.ENOENT, fmt.Sprintf("volume '%v' does not exist", cmd["vol_name"])
	}
	switch prefix {
	case "fs subvolumegroup ls":
		all := []any{}
		for _, g := range slices.Sorted(maps.Keys(fs.groups)) {
			all = append(all, map[string]any{"name": g})
		}
		return all, 0, ""
	case "fs subvolumegroup info":
		if fs.groups[group] == 0 {
			return map[string]any{"bytes_quota": "infinite"}, 0, ""
		}
		return map[string]any{"bytes_quota": fs.groups[group]}, 0, ""
	case "fs subvolumegroup create":
		size, _ := cmd["size"].(float64)
		fs.groups[group] = int64(size)
	case "fs subvolumegroup resize":
		fs.groups[group], _ = strconv.ParseInt(fmt.Sprint(cmd["new_size"]), 10, 64) // inf has no number
	}
	return nil, 0, ""
}
