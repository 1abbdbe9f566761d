package cephfs

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/conn"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// ceph is a Ceph in memory with one filesystem, number 3 and named home, whose data pool has 10 GiB
// left. Its manager answers as the module volumes does: TestSubvolumes has both pass one suite.
type ceph struct {
	rados.ImageClient

	mu       sync.Mutex
	gone     bool // the filesystem is
	inactive bool // its MDS is
	group    bool // there is the subvolume group
	volumes  map[string]*volume
	// cut, when not nil, says whether the answer to a command is lost; it is asked before and after
	// each.
	cut func() bool
}

type volume struct {
	quota, used int64
	notes       map[string]string
	snapshots   bool
	half        bool // there are directories alone
}

func newCeph() *ceph { return &ceph{volumes: map[string]*volume{}} }

var secrets = backend.Secrets{
	backend.SecretCluster: "c1", backend.SecretMons: "[v2:10.0.0.1:3300]", backend.SecretUser: "csi-provisioner",
	backend.SecretKey: "AQ==",
}

func (c *ceph) controller(t *testing.T) *Controller {
	clients := &conn.Clients{Dial: func(rados.Config) rados.ImageClient { return c }}
	t.Cleanup(clients.Close)
	return &Controller{Clients: clients}
}

func (c *ceph) Close() error { return nil }

// answer has an answer pass, unless it is cut off before the command takes effect or after it.
func (c *ceph) answer(do func() (any, syscall.Errno)) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut != nil && c.cut() {
		return nil, rados.ErrNoAnswer
	}
	answer, errno := do()
	if c.cut != nil && c.cut() {
		return nil, rados.ErrNoAnswer
	}
	if errno != 0 {
		return nil, &rados.CommandError{Errno: errno}
	}
	if answer == nil {
		return nil, nil
	}
	return json.Marshal(answer)
}

func (c *ceph) Mon(_ context.Context, command any, _ []byte) ([]byte, error) {
	return c.answer(func() (any, syscall.Errno) {
		if command.(map[string]any)["prefix"] == "fs dump" {
			return c.dump(), 0
		}
		return map[string]any{"pools": []map[string]any{
			{"id": 8, "name": "home.meta", "stats": map[string]int64{"max_avail": 1 << 50}},
			{"id": 9, "name": "home.data", "stats": map[string]int64{"max_avail": 10 << 30}},
		}}, 0
	})
}

func (c *ceph) dump() any {
	if c.gone {
		return map[string]any{"filesystems": []any{}}
	}
	state := "up:active"
	if c.inactive {
		state = "up:replay"
	}
	return map[string]any{"filesystems": []any{map[string]any{"id": 3, "mdsmap": map[string]any{
		"fs_name": "home", "data_pools": []int{9},
		"info": map[string]any{"gid_1": map[string]any{"rank": 0, "state": state}},
	}}}}
}

func (c *ceph) Mgr(_ context.Context, command any, _ []byte) ([]byte, error) {
	// As JSON has it.
	text, err := json.Marshal(command)
	if err != nil {
		return nil, err
	}
	var cmd struct {
		Prefix, Value string
		Vol           string `json:"vol_name"`
		Name          string `json:"sub_name"`
		Key           string `json:"key_name"`
		Size          int64
		NewSize       string `json:"new_size"`
	}
	if err := json.Unmarshal(text, &cmd); err != nil {
		return nil, err
	}
	return c.answer(func() (any, syscall.Errno) {
		if cmd.Vol != "home" || c.gone {
			return nil, syscall.ENOENT
		}
		v := c.volumes[cmd.Name]
		switch {
		case cmd.Prefix == groupCreate:
			c.group = true
			return nil, 0
		case !c.group:
			return nil, syscall.ENOENT
		case cmd.Prefix == create && v == nil:
			c.volumes[cmd.Name] = &volume{quota: cmd.Size, notes: map[string]string{}}
			return nil, 0
		case cmd.Prefix == create:
			v.quota = cmd.Size
			return nil, 0
		case v == nil:
			return nil, syscall.ENOENT
		case cmd.Prefix == remove && v.snapshots:
			return nil, syscall.ENOTEMPTY
		case cmd.Prefix == remove:
			delete(c.volumes, cmd.Name)
			return nil, 0
		case cmd.Prefix == resize:
			if cmd.NewSize == "infinite" {
				v.quota = 0
				return []map[string]any{{"bytes_used": v.used}, {"bytes_quota": 0}, {"bytes_pcent": "undefined"}}, 0
			}
			size, _ := strconv.ParseInt(cmd.NewSize, 10, 64)
			if size < v.used {
				return nil, syscall.EINVAL
			}
			v.quota = size
			return nil, 0
		}
		return v.do(cmd.Prefix, cmd.Name, strings.ToLower(cmd.Key), cmd.Value)
	})
}

// do reads a subvolume, or carries out a command about its notes.
func (v *volume) do(prefix, name, key, value string) (any, syscall.Errno) {
	switch prefix {
	case info:
		if v.half {
			return nil, syscall.ENODATA
		}
		quota := any(v.quota)
		if v.quota == 0 {
			quota = "infinite"
		}
		return map[string]any{"path": GroupPath + "/" + name + "/x", "bytes_quota": quota, "bytes_used": v.used}, 0
	case listMetadata:
		return maps.Clone(v.notes), 0
	case setMetadata:
		v.notes[key] = value
		return nil, 0
	case removeMetadata:
		if _, ok := v.notes[key]; !ok {
			return nil, syscall.ENOENT
		}
		delete(v.notes, key)
		return nil, 0
	}
	return nil, syscall.EOPNOTSUPP
}
