package engine

import (
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// risks are the risks from the lowest to the highest.
var risks = []api.Risk{api.RiskNone, api.RiskRestart, api.RiskRedundancy, api.RiskData}

// HigherRisk is the higher one of two risks; one that is not set counts as none.
func HigherRisk(a, b api.Risk) api.Risk {
	return risks[max(0, slices.Index(risks, a), slices.Index(risks, b))]
}

// RiskOfRemoval says what deleting a daemon does to data and service, as far as the Daemon itself tells: a device that it
// alone uses is wiped if its data is not to be kept.
func RiskOfRemoval(d *api.Daemon) api.Risk {
	switch {
	case d.Spec.OnRemoval == api.DeletionWipe && len(d.Spec.Devices) > 0:
		return api.RiskData
	case d.Spec.State == api.WantRunning:
		return api.RiskRedundancy
	}
	return api.RiskNone
}

// riskOfRemoval is RiskOfRemoval where nobody is left to wipe anything on a host that is gone.
func (v *View) riskOfRemoval(d *api.Daemon) api.Risk {
	if v.Gone[d.Spec.Host] {
		kept := *d
		kept.Spec.OnRemoval = api.DeletionRetain
		d = &kept
	}
	return RiskOfRemoval(d)
}

// riskOfChange says what giving a daemon another spec does. A running process is never restarted by it: what changes in its
// command and files counts from its next start.
func riskOfChange(have, want *api.DaemonSpec) api.Risk {
	if have.State == api.WantRunning && want.State != api.WantRunning {
		return api.RiskRedundancy
	}
	return api.RiskNone
}

// settleRisks returns a plan in which each risk is at least what the Daemons themselves tell. What a driver says of its own
// changes can raise a risk, and never lower it.
func settleRisks(v *View, p *Plan) *Plan {
	have := make(map[string]*api.Daemon, len(v.Daemons))
	for i := range v.Daemons {
		have[v.Daemons[i].Name] = &v.Daemons[i]
	}
	settled := *p
	settled.Daemons, settled.Remove = slices.Clone(p.Daemons), slices.Clone(p.Remove)
	for i := range settled.Daemons {
		if c := &settled.Daemons[i]; have[c.Daemon.Name] != nil {
			c.Risk = HigherRisk(c.Risk, riskOfChange(&have[c.Daemon.Name].Spec, &c.Daemon.Spec))
		}
	}
	for i := range settled.Remove {
		if r := &settled.Remove[i]; have[r.Name] != nil {
			r.Risk = HigherRisk(r.Risk, v.riskOfRemoval(have[r.Name]))
		}
	}
	return &settled
}

// Risk is the highest risk of the plan's changes.
func (p *Plan) Risk() api.Risk {
	risk := api.RiskNone
	for _, c := range p.Daemons {
		risk = HigherRisk(risk, c.Risk)
	}
	for _, r := range p.Remove {
		risk = HigherRisk(risk, r.Risk)
	}
	for _, c := range p.Commands {
		risk = HigherRisk(risk, c.Risk)
	}
	return risk
}
