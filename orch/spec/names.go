package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
	"github.com/holdfast-storage/holdfast/internal/rgw"
)

// AnnotationID is the service_id of a DriveGroup whose name differs from it, because names of
// Ceph's services may have capitals and underscores.
const AnnotationID = api.Group + "/orch-id"

// longestName bounds the names of DriveGroups.
const longestName = 63

// notInNames are runs of characters that names may not have.
var notInNames = regexp.MustCompile(`[^a-z0-9-]+`)

// GroupName is the name of the DriveGroup of a service_id.
func GroupName(id string) string {
	if len(id) <= longestName && len(validation.IsDNS1123Subdomain(id)) == 0 {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	hash := hex.EncodeToString(sum[:])[:8]
	stem := notInNames.ReplaceAllString(strings.ToLower(id), "-")
	stem = strings.Trim(stem[:min(len(stem), longestName-len(hash)-1)], "-")
	return strings.TrimPrefix(stem+"-"+hash, "-")
}

// GroupID is the service_id of a DriveGroup.
func GroupID(g *api.DriveGroup) string {
	if id := g.Annotations[AnnotationID]; id != "" && GroupName(id) == g.Name {
		return id
	}
	return g.Name
}

// TypeOf is how Ceph calls the type of a daemon: mon, rgw, rbd-mirror, nfs.
func TypeOf(d *api.Daemon) string {
	if d.Spec.Type == ganesha.Type {
		return "nfs"
	}
	return strings.TrimPrefix(d.Spec.Type, "ceph-")
}

// ServiceOf is the service that a daemon belongs to, as ServiceSpec.service_name makes it. group is
// the service_id of an OSD's DriveGroup; empty where it has none.
func ServiceOf(d *api.Daemon, group string) string {
	kind, id := TypeOf(d), ""
	switch kind {
	case kindOSD:
		id = group
	case kindMDS: // mds.home-a is one of filesystem home
		id = d.Spec.ID
		if at := strings.LastIndex(id, "-"); at > 0 {
			id = id[:at]
		}
	case kindRGW:
		id = d.Spec.Parameters[rgw.ParamStore]
	case "nfs":
		id = d.Spec.ID
	}
	return nameOf(kind, id)
}

// nameOf is the name of a service.
func nameOf(kind, id string) string {
	if id == "" {
		return kind
	}
	return kind + "." + id
}
