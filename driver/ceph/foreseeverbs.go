package ceph

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// each calls a function with each OSD that a command is about, and keeps what it makes of it.
func (f *foresight) each(r request, change func(*OSD)) {
	for _, name := range r.names() {
		id, err := strconv.Atoi(strings.TrimPrefix(name, "osd."))
		if o, known := f.OSDs[id]; err == nil && known {
			change(&o)
			f.OSDs[id] = o
		}
	}
}

func (f *foresight) osdNew(r request) {
	for name, uuid := range r.Params {
		if id, err := strconv.Atoi(strings.TrimPrefix(name, "osd.")); err == nil {
			f.OSDs[id] = OSD{UUID: uuid}
			delete(f.Destroyed, id)
			f.Entities[name] = true
		}
	}
}

func (f *foresight) authImport(r request) {
	f.Entities[r.Object] = true
	f.client(r.Object, r.Params)
}

func (f *foresight) authRm(r request) {
	delete(f.Entities, r.Object)
	delete(f.Clients, r.Object)
}

func (f *foresight) authCaps(r request) { f.client(r.Object, r.Params) }

// client gives an entity of a Client its capabilities.
func (f *foresight) client(entity string, caps map[string]string) {
	if strings.HasPrefix(entity, clientPrefix) && f.Clients != nil {
		f.Clients[entity] = caps
	}
}

// clients are the entities of Clients, to be changed by commands. A Ceph that was never there has none of them yet.
func (f *foresight) clients() map[string]map[string]string {
	if !f.seen.Reachable && len(engine.OfKind[*api.Client](f.after.Resources)) > 0 {
		return map[string]map[string]string{}
	}
	return maps.Clone(f.seen.Clients)
}

func (f *foresight) noout(r request) { f.each(r, func(o *OSD) { o.Noout = r.Verb == verbNoout }) }

func (f *foresight) inOut(r request) { f.each(r, func(o *OSD) { o.In = r.Verb == verbOSDIn }) }

func (f *foresight) reweight(r request) {
	if f.Drain == nil {
		return
	}
	for _, name := range r.names() {
		id, err := strconv.Atoi(strings.TrimPrefix(name, "osd."))
		weight, wrong := strconv.ParseFloat(r.Params[name], 64)
		if at, placed := f.Drain.Places[id]; err == nil && wrong == nil && placed {
			at.Weight = weight
			f.Drain.Places[id] = at
		}
	}
}

// purge takes OSDs out of the map, of CRUSH, and of the auth database.
func (f *foresight) purge(r request) {
	for _, d := range f.before.Daemons {
		id, err := strconv.Atoi(d.Spec.ID)
		if err != nil || d.Spec.Type != TypeOSD || !slices.Contains(r.names(), label(&d)) {
			continue
		}
		delete(f.OSDs, id)
		if r.Verb == verbOSDPurge {
			delete(f.Destroyed, id)
		}
		delete(f.Entities, label(&d))
		delete(f.Crush, label(&d))
		if f.Drain != nil {
			delete(f.Drain.Usage, id)
			delete(f.Drain.Places, id)
			f.Drain.Buckets[crushHostOf(&d)]--
		}
	}
	for _, id := range orphans(f.before, f.seen) {
		if host, left := f.Destroyed[id]; left && r.Verb == verbOSDPurge && slices.Contains(r.names(), osdName(id)) && f.Drain != nil {
			delete(f.Destroyed, id)
			delete(f.Drain.Places, id)
			f.Drain.Buckets[host]--
		}
	}
}

// destroy leaves the numbers.
func (f *foresight) destroy(r request) {
	for _, d := range f.before.Daemons {
		if id, err := strconv.Atoi(d.Spec.ID); err == nil && d.Spec.Type == TypeOSD && slices.Contains(r.names(), label(&d)) {
			f.Destroyed[id] = crushHostOf(&d)
		}
	}
	f.purge(r)
}

func (f *foresight) crushRm(r request) {
	delete(f.Crush, r.Object)
	if f.Drain != nil {
		delete(f.Drain.Buckets, r.Object)
	}
}

func (f *foresight) monRemove(r request) {
	f.Monmap = slices.DeleteFunc(f.Monmap, func(id string) bool { return "mon."+id == r.Object })
}

// mgrFail has another one be active.
func (f *foresight) mgrFail(r request) {
	if "mgr."+f.ActiveMgr != r.Object {
		return
	}
	for _, d := range f.daemonsOf(TypeMgr) {
		if label(d) != r.Object && f.runs(d, f.had(d)) && f.Entities[label(d)] {
			f.ActiveMgr = d.Spec.ID
			return
		}
	}
}
