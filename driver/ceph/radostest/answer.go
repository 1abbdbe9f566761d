package radostest

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/holdfast-storage/holdfast/driver/ceph/cephx"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

//go:embed testdata/*.json
var testdata embed.FS

// client is a connection to a Cluster.
type client struct{ c *Cluster }

// Mon answers at once, also when there is no quorum; a real client waits for one until its deadline.
func (k client) Mon(ctx context.Context, command any, input []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", rados.ErrNoAnswer, err)
	}
	cmd, err := object(command)
	if err != nil {
		return nil, err
	}
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	prefix, _ := cmd["prefix"].(string)
	k.c.calls[prefix]++
	if len(k.c.quorum()) == 0 {
		return nil, fmt.Errorf("ceph %s: %w: no quorum", prefix, rados.ErrNoAnswer)
	}
	if k.c.muted[prefix] {
		return nil, fmt.Errorf("ceph %s: %w: muted", prefix, rados.ErrNoAnswer)
	}
	answer, errno, status := k.c.answer(prefix, cmd, input)
	k.c.answered()
	if errno != 0 {
		return nil, &rados.CommandError{Prefix: prefix, Errno: errno, Status: status}
	}
	if answer == nil {
		return nil, nil
	}
	return json.Marshal(answer)
}

// RBD answers as librbd does, where the cluster has images.
func (k client) RBD(ctx context.Context, command any) ([]byte, error) {
	if k.c.Images == nil {
		return nil, fmt.Errorf("%w: no librbd", rados.ErrNoAnswer)
	}
	return k.c.Images.RBD(ctx, command)
}

// Mgr answers at once, also when there is no manager; a real client waits for one until its deadline.
func (k client) Mgr(ctx context.Context, command any, _ []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", rados.ErrNoAnswer, err)
	}
	cmd, err := object(command)
	if err != nil {
		return nil, err
	}
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	prefix, _ := cmd["prefix"].(string)
	k.c.calls[prefix]++
	if len(k.c.mgrs()) == 0 || k.c.muted[prefix] {
		return nil, fmt.Errorf("ceph %s: %w: no mgr", prefix, rados.ErrNoAnswer)
	}
	answer, errno, status := k.c.mgrAnswer(prefix, cmd)
	if errno != 0 {
		return nil, &rados.CommandError{Prefix: prefix, Errno: errno, Status: status}
	}
	return json.Marshal(answer)
}

func (k client) Close() error { return nil }

// object is a command as the mon sees it.
func object(command any) (map[string]any, error) {
	text, err := json.Marshal(command)
	if err != nil {
		return nil, fmt.Errorf("encoding a command: %w", err)
	}
	var cmd map[string]any
	return cmd, json.Unmarshal(text, &cmd)
}

// recorded is the answer that a real cluster gave.
func recorded(name string) map[string]any { return recordedAs[map[string]any](name) }

func recordedAs[T any](name string) T {
	text, err := testdata.ReadFile("testdata/" + name + ".json")
	if err != nil {
		panic(err)
	}
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		panic(err)
	}
	return v
}

func (c *Cluster) answer(prefix string, cmd map[string]any, input []byte) (answer any, errno syscall.Errno, status string) {
	switch prefix {
	case "status":
		return c.status(), 0, ""
	case "health":
		return c.healthDetail(), 0, ""
	case "fs dump":
		return c.fsDump(), 0, ""
	case "mon dump":
		return c.monDump(), 0, ""
	case "mon remove":
		errno, status = c.monRemove(fmt.Sprint(cmd["name"]))
		return nil, errno, status
	case "mgr stat":
		return c.mgrStat(), 0, ""
	case "mgr dump":
		return mgrDump(c), 0, ""
	case "mgr module enable", "mgr module disable":
		c.managers.enabled = prefix == "mgr module enable"
		return nil, 0, ""
	case "osd dump":
		return c.osdDump(), 0, ""
	case "versions":
		return c.versions(), 0, ""
	case "auth ls":
		return c.authLs(), 0, ""
	case "auth import":
		return nil, c.authImport(input), ""
	case "auth get":
		entity := fmt.Sprint(cmd["entity"])
		if _, known := c.auth[entity]; !known {
			return nil, syscall.ENOENT, "failed to find " + entity + " in keyring"
		}
		return []any{map[string]any{"entity": entity, "key": c.auth[entity], "caps": c.caps[entity]}}, 0, ""
	case "auth caps":
		errno, status = c.setCaps(fmt.Sprint(cmd["entity"]), cmd["caps"].([]any))
		return nil, errno, status
	case "auth rm":
		delete(c.auth, fmt.Sprint(cmd["entity"]))
		return nil, 0, ""
	case "osd new":
		return c.osdNew(cmd, input)
	case "osd set-group", "osd unset-group":
		return nil, c.setGroup(cmd, prefix == "osd set-group"), ""
	case "osd out", "osd in":
		c.setIn(numbers(cmd["ids"]), prefix == "osd in")
		return nil, 0, ""
	case "osd crush reweight":
		return nil, c.reweight(cmd), ""
	case "osd crush rule dump":
		return c.rules(), 0, ""
	case "df":
		return c.poolDf(), 0, ""
	case "osd df":
		return c.df(), 0, ""
	case "osd tree":
		return c.tree(), 0, ""
	case "osd crush rm":
		return nil, c.crushRm(fmt.Sprint(cmd["name"])), ""
	case "osd crush create-or-move":
		errno, status = c.moveBucket(fmt.Sprint("osd.", cmd["id"]), cmd["args"].([]any))
		return nil, errno, status
	case "osd purge-actual": // what the mgr has the mons do
		for id := range numbers(cmd["id"]) {
			delete(c.osds, id)
			delete(c.auth, fmt.Sprint("osd.", id))
		}
		c.changed()
		return nil, 0, ""
	case "osd set", "osd unset":
		c.flags[fmt.Sprint(cmd["key"])] = prefix == "osd set"
		c.changed()
		return nil, 0, ""
	case "osd crush add-bucket":
		args, _ := cmd["args"].([]any)
		errno, status = c.addBucket(fmt.Sprint(cmd["name"]), fmt.Sprint(cmd["type"]), args)
		return nil, errno, status
	case "osd crush move":
		errno, status = c.moveBucket(fmt.Sprint(cmd["name"]), cmd["args"].([]any))
		return nil, errno, status
	case "mon ok-to-stop", "mds ok-to-stop":
		errno, status = c.monsAllow(prefix, fmt.Sprint(cmd["ids"].([]any)[0]))
		return nil, errno, status
	case "mgr fail":
		c.failMgr(fmt.Sprint(cmd["who"]))
		return nil, 0, ""
	}
	if errno, status, known := c.fsAnswer(prefix, cmd); known {
		return nil, errno, status
	}
	if answer, errno, status, known := c.configAnswer(prefix, cmd); known {
		return answer, errno, status
	}
	if errno, status, known := c.poolAnswer(prefix, cmd); known {
		return nil, errno, status
	}
	return nil, syscall.EINVAL, "command not known"
}

func (c *Cluster) status() map[string]any {
	a := recorded("status")
	quorum, mgrs := c.quorum(), c.mgrs()
	a["fsid"], a["election_epoch"] = c.fsid, c.election
	a["quorum_names"] = quorum
	monmap := a["monmap"].(map[string]any)
	monmap["num_mons"], monmap["epoch"] = len(c.mons), c.monEpoch
	osdmap := a["osdmap"].(map[string]any)
	osdmap["epoch"], osdmap["num_osds"] = c.epoch, len(c.osds)
	c.serveFilesystems()
	a["fsmap"].(map[string]any)["epoch"] = c.fsEpoch
	mgrmap := a["mgrmap"].(map[string]any)
	mgrmap["available"], mgrmap["num_standbys"] = len(mgrs) > 0, max(0, len(mgrs)-1)
	if len(mgrs) > 0 && c.unseen > 0 {
		c.unseen--
	}
	a["pgmap"] = c.pgmap(a["pgmap"].(map[string]any))
	a["health"] = c.health()
	return a
}

// pgmap is the mgr's report: nothing before the first one.
func (c *Cluster) pgmap(a map[string]any) map[string]any {
	up, in := c.upAndIn()
	a["num_pgs"], a["bytes_total"], a["pgs_by_state"] = 0, 0, []any{}
	if len(c.mgrs()) == 0 || c.unseen > 0 || up == 0 {
		return a
	}
	pgs := 1 + poolPGs*len(c.pools)
	a["num_pgs"], a["bytes_total"] = pgs, up*(4<<30)
	a["pgs_by_state"] = []any{map[string]any{"state_name": pgState(up, in), "count": pgs}}
	return a
}

func (c *Cluster) upAndIn() (up, in int) {
	for _, o := range c.osds {
		up += number(o.up)
		in += number(o.holds())
	}
	return up, in
}

func pgState(up, in int) string {
	if up < in {
		return "active+undersized+degraded"
	}
	return "active+clean"
}

func (c *Cluster) health() map[string]any {
	checks := map[string]any{}
	note := func(code, message string) {
		checks[code] = map[string]any{
			"severity": "HEALTH_WARN", "muted": false, "summary": map[string]any{"message": message, "count": 1},
		}
	}
	for code, message := range c.warnings {
		note(code, message)
	}
	noout := 0
	for _, o := range c.osds {
		noout += number(o.noout)
	}
	if noout > 0 {
		note("OSD_FLAGS", fmt.Sprintf("%d OSDs or CRUSH {nodes, device-classes} have {NOUP,NODOWN,NOIN,NOOUT} flags set", noout))
	}
	if n := len(c.mons) - len(c.quorum()); n > 0 {
		note("MON_DOWN", fmt.Sprintf("%d/%d mons down, quorum %s", n, len(c.mons), strings.Join(c.quorum(), ",")))
	}
	down := 0
	for _, o := range c.osds {
		if o.in && !o.up && o.booted {
			down++
		}
	}
	if down > 0 {
		note("OSD_DOWN", fmt.Sprintf("%d osds down", down))
	}
	status := "HEALTH_OK"
	if len(checks) > 0 {
		status = "HEALTH_WARN"
	}
	return map[string]any{"status": status, "checks": checks, "mutes": []any{}}
}

// healthDetail adds to each check what it concerns.
func (c *Cluster) healthDetail() map[string]any {
	h := c.health()
	for code, check := range h["checks"].(map[string]any) {
		check.(map[string]any)["detail"] = []any{map[string]any{"message": "detail of " + code}}
	}
	return h
}

func (c *Cluster) mgrStat() map[string]any {
	a := recorded("mgr-stat")
	mgrs := c.mgrs()
	a["available"], a["num_standby"], a["active_name"] = len(mgrs) > 0, max(0, len(mgrs)-1), ""
	if len(mgrs) > 0 {
		a["active_name"] = c.activeMgr()
	}
	a["epoch"] = mgrEpoch(c)
	return a
}

func (c *Cluster) osdDump() map[string]any {
	a := recorded("osd-dump")
	pattern, more := a["osds"].([]any)[0].(map[string]any), a["osd_xinfo"].([]any)[0].(map[string]any)
	var osds, xinfo []any
	for _, id := range slices.Sorted(maps.Keys(c.osds)) {
		o := maps.Clone(pattern)
		o["state"] = c.osds[id].states()
		o["osd"], o["uuid"], o["up"], o["in"] = id, c.osds[id].uuid, number(c.osds[id].up), number(c.osds[id].in)
		o["down_at"], o["public_addr"] = c.osds[id].downAt, ":/0"
		if address := c.osds[id].address; address != "" {
			o["public_addr"] = netip.AddrPortFrom(netip.MustParseAddr(address), 6801).String() + "/1"
		}
		osds = append(osds, o)
		x := maps.Clone(more)
		x["osd"], x["down_stamp"] = id, "0.000000"
		if at := c.osds[id].downStamp; !at.IsZero() {
			x["down_stamp"] = at.UTC().Format("2006-01-02T15:04:05.000000-0700")
		}
		xinfo = append(xinfo, x)
	}
	for _, flag := range slices.Sorted(maps.Keys(c.flags)) {
		if c.flags[flag] {
			a["flags_set"] = append(a["flags_set"].([]any), flag)
		}
	}
	a["crush_version"] = c.crushVersion()
	a["epoch"], a["fsid"], a["osds"], a["max_osd"], a["osd_xinfo"] = c.epoch, c.fsid, osds, len(osds), xinfo
	// The mgr makes its own pool, of one placement group, when there are OSDs.
	if len(osds) == 0 {
		a["pools"] = []any{}
		return a
	}
	first := a["pools"].([]any)[0].(map[string]any)
	own := c.ownPool()
	first["size"], first["min_size"], first["crush_rule"] = own.size, own.minSize, c.ruleID(own.rule)
	for app := range own.applications {
		first["application_metadata"].(map[string]any)[app] = map[string]any{}
	}
	a["pools"] = append(a["pools"].([]any), c.madePools(first)...)
	profiles := a["erasure_code_profiles"].(map[string]any)
	for name, p := range c.profiles {
		profiles[name] = p
	}
	return a
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// setCaps follows AuthMonitor::valid_caps of Ceph 16, as far as that one looks at the first word.
func (c *Cluster) setCaps(entity string, pairs []any) (syscall.Errno, string) {
	caps := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		what, text := pairs[i].(string), pairs[i+1].(string)
		if !strings.HasPrefix(text, "allow") && !strings.HasPrefix(text, "profile") {
			return syscall.EINVAL, what + " capability parse failed, stopped at '" + text + "' of '" + text + "'"
		}
		caps[what] = text
	}
	c.caps[entity] = caps
	return 0, ""
}

// Caps are the capabilities of an entity; nil where Ceph has none of this name.
func (c *Cluster) Caps(entity string) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.auth[entity]; !known {
		return nil
	}
	return c.caps[entity]
}

// Knows says whether an entity is in the auth database.
func (c *Cluster) Knows(entity string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.auth[entity] != ""
}

// Authorize puts an entity into the auth database, as if someone else had done it.
func (c *Cluster) Authorize(entity string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.auth[entity] = "key"
}

// Unauthorize removes an entity from the auth database, as if someone else had done it.
func (c *Cluster) Unauthorize(entity string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.auth, entity)
}

// Key is the key of an entity in the auth database; empty where it has none.
func (c *Cluster) Key(entity string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.auth[entity]
}

func (c *Cluster) authLs() map[string]any {
	a := recorded("auth-ls")
	pattern := a["auth_dump"].([]any)[0].(map[string]any)
	var dump []any
	for _, entity := range slices.Sorted(maps.Keys(c.auth)) {
		e := maps.Clone(pattern)
		e["entity"] = entity
		if caps := c.caps[entity]; caps != nil {
			e["caps"] = caps
		}
		dump = append(dump, e)
	}
	a["auth_dump"] = dump
	return a
}

// authImport reads a keyring as a real mon does: entities in brackets, their keys below.
func (c *Cluster) authImport(input []byte) syscall.Errno {
	entity := ""
	lines := bufio.NewScanner(bytes.NewReader(input))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			entity = strings.Trim(line, "[]")
		}
		if key, ok := strings.CutPrefix(line, "key = "); ok {
			c.auth[entity], c.caps[entity] = key, cephx.CapsIn(string(input))
		}
	}
	if entity == "" || !bytes.Contains(input, []byte("caps ")) { // "no caps supplied"
		return syscall.EINVAL
	}
	return 0
}

// osdNew follows OSDMonitor::validate_osd_create and AuthMonitor::validate_osd_new of Ceph 16.
func (c *Cluster) osdNew(cmd map[string]any, input []byte) (answer any, errno syscall.Errno, status string) {
	uuid, _ := cmd["uuid"].(string)
	if uuid == "" {
		return nil, syscall.EINVAL, "requires the OSD's UUID to be specified"
	}
	var secrets struct {
		Key string `json:"cephx_secret"`
	}
	if err := json.Unmarshal(input, &secrets); err != nil || secrets.Key == "" {
		return nil, syscall.EINVAL, "requires a cephx secret"
	}
	for id, o := range c.osds {
		if want, given := cmd["id"].(float64); o.uuid == uuid && given && int(want) != id {
			return nil, syscall.EEXIST, fmt.Sprintf("uuid %s already in use for different id %d", uuid, id)
		}
	}
	id := 0
	switch given := cmd["id"].(type) {
	case float64:
		id = int(given)
	case nil:
		for c.osds[id] != nil {
			id++
		}
	default:
		return nil, syscall.EINVAL, "bad or missing field 'id'"
	}
	entity := "osd." + strconv.Itoa(id)
	if o := c.osds[id]; o != nil && o.destroyed {
		o.destroyed, o.uuid, o.in = false, uuid, true
		c.auth[entity], c.caps[entity] = secrets.Key, cephx.Caps(entity)
		c.changed()
		return map[string]any{"osdid": id}, 0, ""
	}
	if o := c.osds[id]; o != nil {
		switch {
		case o.uuid != uuid:
			return nil, syscall.EINVAL, fmt.Sprintf("id %d already in use and does not match uuid %s", id, uuid)
		case c.auth[entity] != secrets.Key:
			return nil, syscall.EEXIST, fmt.Sprintf("entity %s exists but key does not match", entity)
		}
		return map[string]any{"osdid": id}, 0, ""
	}
	c.osds[id] = &osd{uuid: uuid, in: true, weight: osdWeight}
	c.auth[entity], c.caps[entity] = secrets.Key, cephx.Caps(entity)
	c.changed()
	return map[string]any{"osdid": id}, 0, ""
}
