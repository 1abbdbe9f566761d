package bundle

import (
	"context"
	"errors"
	"path"

	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/internal/cephconf"
	"github.com/holdfast-storage/holdfast/platform/store"
)

// question is a command of Ceph.
type question struct {
	file    string
	mgr     bool
	command map[string]any
}

// questions are what each Ceph cluster is asked.
var questions = []question{
	{"status.txt", false, map[string]any{"prefix": "status"}},
	{"health-detail.txt", false, map[string]any{"prefix": "health", "detail": "detail"}},
	{"versions.json", false, map[string]any{"prefix": "versions", "format": "json-pretty"}},
	{"mon-dump.txt", false, map[string]any{"prefix": "mon dump"}},
	{"mgr-dump.json", false, map[string]any{"prefix": "mgr dump", "format": "json-pretty"}},
	{"osd-tree.txt", false, map[string]any{"prefix": "osd tree"}},
	{"osd-dump.txt", false, map[string]any{"prefix": "osd dump"}},
	{"fs-dump.txt", false, map[string]any{"prefix": "fs dump"}},
	{"df.txt", false, map[string]any{"prefix": "df", "detail": "detail"}},
	// As JSON, in which each value stands beside the name that says whether it is a secret.
	{"config-dump.json", false, map[string]any{"prefix": "config dump", "format": "json-pretty"}},
	{"osd-df-tree.txt", true, map[string]any{"prefix": "osd df", "output_method": "tree"}},
	{"pg-dump-brief.txt", true, map[string]any{"prefix": "pg dump", "dumpcontents": []string{"pgs_brief"}}},
	{"crash-ls.txt", true, map[string]any{"prefix": "crash ls"}},
}

// ceph adds what a Ceph cluster says of itself.
func (c *collection) ceph(ctx context.Context, key types.NamespacedName) {
	dir := path.Join("ceph", key.Namespace+"."+key.Name)
	cfg, err := c.reach(ctx, key)
	if err != nil {
		c.lacks(dir, err)
		return
	}
	conn := rados.Dial(cfg)
	defer conn.Close()
	for _, q := range questions {
		err := c.part(ctx, path.Join(dir, q.file), partTimeout, func(ctx context.Context) (string, error) {
			ask := conn.Mon
			if q.mgr {
				ask = conn.Mgr
			}
			text, err := ask(ctx, q.command, nil)
			return string(text), err
		})
		if !q.mgr && (errors.Is(err, rados.ErrNoAnswer) || errors.Is(err, context.DeadlineExceeded)) {
			return // the mons answer no other question
		}
	}
}

// reach says how to reach a cluster as its administrator.
func (c *collection) reach(ctx context.Context, key types.NamespacedName) (cfg rados.Config, err error) {
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	api, err := c.Connect()
	if err != nil {
		return cfg, err
	}
	objects, err := store.ReadObjects(ctx, api)
	if err != nil {
		return cfg, err
	}
	view, err := objects.View(key)
	if err != nil {
		return cfg, err
	}
	conf, keyring, err := ceph.ClientFiles(ctx, view, &store.Secrets{Reader: api, Namespace: key.Namespace}, "")
	if err != nil {
		return cfg, err
	}
	global := cephconf.Parse(string(conf))["global"]
	cfg = rados.Config{FSID: global["fsid"], MonHost: global["mon_host"]}
	for entity, section := range cephconf.Parse(string(keyring)) {
		cfg.Entity, cfg.Key = entity, section["key"]
	}
	return cfg, nil
}
