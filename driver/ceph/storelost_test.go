package ceph

import (
	"fmt"
	"slices"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// The pools of a store that are gone are not made anew, and no gateway runs on other pools of their names.
func TestLost_store(t *testing.T) {
	f := storesOn(3, storeOf("s3"))
	f.settle(t)
	ids := fmt.Sprintf("pool-%d", f.ceph.PoolID("s3.rgw.data"))
	f.ceph.RenamePool("s3.rgw.data", "old")
	f.settle(t)
	wantLost(t, f.store(), api.ResourceOffline, api.ReasonRenamedOutside, ids, "renamed to old outside Holdfast", "'holdfast recreate objectstore s3 --lost "+ids+"'")
	if f.ceph.PoolID("s3.rgw.data") != 0 {
		t.Error("it was made anew")
	}

	f.ceph.MakePool("s3.rgw.data", "by-hand", "host")
	before := f.ceph.Pools()
	f.settle(t)
	wantLost(t, f.store(), api.ResourceOffline, api.ReasonNameTaken, ids)
	if f.gateways() != "" || !slices.Equal(before, f.ceph.Pools()) {
		t.Errorf("gateways %s, pools %v", f.gateways(), f.ceph.Pools())
	}

	f.ceph.DropPool("s3.rgw.data")
	f.ceph.RenamePool("old", "s3.rgw.data")
	f.settle(t)
	wantLost(t, f.store(), api.ResourceOnline, api.ReasonPresent, "")

	f.ceph.DropPool("s3.rgw.data")
	f.ceph.DropPool("s3.rgw.meta")
	f.settle(t)
	ids = fmt.Sprintf("pool-%d,pool-%d", f.store().Status.Pools[0].ID, f.store().Status.Pools[1].ID)
	wantLost(t, f.store(), api.ResourceOffline, api.ReasonDeletedOutside, ids)
	recreate(f.store(), ids)
	f.settle(t)
	if s := f.store().Status; s.State != api.ResourceOnline || f.ceph.PoolID("s3.rgw.meta") == 0 || f.ceph.PoolID("s3.rgw.data") == 0 {
		t.Errorf("%+v", s)
	}
}
