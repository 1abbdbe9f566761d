package e2e

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
)

// everyKindYAML declares each kind that a Ceph cluster has, in several forms.
const everyKindYAML = `---
apiVersion: holdfast.io/v1alpha1
kind: Filesystem
metadata: {name: home}
spec:
  cluster: ceph
  metadataPool: {replicated: {size: 2, minSize: 1}, failureDomain: osd}
  dataPools:
  - {name: home-first, replicated: {size: 2}, compression: {mode: passive}}
  - {name: home-second, erasureCoded: {dataChunks: 2, codingChunks: 1}, quota: {maxObjects: 100000}}
  subvolumeGroups: [{name: users, quota: 1Gi}, {name: apps}, {name: small, quota: "1000000"}]
---
apiVersion: holdfast.io/v1alpha1
kind: Filesystem
metadata: {name: plain}
spec: {cluster: ceph, standbyMDS: 0}
---
apiVersion: holdfast.io/v1alpha1
kind: NFSExport
metadata: {name: home}
spec: {cluster: ceph, filesystem: home, squash: None, clients: [10.0.0.0/8]}
---
apiVersion: holdfast.io/v1alpha1
kind: ObjectStore
metadata: {name: s3}
spec:
  cluster: ceph
  metadata: {replicated: {size: 2}}
  data: {erasureCoded: {dataChunks: 2, codingChunks: 1}, compression: {mode: aggressive, algorithm: zlib}}
  gateways: {placement: {count: 1}, port: 7481}
---
apiVersion: holdfast.io/v1alpha1
kind: ObjectStoreUser
metadata: {name: app}
spec:
  cluster: ceph
  store: s3
  displayName: An application
  quota: {maxBuckets: 3, maxObjects: 1000, maxSize: 500M}
  capabilities: {buckets: read}
---
apiVersion: holdfast.io/v1alpha1
kind: ObjectStoreUser
metadata: {name: simple}
spec: {cluster: ceph, store: s3}
---
apiVersion: holdfast.io/v1alpha1
kind: Client
metadata: {name: app}
spec: {cluster: ceph, caps: {mon: "profile rbd", osd: "profile rbd pool=quick,  allow r pool=plain"}}
---
apiVersion: holdfast.io/v1alpha1
kind: RBDMirror
metadata: {name: dr}
spec: {cluster: ceph, pools: [{name: quick, snapshotInterval: 90m}]}
`

// optionsYAML are further lines of spec.ceph: the same value may be written in several ways.
const optionsYAML = `    recovery: Fast
    scrub: {beginHour: 22, endHour: 6, minInterval: 24h, maxInterval: 168h}
    config:
      mon: {mon_osd_nearfull_ratio: .8, mon_cluster_log_to_file: "0"}
      osd: {osd_max_scrubs: 2, osd_recovery_max_active: "4", debug_osd: 1/5, osd_scrub_load_threshold: .50}
      osd.1: {osd_op_history_size: "21", bluestore_compression_min_blob_size_hdd: 16K}
      mds: {mds_cache_memory_limit: 1G, mds_session_blocklist_on_timeout: True}
      mgr: {mgr/balancer/active: "true", mgr_stats_period: "1"}
      client: {rbd_cache: "False", rgw_lc_debug_interval: "-1", client_mount_timeout: 5m}
`

// TestEmptyPlan declares every kind of a Ceph cluster in several forms. Once all of it is there the
// plan of it is empty, and no orchestration asks Ceph for anything.
func TestEmptyPlan(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 1)
	wanted := home.SpecFor(b.Lab, 3, 2, 1)
	wanted.Interval, wanted.Config = "1s", maps.Clone(wanted.Config)
	for _, twice := range []string{"mgr_stats_period", "osd_recovery_sleep", "osd_recovery_sleep_hdd"} {
		delete(wanted.Config, twice)
	}
	wanted.Config["osd_pool_default_pg_autoscale_mode"] = "off" // it would go on for minutes, and is Ceph's own
	wanted.Config["mon_max_pg_per_osd"] = "500"
	manifest := strings.Replace(wanted.YAML(), "    config:\n", optionsYAML, 1) + everyKindYAML +
		poolYAML("plain") +
		poolYAML("quick", "replicated: {size: 2, minSize: 1}", "failureDomain: osd",
			"quota: {maxBytes: 1536Mi, maxObjects: 5000}") +
		poolYAML("chunks", "erasureCoded: {dataChunks: 2, codingChunks: 1}", "quota: {maxBytes: 1G}") +
		poolYAML("custom", "application: my-app", "compression: {mode: none}")
	b.mustApply(manifest)
	b.await("all to be ready", b.everythingReady)
	b.staysEmpty(manifest)
	class := strings.TrimSpace(b.run("ceph", "shell", "--", "ceph", "osd", "crush", "get-device-class", "osd.0"))
	b.mustApply(poolYAML("classed", "deviceClass: "+class))
	b.staysEmpty(manifest + poolYAML("classed", "deviceClass: "+class))
	b.tells("pool-class-overlaps", "web", "classed", ".mgr", "device_health_metrics", "RULE",
		strings.TrimSpace(b.run("ceph", "shell", "--", "bash", "-c",
			"ceph osd pool get classed crush_rule -f plain | sed 's/.*: //'")))
}

// everythingReady says which resource is not Online.
func (b *bed) everythingReady() error {
	for _, kind := range []string{
		"pools", "filesystems", "nfsexports", "objectstores", "objectstoreusers", "clients", "rbdmirrors",
	} {
		all, err := listFrom[struct {
			Metadata struct{ Name string }
			Status   api.ResourceStatus
		}](b, 1, kind)
		if err != nil || len(all) == 0 {
			return fmt.Errorf("%s: %w", kind, cmpErr(err, errors.New("there is none")))
		}
		for _, r := range all {
			if r.Status.State != api.ResourceOnline {
				return fmt.Errorf("%s %s is %s: %s", kind, r.Metadata.Name, r.Status.State, r.Status.Message)
			}
		}
	}
	return nil
}

func cmpErr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// staysEmpty waits until the plan of a manifest is empty, and has ten orchestrations begin: none
// asks Ceph for anything, changes a Daemon, or is told in an event, and the plan is as empty as
// before.
func (b *bed) staysEmpty(manifest string) {
	b.Helper()
	b.await("the plan to be empty", func() error { return b.planIsEmpty(manifest) })
	asked, daemons, events := b.askedOfCeph(), b.daemonGenerations(), len(list[api.ClusterEvent](b, "clusterevents"))
	b.awaitOrchestrations(10)
	for line := range b.askedOfCeph() {
		if !asked[line] {
			b.Errorf("nothing was to be changed, and Ceph was asked for %s", line)
		}
	}
	if now := b.daemonGenerations(); !maps.Equal(now, daemons) {
		b.Errorf("nothing was to be changed, and daemons are\n%v and were\n%v", now, daemons)
	}
	if now := list[api.ClusterEvent](b, "clusterevents"); len(now) > events {
		b.Errorf("nothing was to be changed, and there are %d more events: %+v", len(now)-events, now[events:])
	}
	if err := b.planIsEmpty(manifest); err != nil {
		b.Error(err)
	}
}

func (b *bed) planIsEmpty(manifest string) error {
	if out, code := b.plan(manifest, "--dry-run", "--exit-code"); code != 0 {
		return fmt.Errorf("it ends with %d:\n%s", code, out)
	}
	return nil
}

// daemonGenerations are those of the daemons, by their names.
func (b *bed) daemonGenerations() map[string]int64 {
	b.Helper()
	all := map[string]int64{}
	for _, d := range b.daemons() {
		all[d.Name] = d.Generation
	}
	return all
}

// awaitOrchestrations waits until some more orchestrations have begun.
func (b *bed) awaitOrchestrations(count int) {
	b.Helper()
	seen := map[string]bool{}
	b.await(fmt.Sprintf("%d orchestrations", count), func() error {
		c, err := read[api.StorageCluster](b, 1, "storageclusters", "ceph")
		if err == nil && c.Status.NextOrchestration != nil {
			seen[c.Status.NextOrchestration.String()] = true
		}
		if err == nil && len(seen) <= count {
			err = fmt.Errorf("%d", len(seen))
		}
		return err
	})
}

// changing finds the commands that change something, in what Ceph writes of each command.
var changing = regexp.MustCompile(`"prefix": ?"([^"]*\b(?:create|resize|set|set-quota|add|rm|remove|new|` +
	`import|enable|disable|rename|delete|fail|apply|schedule add|reweight|evict)\b[^"]*)".*dispatch`)

// askedOfCeph are the commands that change something, by the audit log that mons and mgrs write into
// their own logs. Ceph's 'log last' keeps the newest fifty entries only.
func (b *bed) askedOfCeph() map[string]bool {
	b.Helper()
	asked := map[string]bool{}
	for _, h := range b.Lab.Hosts() {
		logs, err := filepath.Glob(h.Path("/var/lib/holdfast/agent/daemons/*.ceph-m[og][nr]-*/log/daemon.log"))
		if err != nil {
			b.Fatal(err)
		}
		for _, file := range logs {
			text, err := os.ReadFile(file)
			if err != nil {
				b.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, "log_channel(audit)") && changing.MatchString(line) {
					asked[strings.TrimSpace(line)] = true
				}
			}
		}
	}
	if len(asked) == 0 {
		b.Fatal("mons and mgrs have logged no command that changes something")
	}
	return asked
}
