package gluster

import (
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/nfs"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// chooseNFS chooses the node that serves NFS.
func (p *planner) chooseNFS() {
	var able []nfs.Place
	for _, n := range p.nodes {
		if n.running() && n.leaving == "" && p.hosts[n.hostName()].ModeOf() == api.HostActive {
			able = append(able, nfs.Place{Node: n.name, Host: n.hostName(), Address: n.address})
		}
	}
	var reports map[string]*ganesha.Report
	if p.seen != nil {
		reports = p.seen.NFS
	}
	storage := nfs.Storage{
		FSAL: "gluster", Cannot: p.cannotExport, Lines: glusterLines, State: p.exportState, Stays: nodeStays(p),
	}
	p.nfs = nfs.Choose(p.view, storage, able, reports, p.now)
}

// nodeStays says whether the node of a server is declared: it serves also while the node's glusterd does not.
func nodeStays(p *planner) func(*api.Daemon) bool {
	return func(d *api.Daemon) bool {
		n := p.nodeNamed(d.Spec.ID)
		return n != nil && n.Node != nil && n.leaving == "" && n.hostName() == d.Spec.Host
	}
}

func glusterLines(e *api.NFSExport, at nfs.Place) []string {
	return ganesha.Gluster(at.Address, e.Spec.Volume, e.Spec.Path)
}

// cannotExport says why the volume of an export cannot be served: not at all, or not yet.
func (p *planner) cannotExport(e *api.NFSExport) (refusal, waits string) {
	i := slices.IndexFunc(p.volumes, func(v *volume) bool { return v.name == e.Spec.Volume })
	switch {
	case e.Spec.Volume == "":
		return "an NFSExport of a GlusterFS cluster needs spec.volume", ""
	case i < 0 || p.volumes[i].declared == nil:
		return fmt.Sprintf("cluster %s has no Volume %s", p.cluster.Name, e.Spec.Volume), ""
	case p.volumes[i].declared.DeletionTimestamp != nil && e.Status.ExportID == 0: // the volume waits for those that are served
		return "", fmt.Sprintf("volume %s is being deleted", e.Spec.Volume)
	case p.volumes[i].lost != "":
		return "", fmt.Sprintf("volume %s is gone from the pool", e.Spec.Volume)
	case !p.volumes[i].young(): // its exports stay where they are while it changes
	case p.volumes[i].pool == nil && p.ready() || p.volumes[i].pool != nil && p.volumes[i].pool.State != glusterd.VolumeStarted:
		return "", fmt.Sprintf("volume %s is not started yet", e.Spec.Volume)
	}
	return "", ""
}

// exportState is how the volume of an export stands where it is not well.
func (p *planner) exportState(e *api.NFSExport) api.ResourceStatus {
	for _, v := range p.volumes {
		if v.name == e.Spec.Volume {
			return nfs.As("volume "+v.name, &v.status.ResourceStatus)
		}
	}
	return api.ResourceStatus{}
}

// exportersOf are the exports of a volume.
func (p *planner) exportersOf(volume string) []string {
	return p.nfs.Exporters(func(e *api.NFSExport) bool { return e.Spec.Volume == volume })
}
