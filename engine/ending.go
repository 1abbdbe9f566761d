package engine

import (
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Ending is how the daemons of a deleted cluster go. Nothing is moved away before: all of it ends.
type Ending struct {
	// Object names a daemon in decisions.
	Object func(*api.Daemon) string
	// Data says whether a daemon of this type has data of its own.
	Data func(daemonType string) bool
	// Order lists types that go one after the other, after all other types; nil has all daemons go at once.
	Order []string
}

// End plans the end of a deleted cluster: first all daemons learn what becomes of their data, in a plan of its own, because the
// agents must not see a removal before they see this; then they go; then the cluster is finished.
func (p *Plan) End(v *View, e Ending) {
	text := "the cluster is being deleted"
	if group := e.next(v.Daemons); len(group) == 0 {
		p.Finished = true
	} else if !p.tellPolicy(v, e) {
		text = fmt.Sprintf("the cluster is being deleted: waiting for the removal of %s",
			words.Plural(len(group), e.noun(group[0])))
		p.removeAll(v.Cluster.PolicyOf(), group, e)
	}
	p.Status = api.StorageStatusStatus{Type: v.Cluster.Spec.Type, Status: api.StorageOffline, Message: text, Reasons: []string{text}}
}

func (e Ending) noun(d *api.Daemon) string {
	if e.Order == nil {
		return "daemon"
	}
	return d.Spec.Type + " daemon"
}

// next are the daemons that go now.
func (e Ending) next(daemons []api.Daemon) []*api.Daemon {
	groups := make([][]*api.Daemon, 1+len(e.Order))
	for i := range daemons {
		g := 1 + slices.Index(e.Order, daemons[i].Spec.Type)
		groups[g] = append(groups[g], &daemons[i])
	}
	for _, group := range groups {
		if len(group) > 0 {
			return group
		}
	}
	return nil
}

func (p *Plan) tellPolicy(v *View, e Ending) (changed bool) {
	hosts := v.HostsByName()
	for i := range v.Daemons {
		d := &v.Daemons[i]
		if d.DeletionTimestamp != nil || !e.Data(d.Spec.Type) { // one that is going already has been told
			continue
		}
		want := d.DeepCopy()
		want.Spec.OnRemoval = PolicyOn(v.Cluster, hosts[d.Spec.Host])
		changed = p.bring(api.ReasonDeleting, e.Object(d), d, want, "") || changed
	}
	return changed
}

func (p *Plan) removeAll(policy api.DeletionPolicy, daemons []*api.Daemon, e Ending) {
	for _, d := range daemons {
		if d.DeletionTimestamp != nil {
			p.Decide(api.VerdictWait, api.ReasonDeleting, e.Object(d), "being removed from host %s", d.Spec.Host)
			continue
		}
		risk := api.RiskRedundancy
		if e.Data(d.Spec.Type) && d.Spec.OnRemoval == api.DeletionWipe {
			risk = api.RiskData // of what is not on a device the engine knows nothing
		}
		p.Remove = append(p.Remove, Removal{Name: d.Name, Reason: "the cluster is being deleted", Risk: risk})
		p.Decide(api.VerdictDo, api.ReasonDeleting, e.Object(d), "removed from host %s: the cluster is being deleted (deletionPolicy %s)", d.Spec.Host, policy)
	}
}

// DaemonObject is the Object of a decision about a daemon, for systems that have no name of their own for it.
func DaemonObject(d *api.Daemon) string { return "daemon/" + d.Name }
