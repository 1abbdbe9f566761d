package ceph

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

var _ engine.Planner = (*Driver)(nil)

// Foresee tells what Ceph will say when it has done what it was asked for and the daemons of the view after do their work. It is
// pure. Of a Ceph that was started before and does not answer, nothing is foreseen: which numbers of OSDs it has given, nobody
// knows.
func (d *Driver) Foresee(before, after *engine.View, commands []engine.Command) any {
	seen, _ := before.System.(*Observation)
	members := membersOf(after.Daemons)
	answered := seen != nil && seen.Reachable && seen.FSID == clusterFSID(before)
	if !answered && (seen != nil || startedBefore(before.Daemons)) || len(members) == 0 || after.Cluster.DeletionTimestamp != nil {
		return before.System
	}
	o := &Observation{FSID: clusterFSID(after), Health: healthOK, Entities: entitiesAfter(seen, after, commands)}
	if seen != nil {
		o.Version = seen.Version
	}
	o.foreseeMons(after.Daemons, members)
	o.foreseeMgrs(after.Daemons)
	o.foreseeOSDs(seen, after.Daemons, commands)
	if !o.Reachable {
		return before.System
	}
	return o
}

// startedBefore says whether a mon ran already.
func startedBefore(daemons []api.Daemon) bool {
	return slices.ContainsFunc(daemons, func(d api.Daemon) bool {
		return d.Spec.Type == TypeMon && (d.Status.Started != nil || d.Status.State == api.DaemonRunning)
	})
}

// entitiesAfter are the names in Ceph's auth database: those of the mons' first keyring, and those that were added. A manager
// that was added later gets its key by a command.
func entitiesAfter(seen *Observation, after *engine.View, commands []engine.Command) map[string]bool {
	entities := map[string]bool{}
	if seen != nil && seen.Reachable {
		maps.Copy(entities, seen.Entities)
	} else {
		firstEntities(after, entities)
	}
	for _, c := range commands {
		switch c.Verb {
		case verbAuthImport:
			entities[c.Object] = true
		case verbAuthRm:
			delete(entities, c.Object)
		}
	}
	return entities
}

// firstEntities are those that the mons of a new Ceph begin with.
func firstEntities(after *engine.View, entities map[string]bool) {
	for i := range after.Daemons {
		d := &after.Daemons[i]
		if d.Spec.Type != TypeMon {
			continue
		}
		for _, f := range d.Spec.Files {
			for _, s := range f.Sources {
				if f.Path == FileKeyring && s.Secret != nil {
					entities[entityOf(after, s.Secret.Name)] = true
				}
			}
		}
	}
}

// entityOf is the entity that a Secret is the key of.
func entityOf(view *engine.View, secret string) string {
	for _, s := range view.Secrets {
		if s.Name == secret {
			return s.Annotations[AnnotationEntity]
		}
	}
	return ""
}

func (o *Observation) foreseeMons(daemons []api.Daemon, members []member) {
	for i := range daemons {
		if d := &daemons[i]; d.Spec.Type == TypeMon && d.Status.State == api.DaemonRunning {
			o.Quorum = append(o.Quorum, d.Spec.ID)
		}
	}
	slices.Sort(o.Quorum)
	o.Reachable = len(o.Quorum) > len(members)/2
}

func (o *Observation) foreseeMgrs(daemons []api.Daemon) {
	for i := range daemons {
		d := &daemons[i]
		switch {
		case d.Spec.Type != TypeMgr || d.Status.State != api.DaemonRunning || !o.Entities["mgr."+d.Spec.ID]:
		case o.MgrAvailable:
			o.Standbys++
		default:
			o.MgrAvailable, o.ActiveMgr = true, d.Spec.ID
		}
	}
}

// foreseeOSDs has those in Ceph's map that are there or were asked for; those whose daemons run are up, and their data is well.
func (o *Observation) foreseeOSDs(seen *Observation, daemons []api.Daemon, commands []engine.Command) {
	o.OSDs = map[int]OSD{}
	if seen != nil {
		maps.Copy(o.OSDs, seen.OSDs)
		o.PGsWanted = seen.PGsWanted
	}
	for _, c := range commands {
		if c.Verb != verbOSDNew {
			continue
		}
		for name, uuid := range c.Params {
			if id, err := strconv.Atoi(strings.TrimPrefix(name, "osd.")); err == nil {
				o.OSDs[id] = OSD{UUID: uuid}
			}
		}
	}
	for i := range daemons {
		d := &daemons[i]
		id, err := strconv.Atoi(d.Spec.ID)
		known, ok := o.OSDs[id]
		if d.Spec.Type != TypeOSD || err != nil || !ok || known.UUID != d.Spec.Parameters[ParamOSDUUID] {
			continue
		}
		up := d.Status.State == api.DaemonRunning
		o.OSDs[id] = OSD{UUID: known.UUID, Up: up, In: up || known.In}
		if up && o.MgrAvailable {
			o.PGsWanted, o.BytesTotal = max(1, o.PGsWanted), max(1, o.BytesTotal)
		}
	}
	o.PGs, o.PGsActive, o.PGsClean = o.PGsWanted, o.PGsWanted, o.PGsWanted
}
