// Package smallceph starts a real Ceph of one monitor, one manager and one OSD in a file, all on
// loopback, in a few seconds, and an MDS where a test asks for a CephFS. It is for tests of what talks
// to Ceph, and needs no Holdfast. A test that uses it calls rados.MaybeServe in TestMain.
package smallceph

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// upTimeout bounds each of the steps.
const upTimeout = 60 * time.Second

// osdSize is that of the file that the OSD writes to. The file is sparse.
const osdSize = 10 << 30

// Cluster is one that runs until the test ends.
type Cluster struct {
	// Config reaches the cluster as client.admin.
	Config rados.Config

	t      testing.TB
	dir    string
	client rados.ImageClient
	mon    *exec.Cmd
	osd    *exec.Cmd
	mds    *exec.Cmd
}

// Start starts a cluster and waits until its OSD is up.
func Start(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{t: t, dir: t.TempDir()}
	c.Config = rados.Config{
		FSID: uuid.NewString(), MonHost: fmt.Sprintf("[v2:127.0.0.1:%d]", freePort(t)), Entity: "client.admin",
		Key: c.newKey(),
	}
	c.startMon()
	c.client = rados.DialImages(c.Config)
	t.Cleanup(func() { _ = c.client.Close() })
	c.startMgr()
	c.startOSD()
	return c
}

// Client reaches the cluster as client.admin.
func (c *Cluster) Client() rados.ImageClient { return c.client }

// Monitor is the monitor's process.
func (c *Cluster) Monitor() *os.Process { return c.mon.Process }

// OSD is the OSD's process.
func (c *Cluster) OSD() *os.Process { return c.osd.Process }

// Pool makes a pool for images, waits until its placement groups are active, and returns its number.
func (c *Cluster) Pool(name string) int64 {
	c.t.Helper()
	c.Mon(map[string]any{"prefix": "osd pool create", "pool": name, "pg_num": 8})
	c.Mon(map[string]any{"prefix": "osd pool application enable", "pool": name, "app": "rbd"})
	c.awaitActive()
	var pools []struct {
		Number int64  `json:"poolnum"`
		Name   string `json:"poolname"`
	}
	c.read(c.Mon(map[string]any{"prefix": "osd lspools", "format": "json"}), &pools)
	for _, p := range pools {
		if p.Name == name {
			return p.Number
		}
	}
	c.t.Fatalf("there is no pool %s among %v", name, pools)
	return 0
}

// awaitActive waits until all placement groups are active, of which there are those of a pool.
func (c *Cluster) awaitActive() {
	c.t.Helper()
	c.await("the placement groups to be active", func() bool {
		var status struct {
			PGs struct {
				All    int `json:"num_pgs"`
				States []struct {
					Name  string `json:"state_name"`
					Count int
				} `json:"pgs_by_state"`
			} `json:"pgmap"`
		}
		c.read(c.Mon(map[string]any{"prefix": "status", "format": "json"}), &status)
		active := 0
		for _, s := range status.PGs.States {
			if strings.HasPrefix(s.Name, "active+") {
				active += s.Count
			}
		}
		return active >= 8 && active == status.PGs.All
	})
}

// Mon sends a command to the monitor, as client.admin.
func (c *Cluster) Mon(command map[string]any) []byte {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), upTimeout)
	defer cancel()
	out, err := c.client.Mon(ctx, command, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// Key makes a key for an entity, or returns the one that it has.
func (c *Cluster) Key(entity string, caps ...string) string {
	c.t.Helper()
	var made []struct{ Key string }
	c.read(c.Mon(map[string]any{
		"prefix": "auth get-or-create", "entity": entity, "caps": caps,
		"format": "json",
	}), &made)
	return made[0].Key
}

func (c *Cluster) startMon() {
	c.write("keyring",
		"[mon.]\n\tkey = "+c.newKey()+"\n\tcaps mon = \"allow *\"\n[client.admin]\n\tkey = "+c.Config.Key+
			"\n\tcaps mon = \"allow *\"\n\tcaps mgr = \"allow *\"\n\tcaps osd = \"allow *\"\n\tcaps mds = \"allow *\"\n")
	c.write("ceph.conf", strings.NewReplacer("FSID", c.Config.FSID, "MONHOST", c.Config.MonHost, "DIR",
		c.dir).Replace(conf))
	monmap, keyring := c.path("monmap"), c.path("keyring")
	c.run("monmaptool", "--create", "--fsid", c.Config.FSID, "--addv", "a", c.Config.MonHost,
		"--set-min-mon-release", "16", monmap)
	c.run("ceph-mon", "-c", c.path("ceph.conf"), "--mkfs", "-i", "a", "--monmap", monmap, "--keyring", keyring)
	c.mon = c.start("ceph-mon", "-i", "a", "--keyring", keyring)
}

func (c *Cluster) startMgr() {
	key := c.Key("mgr.x", "mon", "allow profile mgr", "osd", "allow *", "mds", "allow *")
	c.write("mgr.keyring", "[mgr.x]\n\tkey = "+key+"\n")
	c.start("ceph-mgr", "-i", "x", "--keyring", c.path("mgr.keyring"))
}

func (c *Cluster) startOSD() {
	id := uuid.NewString()
	c.Mon(map[string]any{"prefix": "osd new", "uuid": id})
	key := c.Key("osd.0", "mon", "allow profile osd", "mgr", "allow profile osd", "osd", "allow *")
	if err := os.Mkdir(c.path("osd"), 0o700); err != nil {
		c.t.Fatal(err)
	}
	c.write("osd/keyring", "[osd.0]\n\tkey = "+key+"\n")
	c.run("truncate", "-s", fmt.Sprint(osdSize), c.path("osd/block"))
	c.run("ceph-osd", "-c", c.path("ceph.conf"), "-i", "0", "--mkfs", "--osd-uuid", id, "--no-mon-config",
		"--keyring", c.path("osd/keyring"))
	c.osd = c.start("ceph-osd", "-i", "0", "--keyring", c.path("osd/keyring"))
	c.await("the OSD to be up", func() bool {
		var stat struct {
			Up int `json:"num_up_osds"`
		}
		c.read(c.Mon(map[string]any{"prefix": "osd stat", "format": "json"}), &stat)
		return stat.Up == 1
	})
}

// conf has what a small Ceph needs. Copies of data would only cost time.
const conf = `[global]
fsid = FSID
mon_host = MONHOST
public_addr = 127.0.0.1
run_dir = DIR
admin_socket = DIR/$name.asok
log_file = DIR/$name.log
mon_election_timeout = 0.5
osd_pool_default_size = 1
osd_pool_default_min_size = 1
mon_allow_pool_size_one = true
mon_max_pg_per_osd = 1000
osd_memory_target = 939524096
mgr_stats_period = 1
osd_mon_report_interval = 1
mon_osd_full_ratio = 0.99
mon_osd_nearfull_ratio = 0.98
mon_osd_backfillfull_ratio = 0.98
[mon]
mon_data = DIR/mon
mon_cluster_log_file = DIR/cluster.log
mon_data_avail_crit = 1
[mgr]
mgr_data = DIR/mgr
mgr_tick_period = 1
[osd]
osd_data = DIR/osd
`

// start runs a daemon until the test ends.
func (c *Cluster) start(name string, args ...string) *exec.Cmd {
	c.t.Helper()
	args = append([]string{"-f", "-c", c.path("ceph.conf")}, args...)
	cmd := exec.Command(name, args...) //nolint:noctx // it runs until the test ends
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		log, err := os.ReadFile(c.path(strings.TrimPrefix(name, "ceph-") + "." + args[4] + ".log"))
		if err == nil && c.t.Failed() {
			c.t.Logf("%s:\n%s", name, log[max(0, len(log)-2000):])
		}
	})
	return cmd
}

func (c *Cluster) await(what string, done func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(upTimeout); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("waited %v for %s", upTimeout, what)
		}
	}
}

func (c *Cluster) read(text []byte, into any) {
	c.t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		c.t.Fatalf("reading %q: %v", text, err)
	}
}

func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

func (c *Cluster) write(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(c.path(name), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *Cluster) newKey() string { return c.run("ceph-authtool", "--gen-print-key") }

func (c *Cluster) run(name string, args ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), upTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}
