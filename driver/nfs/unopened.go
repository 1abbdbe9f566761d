package nfs

import (
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
)

// nextUnopened is the next step where the server cannot open a directory.
const nextUnopened = "create the directory, or correct spec.path of the NFSExport"

// cannotOpen says whether the server leaves an export out because of its directory: by what the
// server answers, or by what it answered before it began to read its configuration again.
func (s *Server) cannotOpen(e *api.NFSExport, x *export) bool {
	d := s.daemon
	wanted := x.refusal+x.waits == "" && s.At != nil && e.Spec.Path != "/" && e.Spec.Path != ""
	if !wanted || d == nil || d.Status.State != api.DaemonRunning {
		return false
	}
	if !s.settled() {
		return e.Status.Reason == api.ReasonNotServed && e.Status.ObservedGeneration == e.Generation
	}
	return s.report.Exports[e.PseudoOf()] == ganesha.NotExported
}

// unopened says what is wrong with the directory of an export. The directory is missing if the
// server serves another one of the same storage.
func (s *Server) unopened(e *api.NFSExport) string {
	of := "filesystem " + e.Spec.Filesystem
	if e.Spec.Filesystem == "" {
		of = "volume " + e.Spec.Volume
	}
	reaches := slices.ContainsFunc(s.Exports, func(o *api.NFSExport) bool {
		same := o.Spec.Filesystem == e.Spec.Filesystem && o.Spec.Volume == e.Spec.Volume
		return o != e && same && o.Status.State == api.ResourceOnline
	})
	if reaches {
		return fmt.Sprintf("directory %s does not exist in %s", e.Spec.Path, of)
	}
	return fmt.Sprintf("the NFS server cannot open directory %s of %s, which may not exist", e.Spec.Path, of)
}
