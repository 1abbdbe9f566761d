// Package rgw holds what the driver for Ceph and the agents that run its object gateways must agree on: the names in a Daemon, the layout of a
// store, the commands about users, and the report that an agent makes. It runs nothing itself.
package rgw

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// Type is the type of the Daemon, as in Daemon.spec.type. Its program is radosgw.
const Type = "ceph-rgw"

// Entity is what cephx calls the gateway of an id.
func Entity(id string) string { return EntityPrefix + id }

// EntityPrefix begins the entities of gateways.
const EntityPrefix = "client.rgw."

// The files and parameters of a Daemon.
const (
	FileConf = "ceph.conf"
	// FileZonegroup and FileZone are the layout of the store, as radosgw-admin reads it.
	FileZonegroup = "zonegroup.json"
	FileZone      = "zone.json"
	// FileCertificate and FileKey are what a gateway with TLS shows for itself.
	FileCertificate = "tls.crt"
	FileKey         = "tls.key"
	// FileServes is ParamServes, written with the other files. The process copies it to the directory for sockets when it starts: there it is
	// ParamServes as it was then.
	FileServes = "serves"

	// ParamStore is the name of the store.
	ParamStore = "store"
	// ParamURL is where the gateway is to answer, such as http://10.0.0.1:7480.
	ParamURL = "url"
	// ParamServes is by what it serves: its URL and, with TLS, the Fingerprint of its certificate. A process that was started by another one has
	// to be started anew.
	ParamServes = "serves"
	// ParamCertificate is the Fingerprint of the certificate that it is to show; without TLS it is missing.
	ParamCertificate = "certificate"
)

// The verbs of commands. Each carries ParamWord, by which its end is found in reports.
const (
	// VerbUserSet has the store have a user with these keys, quotas and capabilities.
	VerbUserSet = "rgw user set"
	// VerbUserRemove takes a user's keys away, and the user unless it has buckets.
	VerbUserRemove = "rgw user remove"
	// VerbFindBuckets fails as long as the store has buckets.
	VerbFindBuckets = "rgw find buckets"
)

// The parameters of commands.
const (
	ParamWord = "word"
	// ParamUser is the user's name, ParamOwner the UID of whom it was made for, by which its AccessKey is found.
	ParamUser        = "user"
	ParamOwner       = "owner"
	ParamDisplayName = "displayName"
	// ParamMaxBuckets, ParamMaxObjects and ParamMaxSize are the quotas; the last two are missing where there is none.
	ParamMaxBuckets = "maxBuckets"
	ParamMaxObjects = "maxObjects"
	ParamMaxSize    = "maxSize"
	// ParamCaps are capabilities as radosgw-admin has them: "buckets=*;usage=read".
	ParamCaps = "caps"
	// ParamKeep is set where a user that has buckets stays with them.
	ParamKeep = "keep"
)

// The entries of a user's Secret.
const (
	SecretAccessKey = "accessKey"
	SecretSecretKey = "secretKey"
)

// AccessKey is the access key of a user that was made for this owner. It is no secret, and tells the user from all that others made.
func AccessKey(owner string) string {
	sum := sha256.Sum256([]byte("S3 access key of " + owner))
	return base32.StdEncoding.EncodeToString(sum[:])[:20]
}

// PoolMeta and PoolData are the pools of a store.
func PoolMeta(store string) string { return store + ".rgw.meta" }

// PoolData is the pool of the objects.
func PoolData(store string) string { return store + ".rgw.data" }

// RootPool is where a store has its own layout. Ceph's default, one pool .rgw.root for all, would make stores depend on each other.
func RootPool(store string) string { return PoolMeta(store) + ":root" }

// RootOptions are the options that say where the layout is.
var RootOptions = []string{"rgw_realm_root_pool", "rgw_zonegroup_root_pool", "rgw_zone_root_pool", "rgw_period_root_pool"}

// Zonegroup is the text of FileZonegroup: one zone, and no realm (RGWZoneGroup::decode_json).
func Zonegroup(store string) string {
	return text(map[string]any{
		"id": store, "name": store, "api_name": store, "is_master": "true", "master_zone": store, "realm_id": "",
		"endpoints": []string{}, "hostnames": []string{}, "hostnames_s3website": []string{},
		"zones": []any{map[string]any{
			"id": store, "name": store, "endpoints": []string{}, "log_meta": "false", "log_data": "false", "read_only": "false", "tier_type": "",
			// Ceph's default for a zone that it makes by itself.
			"bucket_index_max_shards": 11, "sync_from_all": "true", "sync_from": []string{}, "redirect_zone": "",
		}},
		"placement_targets": []any{map[string]any{"name": placement, "tags": []string{}, "storage_classes": []string{"STANDARD"}}},
		"default_placement": placement,
	})
}

const placement = "default-placement"

// Zone is the text of FileZone: all that is not data lies in namespaces of one pool, where Ceph would make eight (RGWZoneParams::decode_json).
func Zone(store string) string {
	zone := map[string]any{
		"id": store, "name": store, "realm_id": "", "system_key": map[string]string{"access_key": "", "secret_key": ""},
		"domain_root": PoolMeta(store) + ":domain",
		"placement_pools": []any{map[string]any{"key": placement, "val": map[string]any{
			"index_pool": PoolMeta(store) + ":index", "data_extra_pool": PoolMeta(store) + ":multipart", "index_type": 0,
			"storage_classes": map[string]any{"STANDARD": map[string]string{"data_pool": PoolData(store)}},
		}}},
	}
	for field, namespace := range map[string]string{
		"control_pool": "control", "gc_pool": "gc", "lc_pool": "lc", "log_pool": "log", "intent_log_pool": "intent", "usage_log_pool": "usage",
		"roles_pool": "roles", "reshard_pool": "reshard", "otp_pool": "otp", "notif_pool": "notif",
		"user_keys_pool": "users.keys", "user_email_pool": "users.email", "user_swift_pool": "users.swift", "user_uid_pool": "users.uid",
	} {
		zone[field] = PoolMeta(store) + ":" + namespace
	}
	return text(zone)
}

func text(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // maps of strings
	}
	return string(b) + "\n"
}

// Fingerprint tells a certificate from others; der is the first one of a chain.
func Fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:8])
}

// Command is the command of the gateway of an entity. It notes by what it serves itself: after a boot it is started before its agent is there.
func Command(entity string) []string {
	return []string{
		"sh", "-c", `cp "$0" "$1" && shift && exec "$@"`, "${DATA}/" + FileServes, "${RUN}/" + FileServes,
		"radosgw", "-f", "-n", entity, "-c", "${DATA}/" + FileConf,
	}
}

// Report is what an agent says of a gateway, as JSON in Daemon.status.report.
type Report struct {
	// PID is the process of which Up, Problem and Serves are said. A report outlives its process.
	PID int32 `json:"pid,omitempty"`
	// Up says that it answers; Problem why not.
	Up      bool   `json:"up,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Serves is ParamServes as it was when the process was started.
	Serves string `json:"serves,omitempty"`
	// Done are the words of the last commands that this gateway's agent carried out, by what they were about.
	Done map[string]string `json:"done,omitempty"`
}

// Parse reads a report; nil where there is none.
func Parse(text string) (*Report, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no report is no error
	}
	r := &Report{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("while reading the report of an object gateway: %w", err)
	}
	return r, nil
}

// Caps writes capabilities as radosgw-admin has them; they are sorted.
func Caps(sorted [][2]string) string {
	all := make([]string, len(sorted))
	for i, c := range sorted {
		all[i] = c[0] + "=" + c[1]
	}
	return strings.Join(all, ";")
}

// ParseCaps reads what Caps has written.
func ParseCaps(text string) (caps [][2]string) {
	for c := range strings.SplitSeq(text, ";") {
		if what, perm, ok := strings.Cut(c, "="); ok {
			caps = append(caps, [2]string{what, perm})
		}
	}
	return caps
}
