package rbd

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/conn"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados/rbd/rbdtest"
)

// ceph is a Ceph in memory with one pool, number 2, with 10 GiB left. Its images answer as librbd
// does (rbdtest); its monitor and manager know the two commands that the driver uses.
type ceph struct {
	*rbdtest.Images

	mu    sync.Mutex
	quota int64
	// cut, when not nil, says whether the answer to a command is lost; it is asked before and after
	// each.
	cut func() bool
}

func newCeph() *ceph { return &ceph{Images: rbdtest.New(2)} }

var secrets = backend.Secrets{
	backend.SecretCluster: "c1", backend.SecretMons: "[v2:10.0.0.1:3300]", backend.SecretUser: "csi-provisioner",
	backend.SecretKey: "AQ==",
}

func (c *ceph) controller(t *testing.T) *Controller {
	clients := &conn.Clients{Dial: func(rados.Config) rados.ImageClient { return c }}
	t.Cleanup(clients.Close)
	return &Controller{Clients: clients}
}

// answer has an answer pass, unless it is cut off before the command takes effect or after it.
func (c *ceph) answer(do func() ([]byte, error)) ([]byte, error) {
	if c.cut != nil && c.cut() {
		return nil, rados.ErrNoAnswer
	}
	out, err := do()
	if c.cut != nil && c.cut() {
		return nil, rados.ErrNoAnswer
	}
	return out, err
}

func (c *ceph) RBD(ctx context.Context, command any) ([]byte, error) {
	return c.answer(func() ([]byte, error) { return c.Images.RBD(ctx, command) })
}

func (c *ceph) Mon(context.Context, any, []byte) ([]byte, error) {
	return c.answer(func() ([]byte, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return json.Marshal(map[string]any{"pools": []map[string]any{{
			"id": 2, "name": "images", "stats": map[string]int64{
				"max_avail": 10 << 30, "quota_bytes": c.quota,
				"stored": 1 << 30,
			},
		}}})
	})
}

func (c *ceph) Mgr(_ context.Context, command any, _ []byte) ([]byte, error) {
	return c.answer(func() ([]byte, error) {
		spec, _ := command.(map[string]any)["image_id_spec"].(string)
		c.EmptyTrash(2, strings.TrimPrefix(spec, "images/"))
		return nil, nil
	})
}

func (c *ceph) Close() error { return nil }
