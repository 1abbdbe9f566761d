// Package drivertest has what the tests of all drivers ask of their plans.
package drivertest

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/rgw"
	"github.com/holdfast-storage/holdfast/internal/torus"
)

// takes are the verbs that take something from clients, by the part of their lines before "/".
var takes = map[string][]string{
	"client": {"auth rm"}, "objectstoreuser": {rgw.VerbUserRemove}, "filesystem": {"fs rm"}, "pool": {"osd pool delete"},
	"volume": {glusterd.VerbStop, glusterd.VerbDelete, torus.VerbDelete},
}

// Withdrawn says what a plan takes from clients of resources that were served, that nobody deletes
// and that are not refused: exports, keys, data, and the last daemon of a service.
func Withdrawn(v *engine.View, p *engine.Plan) (all []string) {
	after := daemonsAfter(v, p)
	for _, r := range v.Resources {
		s := r.Common()
		if r.GetDeletionTimestamp() != nil || !engine.WasServed(s) || p.Refuses(engine.ResourceObject(r)) {
			continue
		}
		object := engine.ResourceObject(r)
		if e, ok := r.(*api.NFSExport); ok && !exported(after, e) {
			all = append(all, object+" is taken from the NFS server: "+p.Planned(r).Common().Message)
		}
		if !hasSecrets(v, r) {
			continue // somebody took its key away, and it gets another one
		}
		for _, c := range p.Commands {
			if kind, _, _ := strings.Cut(object, "/"); c.Line == object && slices.Contains(takes[kind], c.Verb) {
				all = append(all, fmt.Sprintf("%s: %s: %s", object, c.Verb, c.Reason))
			}
		}
		for _, name := range secretsOf(r) {
			if slices.ContainsFunc(p.Secrets, func(w engine.SecretWant) bool { return w.Name == name && w.Gone }) {
				all = append(all, object+" loses Secret "+name)
			}
		}
	}
	for _, kind := range []string{ganesha.Type, rgw.Type, "ceph-mds", "rbd-mirror"} {
		if had, left := ofType(v.DaemonsByName(), kind), ofType(after, kind); had > 0 && left == 0 && wanted(v, p, kind) {
			all = append(all, fmt.Sprintf("no %s of %d is left", kind, had))
		}
	}
	return all
}

// wanted says whether somebody declares what the daemons of a type are for, and is not refused.
func wanted(v *engine.View, p *engine.Plan, kind string) bool {
	for _, r := range v.Resources {
		if r.GetDeletionTimestamp() != nil || p.Refuses(engine.ResourceObject(r)) {
			continue
		}
		of := map[string]string{
			"NFSExport": ganesha.Type, "ObjectStore": rgw.Type, "Filesystem": "ceph-mds", "RBDMirror": "rbd-mirror",
		}
		if of[r.ResourceKind()] == kind {
			return true
		}
	}
	return false
}

// daemonsAfter are the daemons that there are when a plan is carried out.
func daemonsAfter(v *engine.View, p *engine.Plan) map[string]*api.Daemon {
	after := v.DaemonsByName()
	for i := range p.Daemons {
		after[p.Daemons[i].Daemon.Name] = &p.Daemons[i].Daemon
	}
	for _, r := range p.Remove {
		delete(after, r.Name)
	}
	return after
}

func ofType(daemons map[string]*api.Daemon, kind string) (n int) {
	for _, d := range daemons {
		if d.Spec.Type == kind && d.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

func exported(daemons map[string]*api.Daemon, e *api.NFSExport) bool {
	for _, d := range daemons {
		served := strings.Fields(d.Spec.Parameters[ganesha.ParamExports])
		if d.Spec.Type == ganesha.Type && slices.Contains(served, e.PseudoOf()) {
			return true
		}
	}
	return false
}

func hasSecrets(v *engine.View, r api.Resource) bool {
	return !slices.ContainsFunc(secretsOf(r), func(name string) bool {
		return name != "" && !slices.ContainsFunc(v.Secrets, func(s engine.SecretInfo) bool { return s.Name == name })
	})
}

func secretsOf(r api.Resource) []string {
	switch x := r.(type) {
	case *api.Client:
		return []string{x.Status.Secret}
	case *api.ObjectStoreUser:
		return []string{x.Status.Secret}
	}
	return nil
}
