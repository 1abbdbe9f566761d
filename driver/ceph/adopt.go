package ceph

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/ids"
	"github.com/holdfast-storage/holdfast/engine"
)

// AnnotationAdopted is on a StorageCluster that was adopted: the fsid of the Ceph cluster that was there. Such a cluster is never founded.
const AnnotationAdopted = "holdfast.io/adopted"

// AdoptRequest is what a running cluster is to be adopted from.
type AdoptRequest struct {
	Namespace, Name string
	// Conf is the ceph.conf that the cluster's daemons have, by section and name (cephconf.Parse).
	Conf  map[string]map[string]string
	Facts *AdoptFacts
	// Hosts, Clusters and Daemons are all that there are: daemons that were handed over before stay. Secrets are those of the namespace with the
	// cluster's label.
	Hosts    []api.Host
	Clusters []api.StorageCluster
	Daemons  []api.Daemon
	Secrets  []engine.SecretInfo
}

// Adoption is what becomes of a running cluster. It is a value: making it changes nothing.
type Adoption struct {
	Cluster api.StorageCluster
	Nodes   []api.StorageNode
	// Daemons are only watched (api.WantWatched).
	Daemons []api.Daemon
	Secrets []AdoptedSecret
	Rows    []AdoptRow
	// Problems stand in the way, each with the way out; Notes do not.
	Problems, Notes []string
}

// AdoptedSecret is a key of the cluster, as a Secret of Holdfast's holds it.
type AdoptedSecret struct {
	Name        string
	Annotations map[string]string
	Data        map[string][]byte
}

// AdoptRow tells of one daemon.
type AdoptRow struct{ Host, Daemon, Data, Device, RunBy, PID, Becomes string }

// Adopt says what adopting a running cluster would come to. It is pure.
func Adopt(r AdoptRequest) *Adoption {
	x := &adopter{AdoptRequest: r, out: &Adoption{}, addresses: map[string]string{}, devices: map[string][]string{}, stores: map[string]string{}}
	x.checkNames()
	x.checkReleases()
	x.out.Cluster = x.cluster()
	for i := range r.Facts.Daemons {
		x.place(&r.Facts.Daemons[i])
	}
	x.checkCounts()
	x.unknownFiles()
	x.leaveAlone()
	x.out.Nodes = x.nodes()
	x.out.Secrets = x.secrets()
	x.out.Daemons = x.daemons()
	return x.out
}

// adopter makes one Adoption.
type adopter struct {
	AdoptRequest
	out     *Adoption
	members []member
	mgrs    []seat
	osds    []*osd
	// addresses are those that daemons listen on, and devices those of OSDs, by host.
	addresses map[string]string
	devices   map[string][]string
	// stores are the directories of the mons' stores, by their ids.
	stores map[string]string
}

func (x *adopter) problem(format string, args ...any) {
	x.out.Problems = append(x.out.Problems, fmt.Sprintf(format, args...))
}

func (x *adopter) note(format string, args ...any) {
	x.out.Notes = append(x.out.Notes, fmt.Sprintf(format, args...))
}

// checkNames refuses a name that means something else already.
func (x *adopter) checkNames() {
	fsid := x.Facts.FSID
	for i := range x.Clusters {
		c := &x.Clusters[i]
		same := c.Namespace == x.Namespace && c.Name == x.Name
		switch {
		case same && c.Annotations[AnnotationAdopted] == fsid:
			x.note("storagecluster/%s is already this cluster: missing objects are added, nothing else changes", c.Name)
		case same:
			x.problem("storagecluster/%s is another cluster (fsid %s; the one to adopt is %s): choose another name",
				c.Name, cmp.Or(c.Annotations[AnnotationAdopted], x.knownFSID(), "not known"), fsid)
		case c.Annotations[AnnotationAdopted] == fsid || ids.FSID(c) == fsid:
			x.problem("the Ceph cluster %s is already storagecluster/%s in namespace %s", fsid, c.Name, c.Namespace)
		}
	}
	if known := x.knownFSID(); known != "" && known != fsid {
		x.problem("Secrets %s-key-* belong to another Ceph cluster (fsid %s): delete them if its data is no longer "+
			"needed, or choose another name", x.Name, known)
	}
	if own := strings.ToLower(x.Conf["global"]["fsid"]); own != "" && own != fsid {
		x.problem("ceph.conf belongs to cluster %s, but its mons belong to %s: give the right file with --conf", own, fsid)
	}
}

// knownFSID is what Secrets of the name were made for.
func (x *adopter) knownFSID() string {
	for _, s := range x.Secrets {
		if s.Name == secretName(x.Name, entityMon) {
			return s.Annotations[AnnotationFSID]
		}
	}
	return ""
}

// oldest and newest are the major releases of Ceph that Holdfast runs.
const oldestRelease, newestRelease = 16, 20

func (x *adopter) checkReleases() {
	var versions []string
	for i := range x.Facts.Daemons {
		if v := x.Facts.Daemons[i].Version; v != "" && !slices.Contains(versions, v) {
			versions = append(versions, v)
		}
	}
	slices.SortFunc(versions, func(a, b string) int { return slices.Compare(releaseNumbers(a), releaseNumbers(b)) })
	for _, v := range versions {
		if major := releaseNumbers(v)[0]; major < oldestRelease || major > newestRelease {
			x.problem("the cluster runs Ceph %s, but Holdfast supports the releases %d to %d: upgrade the cluster first",
				v, oldestRelease, newestRelease)
		}
	}
	if len(versions) > 1 {
		x.problem("several releases run (%s): finish the upgrade first", strings.Join(versions, ", "))
	}
	if auth := x.Conf["global"]["auth_cluster_required"]; auth != "" && auth != "cephx" {
		x.problem("auth_cluster_required is %q: Holdfast needs cephx; enable it first", auth)
	}
}

// named is what Daemons and cephx can both have as an id.
var named = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,38}[a-z0-9])?$`)
