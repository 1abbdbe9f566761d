package ceph

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/tool"
	"github.com/holdfast-storage/holdfast/internal/cephreport"
)

// MDS readies metadata servers, which keep nothing on disk, and tells who has their filesystem mounted.
type MDS struct{}

var (
	_ service.ServiceAgent = MDS{}
	_ service.Reporter     = MDS{}
)

// Name is ceph-mds.
func (MDS) Name() string { return "ceph-mds" }

// Initialize checks that ceph-mds is there.
func (MDS) Initialize(context.Context, *service.Host) error {
	return tool.Require("ceph-mds", "ceph-mds")
}

// ConfigureLocalService has nothing to do: its files are all that an MDS needs.
func (MDS) ConfigureLocalService(context.Context, *service.Local) error { return nil }

// DestroyLocalService has nothing to do.
func (MDS) DestroyLocalService(context.Context, *service.Local) error { return nil }

// Report says who has the filesystem mounted; nothing of an MDS that only stands by.
func (MDS) Report(ctx context.Context, l *service.Local) (string, error) {
	answer, err := askSocket(ctx, filepath.Join(l.Run, "ceph.asok"), "session ls")
	if errors.Is(err, os.ErrNotExist) {
		return "", nil // it has only just started
	}
	if err != nil || len(answer) == 0 {
		return "", err
	}
	return mountReport(answer)
}

// mountReport makes a report of the answer to "session ls".
func mountReport(answer []byte) (string, error) {
	var sessions []struct {
		State  string
		Client struct {
			Entity string `json:"entity_id"`
			Host   string `json:"hostname"`
			Path   string `json:"mount_point"`
		} `json:"client_metadata"`
	}
	if err := json.Unmarshal(answer, &sessions); err != nil {
		return "", nil //nolint:nilerr // one that stands by answers with a sentence
	}
	r := cephreport.Report{Mounts: []cephreport.Mount{}}
	for _, s := range sessions {
		if s.State == "open" || s.State == "opening" || s.State == "stale" {
			r.Mounts = append(r.Mounts, cephreport.Mount{Entity: s.Client.Entity, Host: s.Client.Host, Path: s.Client.Path})
		}
	}
	slices.SortFunc(r.Mounts, func(a, b cephreport.Mount) int {
		return cmp.Or(strings.Compare(a.Entity, b.Entity), strings.Compare(a.Host, b.Host), strings.Compare(a.Path, b.Path))
	})
	if n := len(r.Mounts); n > cephreport.MaxMounts {
		r.Mounts, r.More = r.Mounts[:cephreport.MaxMounts], n-cephreport.MaxMounts
	}
	text, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("while writing down who has the filesystem mounted: %w", err)
	}
	return string(text), nil
}
