package ceph

import (
	"context"
	"testing"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/engine"
)

// otherKey are Secrets as they would be with another key of client.admin.
type otherKey struct{ engine.SecretReader }

func (o otherKey) Present() engine.SecretReader { return o.SecretReader }

func (otherKey) Secret(context.Context, string) (map[string][]byte, error) {
	return map[string][]byte{secretKey: []byte("supposed")}, nil
}

// TestObserve_supposed: a view of what is supposed, such as another key or a mon less, changes
// nothing about the connection to the cluster. Where there is none, it is made with the key that
// there is.
func TestObserve_supposed(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	var dialled []rados.Config
	f.driver = &Driver{Dial: func(cfg rados.Config) rados.Client {
		dialled = append(dialled, cfg)
		return f.ceph.Dial(cfg)
	}}
	supposed := f.view()
	supposed.Supposed = true
	supposed.Daemons = supposed.Daemons[1:]
	observe := func(v *engine.View, secrets engine.SecretReader) *conn {
		t.Helper()
		o, err := f.driver.Observe(t.Context(), v, secrets)
		if err != nil || !o.(*Observation).Reachable {
			t.Fatalf("%+v, %v", o, err)
		}
		return f.driver.connected(keyOf(v))
	}
	observe(supposed, otherKey{f})
	if len(dialled) != 1 || dialled[0].Key == "supposed" {
		t.Fatalf("dialled %+v", dialled)
	}
	live := observe(f.view(), f)
	if live != observe(supposed, otherKey{f}) || live != observe(f.view(), f) {
		t.Errorf("the connection was replaced: dialled %+v", dialled)
	}
}
