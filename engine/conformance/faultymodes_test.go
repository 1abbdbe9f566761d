package conformance

import (
	"slices"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// faultsOfModes are drivers that do wrong with what is asked for: modes of hosts, silence, and changes of what is declared.
var faultsOfModes = []fault{
	{"heeds maintenance", "stops without a word", spoiling(func(_ *engine.View, p *engine.Plan) {
		without(p, func(d api.Decision) bool { return strings.HasPrefix(d.Object, "host/") })
	}), "nothing is said of host"},
	{"heeds maintenance", "knows no maintenance", blind(func(h *api.Host) { h.Spec.Mode = "" }), "nothing is said of host"},
	{"heeds maintenance", "refuses all", refusing(api.HostMaintenance), "no host can be had in maintenance"},
	{"heeds maintenance", "lets all go", planning(func(v *engine.View, _ time.Time, plan func(*engine.View) *engine.Plan) *engine.Plan {
		x := *v
		x.Hosts = slices.Clone(v.Hosts)
		for i := range x.Hosts {
			if !slices.ContainsFunc(v.Hosts, func(h api.Host) bool { return h.ModeOf() == api.HostActive }) {
				x.Hosts[i].Spec.Mode = api.HostActive
			}
		}
		return plan(&x)
	}), "all hosts at once"},
	{"heeds maintenance", "waits for ever", spoiling(func(v *engine.View, p *engine.Plan) {
		for _, h := range v.Hosts {
			if h.ModeOf() == api.HostMaintenance {
				p.Done = false
				p.Decide(api.VerdictWait, api.ReasonUnknown, "host/"+h.Name, "the moon is not full yet")
			}
		}
	}), "there is no end to it"},
	{"judges restarts", "judges none", spoiling(func(_ *engine.View, p *engine.Plan) {
		without(p, func(d api.Decision) bool { return strings.HasPrefix(d.Object, "restart/") })
	}), "with no answer nothing is against"},
	{"judges restarts", "allows none", spoiling(func(v *engine.View, p *engine.Plan) {
		if v.Restart != "" {
			p.Decide(api.VerdictWait, api.ReasonUnknown, engine.RestartObject(v.Restart), "the moon is not full yet")
		}
	}), "cannot be started again"},
	{"judges restarts", "judges unasked", spoiling(func(_ *engine.View, p *engine.Plan) {
		p.Decide(api.VerdictWait, api.ReasonUnknown, engine.RestartObject("x"), "the moon is not full yet")
	}), "that was not requested"},
	{"heeds drains", "falls with a host", spoiling(func(v *engine.View, p *engine.Plan) {
		if slices.ContainsFunc(v.Hosts, func(h api.Host) bool { return h.ModeOf() == api.HostDrain }) {
			p.Done, p.Status.Status, p.Status.Message = false, api.StorageOffline, "a host is missing"
		}
	}), "the cluster is OFFLINE"},
	{"heeds drains", "knows no drains", blind(func(h *api.Host) { h.Spec.Mode = "" }), "nothing is said of host"},
	{"heeds drains", "refuses all", refusing(api.HostDrain), "(anchored: false), is refused"},
	{"tells silent agents nothing", "hears voices", blind(func(h *api.Host) { h.Status.Conditions = nil }), "is told to stop"},
	{"tells silent agents nothing", "does not speak of the silent", spoiling(func(v *engine.View, p *engine.Plan) {
		for _, h := range v.Hosts {
			if !h.AgentHeard() {
				without(p, func(d api.Decision) bool { return d.Object == "host/"+h.Name })
			}
		}
	}), "and whose agent is silent"},
	{"does no harm unknowing", "stops what it does not see", spoiling(func(v *engine.View, p *engine.Plan) {
		for _, d := range v.Daemons {
			if v.System == nil && d.Spec.State == api.WantRunning {
				d.Spec.State = api.WantStopped
				p.Daemons = append(p.Daemons, engine.DaemonChange{Daemon: d, Reason: "it is not seen"})
			}
		}
	}), "is told to stop"},
	{"does no harm unknowing", "gives up what it does not see", spoiling(func(v *engine.View, p *engine.Plan) {
		for _, d := range v.Daemons {
			if v.System == nil && d.Spec.OnRemoval != api.DeletionWipe {
				d.Spec.OnRemoval = api.DeletionWipe
				p.Daemons = append(p.Daemons, engine.DaemonChange{Daemon: d, Reason: "it is not seen"})
			}
		}
	}), "loses its data"},
	{"does no harm unknowing", "asks for harm", spoiling(func(v *engine.View, p *engine.Plan) {
		if len(v.Errors) > 0 {
			p.Commands = append(p.Commands, engine.Command{Verb: "purge", Object: "toy", Reason: "nobody answers", Risk: api.RiskData})
		}
	}), "purge toy: nobody answers"},
	{"does no harm unknowing", "takes silence for emptiness", spoiling(func(v *engine.View, p *engine.Plan) {
		if v.System == nil && len(v.Daemons) > 0 {
			p.Remove = append(p.Remove, engine.Removal{Name: v.Daemons[len(v.Daemons)-1].Name, Reason: "nobody needs it"})
		}
	}), "with no answer"},
	{"does no harm unknowing", "takes silence for consent", spoiling(func(v *engine.View, p *engine.Plan) {
		if v.System == nil {
			p.Status.Status = api.StorageOnline
		}
	}), "taken for well"},
	{"refuses with a reason", "refuses without a word", spoiling(func(_ *engine.View, p *engine.Plan) {
		without(p, func(d api.Decision) bool { return d.Verdict == api.VerdictRefuse })
	}), "is not refused"},
	{"refuses with a reason", "falls for a refusal", spoiling(func(v *engine.View, p *engine.Plan) {
		if len(v.Nodes) > 4 {
			p.Done, p.Status.Status, p.Status.Message = false, api.StorageOffline, "a node is wrong"
		}
	}), "the cluster is the worse for it"},
	{"lets nodes go", "falls with a node", spoiling(func(v *engine.View, p *engine.Plan) {
		if len(v.Nodes) == 3 {
			p.Done, p.Status.Status, p.Status.Message = false, api.StorageOffline, "a node is missing"
		}
	}), "the cluster is OFFLINE"},
	{"lets nodes go", "keeps what nobody wants", spoiling(func(v *engine.View, p *engine.Plan) {
		if len(v.Nodes) == 3 {
			p.Remove = nil
			without(p, func(d api.Decision) bool { return strings.HasPrefix(d.Object, "node/") })
		}
	}), "nothing is said of why"},
}
