package ceph

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// AdoptFacts are what a running cluster says of itself, when it is to be adopted.
type AdoptFacts struct {
	FSID, Health string
	// Daemons are the mons, managers and OSDs in Ceph's own maps, in this order and by name.
	Daemons []ClusterDaemon
	// Others are the services beside them that Ceph knows (mds, rgw …), each as "mds.a".
	Others []string
	// Keys are the cephx keys of the daemons and of client.admin, by entity.
	Keys map[string]CephKey
	// DeviceKeys are what the devices of encrypted OSDs are opened with, by the OSDs' UUIDs in lower case, as the mons keep them for ceph-volume.
	DeviceKeys map[string]string
	// Crush are the buckets of CRUSH, and the OSDs in them, by their names.
	Crush map[string]Bucket
	// Settings are options that Holdfast writes into ceph.conf unless others are declared, as the cluster has them now.
	Settings map[string]string
}

// ClusterDaemon is a daemon as Ceph knows it.
type ClusterDaemon struct {
	Type, ID string
	// Host is the machine's name as the daemon itself says it; empty for one that does not run.
	Host string
	// Addrs is how it listens, as Ceph writes it: [v2:10.0.0.1:3300/0,v1:10.0.0.1:6789/0].
	Addrs   string
	Version string
	// UUID is an OSD's own identity, Path the device that its data is on.
	UUID, Path string
	// Store is an OSD's object store (bluestore).
	Store string
	// Apart are the names of those devices that it has beside its main one (block.db, block.wal).
	Apart []string
	// Contained is set when it runs in a container.
	Contained bool
	// Options are those that it has from the ceph.conf of its host; nil where nobody tells.
	Options map[string]string
	// Active is set for the active manager.
	Active bool
	Up     bool
}

// Label is what Ceph calls the daemon.
func (d *ClusterDaemon) Label() string { return kindOf(d.Type) + "." + d.ID }

// CephKey is an entity of Ceph's auth database.
type CephKey struct {
	Key  string            `json:"key"`
	Caps map[string]string `json:"caps"`
}

// keptSettings are options that Holdfast's own ceph.conf sets, and that an adopted cluster keeps as it has them, with Ceph's default.
var keptSettings = []string{"auth_allow_insecure_global_id_reclaim", "osd_pool_default_size"}

// AskAdopt asks a running cluster for what has to be known to adopt it. It changes nothing.
func AskAdopt(ctx context.Context, c rados.Client) (*AdoptFacts, error) {
	x := &adoptAsker{ctx: ctx, client: c, facts: &AdoptFacts{Keys: map[string]CephKey{}, DeviceKeys: map[string]string{}, Settings: map[string]string{}}}
	for _, step := range []func() error{x.status, x.mons, x.mgrs, x.osds, x.keys, x.deviceKeys, x.settings, x.configs, x.crush} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return x.facts, nil
}

type adoptAsker struct {
	ctx    context.Context //nolint:containedctx // it lives for one call
	client rados.Client
	facts  *AdoptFacts
}

func (x *adoptAsker) ask(c command, into any) error {
	c["format"] = "json"
	ctx, cancel := context.WithTimeout(x.ctx, rados.DefaultTimeout)
	defer cancel()
	out, err := x.client.Mon(ctx, c, nil)
	if err != nil {
		return fmt.Errorf("while asking for '%s': %w", c["prefix"], err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("while reading the answer to '%s': %w", c["prefix"], err)
	}
	return nil
}

func (x *adoptAsker) status() error {
	var s struct {
		FSID   string                  `json:"fsid"`
		Health struct{ Status string } `json:"health"`
		FSMap  struct {
			ByRank []struct{ Name string } `json:"by_rank"`
			Spare  int                     `json:"up:standby"`
		} `json:"fsmap"`
		ServiceMap struct {
			Services map[string]struct {
				Daemons map[string]json.RawMessage `json:"daemons"`
			} `json:"services"`
		} `json:"servicemap"`
	}
	if err := x.ask(command{"prefix": "status"}, &s); err != nil {
		return err
	}
	x.facts.FSID, x.facts.Health = s.FSID, s.Health.Status
	for _, mds := range s.FSMap.ByRank {
		x.facts.Others = append(x.facts.Others, "mds."+mds.Name)
	}
	if s.FSMap.Spare > 0 {
		x.facts.Others = append(x.facts.Others, fmt.Sprintf("%d standby mds", s.FSMap.Spare))
	}
	for _, service := range slices.Sorted(maps.Keys(s.ServiceMap.Services)) {
		for _, id := range slices.Sorted(maps.Keys(s.ServiceMap.Services[service].Daemons)) {
			// For a moment after its start the mgr can list an OSD as a service, too.
			if id != "summary" && !slices.Contains([]string{"mon", "mgr", "osd", "mds"}, service) {
				x.facts.Others = append(x.facts.Others, service+"."+id)
			}
		}
	}
	return nil
}

// metadata is what a daemon says of itself.
type metadata struct {
	Name      string `json:"name"`
	ID        int    `json:"id"`
	Host      string `json:"hostname"`
	Version   string `json:"ceph_version_short"`
	Image     string `json:"container_image"`
	Store     string `json:"osd_objectstore"`
	Front     string `json:"front_addr"`
	Addr      string `json:"addr"`
	Path      string `json:"bluestore_bdev_partition_path"`
	Node      string `json:"bluestore_bdev_dev_node"`
	Dedicated string `json:"bluefs_dedicated_db"`
	WAL       string `json:"bluefs_dedicated_wal"`
}

// told takes what a daemon says of itself.
func (d *ClusterDaemon) told(m metadata) {
	d.Host, d.Version, d.Contained = m.Host, m.Version, m.Image != ""
	if d.Type != TypeOSD {
		return
	}
	d.Store, d.Addrs, d.Path = m.Store, m.Front, m.Path
	if d.Path == "" {
		d.Path = m.Node
	}
	if m.Dedicated == "1" {
		d.Apart = append(d.Apart, DeviceDB)
	}
	if m.WAL == "1" {
		d.Apart = append(d.Apart, DeviceWAL)
	}
}

func (x *adoptAsker) metadata(kind string) ([]metadata, error) {
	var all []metadata
	return all, x.ask(command{"prefix": kind + " metadata"}, &all)
}

func (x *adoptAsker) mons() error {
	var dump struct {
		Mons []struct {
			Name  string `json:"name"`
			Addrs struct {
				Vec []struct{ Type, Addr string } `json:"addrvec"`
			} `json:"public_addrs"`
		} `json:"mons"`
		Quorum []int `json:"quorum"`
	}
	if err := x.ask(command{"prefix": "mon dump"}, &dump); err != nil {
		return err
	}
	said, err := x.metadata("mon")
	if err != nil {
		return err
	}
	for rank, m := range dump.Mons {
		d := ClusterDaemon{Type: TypeMon, ID: m.Name, Up: slices.Contains(dump.Quorum, rank)}
		var addrs []string
		for _, a := range m.Addrs.Vec {
			addrs = append(addrs, a.Type+":"+a.Addr)
		}
		d.Addrs = "[" + strings.Join(addrs, ",") + "]"
		x.add(d, said)
	}
	return nil
}

func (x *adoptAsker) mgrs() error {
	var dump struct {
		Active   string                  `json:"active_name"`
		Standbys []struct{ Name string } `json:"standbys"`
	}
	if err := x.ask(command{"prefix": "mgr dump"}, &dump); err != nil {
		return err
	}
	said, err := x.metadata("mgr")
	if err != nil {
		return err
	}
	names := []string{}
	if dump.Active != "" {
		names = append(names, dump.Active)
	}
	for _, s := range dump.Standbys {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	for _, name := range names {
		d := ClusterDaemon{Type: TypeMgr, ID: name, Active: name == dump.Active, Up: true}
		if i := slices.IndexFunc(said, func(m metadata) bool { return m.Name == name }); i >= 0 {
			d.Addrs = said[i].Addr
		}
		x.add(d, said)
	}
	return nil
}

// add adds a daemon, with what it says of itself.
func (x *adoptAsker) add(d ClusterDaemon, said []metadata) {
	for _, m := range said {
		if m.Name == d.ID || d.Type == TypeOSD && strconv.Itoa(m.ID) == d.ID {
			d.told(m)
			break
		}
	}
	x.facts.Daemons = append(x.facts.Daemons, d)
}

func (x *adoptAsker) osds() error {
	var dump osdMap
	if err := x.ask(command{"prefix": "osd dump"}, &dump); err != nil {
		return err
	}
	said, err := x.metadata("osd")
	if err != nil {
		return err
	}
	for _, o := range dump.OSDs {
		x.add(ClusterDaemon{Type: TypeOSD, ID: strconv.Itoa(o.ID), UUID: o.UUID, Up: o.Up != 0}, said)
	}
	return nil
}

func (x *adoptAsker) keys() error {
	entities := []string{entityMon, entityAdmin}
	for i := range x.facts.Daemons {
		if d := &x.facts.Daemons[i]; d.Type != TypeMon {
			entities = append(entities, d.Label())
		}
	}
	for _, entity := range entities {
		var keys []CephKey
		if err := x.ask(command{"prefix": "auth get", "entity": entity}, &keys); err != nil {
			return err
		}
		if len(keys) != 1 || keys[0].Key == "" {
			return fmt.Errorf("Ceph returned no key of %s", entity) //nolint:staticcheck // Ceph is a name
		}
		x.facts.Keys[entity] = keys[0]
	}
	return nil
}

// deviceKeys asks for the keys of encrypted OSDs ('osd new' stores them: Ceph, mon/ConfigKeyService.cc, do_osd_new, as dm-crypt/osd/UUID/luks).
func (x *adoptAsker) deviceKeys() error {
	var names []string
	if err := x.ask(command{"prefix": "config-key ls"}, &names); err != nil {
		return err
	}
	for i := range x.facts.Daemons {
		uuid := strings.ToLower(x.facts.Daemons[i].UUID)
		name := "dm-crypt/osd/" + uuid + "/luks"
		if uuid == "" || !slices.Contains(names, name) {
			continue
		}
		key, err := x.plain(command{"prefix": "config-key get", "key": name})
		if err != nil {
			return err
		}
		x.facts.DeviceKeys[uuid] = key
	}
	return nil
}

// plain asks for what is told as text.
func (x *adoptAsker) plain(c command) (string, error) {
	ctx, cancel := context.WithTimeout(x.ctx, rados.DefaultTimeout)
	defer cancel()
	out, err := x.client.Mon(ctx, c, nil)
	if err != nil {
		return "", fmt.Errorf("while asking for '%s': %w", c["prefix"], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// mgr asks the active manager.
func (x *adoptAsker) mgr(c command) ([]byte, error) {
	ctx, cancel := context.WithTimeout(x.ctx, rados.DefaultTimeout)
	defer cancel()
	return x.client.Mgr(ctx, c, nil)
}

func (x *adoptAsker) settings() error {
	for _, name := range keptSettings {
		value, err := x.plain(command{"prefix": "config get", "who": "mon", "key": name})
		if err != nil {
			return err
		}
		x.facts.Settings[name] = value
	}
	return nil
}

// ipOf is the first address in an address vector of Ceph, or in a plain address.
func ipOf(addrs string) string {
	first, _, _ := strings.Cut(strings.Trim(addrs, "[]"), ",")
	if strings.HasPrefix(addrs, "[v") || strings.HasPrefix(addrs, "v") {
		_, first, _ = strings.Cut(strings.TrimPrefix(addrs, "["), ":")
	}
	first, _, _ = strings.Cut(first, ",")
	first, _, _ = strings.Cut(first, "/")
	if at, err := netip.ParseAddrPort(first); err == nil {
		return at.Addr().String()
	}
	if ip, err := netip.ParseAddr(first); err == nil {
		return ip.String()
	}
	return ""
}
