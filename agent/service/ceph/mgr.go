package ceph

import (
	"context"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/mgrmodules"
	"github.com/holdfast-storage/holdfast/agent/service/tool"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Mgr readies managers, which keep nothing on disk.
type Mgr struct{}

var _ service.ServiceAgent = Mgr{}

// Name is ceph-mgr.
func (Mgr) Name() string { return "ceph-mgr" }

// Initialize checks that ceph-mgr is there.
func (Mgr) Initialize(context.Context, *service.Host) error {
	return tool.Require("ceph-mgr", "ceph-mgr")
}

// ConfigureLocalService takes over a manager that somebody else has started. Its files are all that
// a manager needs, but for the modules of one that answers 'ceph orch'.
func (Mgr) ConfigureLocalService(ctx context.Context, l *service.Local) error {
	if l.Parameters[api.ParameterOrch] != "" {
		if err := mgrmodules.Make("/", l.Data, l.Run); err != nil {
			return err
		}
	}
	return takeOver(ctx, l, func() error { return nil }, func() error { return nil })
}

// DestroyLocalService has nothing to do.
func (Mgr) DestroyLocalService(context.Context, *service.Local) error { return nil }
