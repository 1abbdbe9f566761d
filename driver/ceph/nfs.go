package ceph

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/monset"
	"github.com/holdfast-storage/holdfast/driver/ceph/selection"
	"github.com/holdfast-storage/holdfast/driver/nfs"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
)

// chooseNFS chooses the host that serves the NFSExports of the cluster's filesystems.
func (p *planner) chooseNFS() {
	var able []nfs.Place
	if places, _ := p.places(selection.Selection{}, "nfs"); len(p.members) > 0 {
		for _, at := range places {
			able = append(able, nfs.Place{Node: at.host, Host: at.host, Address: at.address})
		}
	}
	var reports map[string]*ganesha.Report
	if p.seen != nil {
		reports = p.seen.NFS
	}
	p.nfs = nfs.Choose(p.view, nfs.Storage{
		FSAL: "ceph", Cannot: p.cannotExport, Lines: p.cephLines, State: p.exportState,
		Finish: p.finishNFS, Ready: p.nfsAdmitted, Stays: nodeStays(p.nodes),
	}, able, reports, p.now)
}

// nodeStays says whether one of the nodes is on the host of a server, though the node may have a problem.
func nodeStays(nodes []*node) func(*api.Daemon) bool {
	return func(d *api.Daemon) bool {
		return slices.ContainsFunc(nodes, func(n *node) bool { return n.Host != nil && n.Host.Name == d.Spec.Host })
	}
}

// cephLines say which filesystem an export is.
func (p *planner) cephLines(e *api.NFSExport, at nfs.Place) []string {
	return []string{"Name = CEPH;", fmt.Sprintf("User_Id = %q;", strings.TrimPrefix(nfsPrefix, clientPrefix)+at.Node), fmt.Sprintf("Filesystem = %q;", e.Spec.Filesystem)}
}

// finishNFS gives the server a ceph.conf and its key.
func (p *planner) finishNFS(d *api.Daemon, conf *string) {
	entity := nfsPrefix + d.Spec.ID
	*conf = "CEPH { Ceph_Conf = \"${DATA}/" + FileConf + "\"; }\n" + *conf
	text := fmt.Sprintf("[global]\nfsid = %s\nmon_host = %s\nlog_file =\nadmin_socket =\n\n[%s]\nkeyring = ${DATA}/%s\n", p.fsid, monset.MonHost(p.members), entity, FileKeyring)
	d.Spec.Files = append(d.Spec.Files, api.DaemonFile{Path: FileConf, Sources: []api.FileSource{{Text: &text}}}, p.keyringFile(entity))
}

// cannotExport says why the filesystem of an export cannot be served: not at all, or not yet.
func (p *planner) cannotExport(e *api.NFSExport) (refusal, waits string) {
	i := slices.IndexFunc(p.filesystems, func(x *fsPlan) bool { return x.Name == e.Spec.Filesystem })
	switch {
	case e.Spec.Filesystem == "":
		return "an NFSExport of a Ceph cluster needs spec.filesystem", ""
	case i < 0:
		return fmt.Sprintf("cluster %s has no Filesystem %s", p.cluster.Name, e.Spec.Filesystem), ""
	case p.filesystems[i].lost.taken(): // the server would serve what has the name
		return p.filesystems[i].lost.why(), ""
	case p.filesystems[i].DeletionTimestamp != nil && e.Status.ExportID == 0: // the filesystem waits for those that are served
		return "", fmt.Sprintf("filesystem %s is being deleted", e.Spec.Filesystem)
	case neverServed(&p.filesystems[i].Status.ResourceStatus):
		return "", fmt.Sprintf("filesystem %s does not exist yet", e.Spec.Filesystem)
	}
	return "", ""
}

// exportState is how the filesystem of an export stands where it is not well.
func (p *planner) exportState(e *api.NFSExport) api.ResourceStatus {
	for _, x := range p.filesystems {
		if x.Name == e.Spec.Filesystem {
			return nfs.As("filesystem "+x.Name, p.plan.Planned(x.Filesystem).Common())
		}
	}
	return api.ResourceStatus{}
}

// exportersOf are the exports of a filesystem that are served, or were.
func (p *planner) exportersOf(filesystem string) []string {
	return p.nfs.Exporters(func(e *api.NFSExport) bool {
		return e.Spec.Filesystem == filesystem && e.Status.ExportID != 0
	})
}

// nfsEntities are those of the servers that are there, or are to be.
func (p *planner) nfsEntities() map[string]bool {
	wanted := map[string]bool{}
	if p.nfs.At != nil {
		wanted[nfsPrefix+p.nfs.At.Node] = true
	}
	for _, d := range p.daemonsOf(ganesha.Type) {
		wanted[nfsPrefix+d.Spec.ID] = true
	}
	return wanted
}

// writeNFS has the keys of NFS servers imported, and taken away again with the servers.
func (p *planner) writeNFS() {
	wanted := p.nfsEntities()
	for _, entity := range slices.Sorted(maps.Keys(wanted)) {
		if p.seen.Entities != nil && !p.seen.Entities[entity] && p.hasSecret(entity) {
			p.command(api.ReasonDeclared, verbAuthImport, entity, nil, "its key is not in Ceph's auth database")
		}
	}
	for _, s := range p.view.Secrets {
		entity := s.Annotations[AnnotationEntity]
		if !strings.HasPrefix(entity, nfsPrefix) || wanted[entity] {
			continue
		}
		switch {
		case p.seen.Entities[entity]:
			p.command(api.ReasonRemoving, verbAuthRm, entity, nil, "the NFS server is gone")
		case p.seen.Entities != nil:
			p.plan.Secrets = append(p.plan.Secrets, engine.SecretWant{Name: s.Name, Gone: true})
		}
	}
}

// nfsAdmitted says whether Ceph has the key of a server at a place. One that starts without it ends, and starts again later and later.
func (p *planner) nfsAdmitted(at nfs.Place) bool {
	return p.reachable() && p.seen.Entities[nfsPrefix+at.Node]
}

// putExports has the exports served, and writes their statuses. A plan that is refused makes nothing.
func (p *planner) putExports() {
	if !p.plan.Refused && len(p.members) > 0 {
		p.nfs.Plan(p.plan)
	}
}
