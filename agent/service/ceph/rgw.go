package ceph

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/tool"
	"github.com/holdfast-storage/holdfast/internal/listener"
	"github.com/holdfast-storage/holdfast/internal/rgw"
)

// RGW runs object gateways.
type RGW struct{}

var (
	_ service.ServiceAgent = RGW{}
	_ service.Reporter     = RGW{}
	_ service.Performer    = RGW{}
	_ service.Confined     = RGW{}
)

// Name is ceph-rgw.
func (RGW) Name() string { return rgw.Type }

// Needs is the right to listen at a port that the kernel keeps for root.
func (RGW) Needs(l *service.Local) runtime.Needs {
	u, err := url.Parse(l.Parameters[rgw.ParamURL])
	if err != nil {
		return runtime.Needs{} // it does not start with it either
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil || port >= firstFreePort {
		return runtime.Needs{}
	}
	return runtime.Needs{Capabilities: []string{"CAP_NET_BIND_SERVICE"}}
}

// firstFreePort is the first port that everyone may listen at
// (net.ipv4.ip_unprivileged_port_start).
const firstFreePort = 1024

// Initialize checks that radosgw is there.
func (RGW) Initialize(context.Context, *service.Host) error {
	return errors.Join(tool.Require("radosgw", "radosgw"), tool.Require("radosgw-admin", "radosgw"))
}

// ConfigureLocalService makes the layout of the store, unless it is there, and looks for what would keep the process from starting: its own words
// for that come late and say little.
func (RGW) ConfigureLocalService(ctx context.Context, l *service.Local) error {
	if err := certificateFits(l); err != nil {
		return err
	}
	if err := portFree(ctx, l.Parameters[rgw.ParamURL]); err != nil {
		return err
	}
	return makeZone(ctx, l)
}

// DestroyLocalService has nothing to do: the store stays, and all else lies in the daemon's own directories.
func (RGW) DestroyLocalService(context.Context, *service.Local) error { return nil }

// certificateFits checks the files of a gateway with TLS.
func certificateFits(l *service.Local) error {
	if l.Parameters[rgw.ParamCertificate] == "" {
		return nil
	}
	_, err := tls.LoadX509KeyPair(filepath.Join(l.Data, rgw.FileCertificate), filepath.Join(l.Data, rgw.FileKey))
	if err != nil {
		return fmt.Errorf("the gateway's certificate cannot be used: %w", err)
	}
	return nil
}

// portFree says whether the gateway can listen where it is to.
func portFree(ctx context.Context, at string) error {
	u, err := url.Parse(at)
	if err != nil {
		return fmt.Errorf("while reading the address of the gateway: %w", err)
	}
	door, err := (&net.ListenConfig{}).Listen(ctx, "tcp", u.Host)
	if err != nil {
		return fmt.Errorf("the gateway cannot listen on %s: %s has the port (%w): stop it, or give the ObjectStore "+
			"another spec.gateways.port", u.Host, listener.Text(u.Port()), err)
	}
	return door.Close()
}

// makeZone makes the layout of the store. The zone comes last: where it is, all is. Several gateways may do it at one time, with one outcome.
func makeZone(ctx context.Context, l *service.Local) error {
	store := l.Parameters[rgw.ParamStore]
	_, err := admin(ctx, l, nil, "zone", "get", "--rgw-zone", store)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, args := range [][]string{
		{"zonegroup", "set", "--rgw-zonegroup", store, "--infile", filepath.Join(l.Data, rgw.FileZonegroup)},
		{"zone", "set", "--rgw-zone", store, "--infile", filepath.Join(l.Data, rgw.FileZone)},
	} {
		if _, err := admin(ctx, l, nil, args...); err != nil {
			return fmt.Errorf("while making the layout of the store: %w", err)
		}
	}
	return nil
}
