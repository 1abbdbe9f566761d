package engine

import (
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// twinHosts says of which hosts of the cluster two machines run.
func twinHosts(v *View) []string {
	used := v.UsedHosts()
	var texts []string
	for i := range v.Hosts {
		if text, twins := v.Hosts[i].Twins(); twins && used[v.Hosts[i].Name] {
			texts = append(texts, "host/"+v.Hosts[i].Name+": "+text)
		}
	}
	return texts
}

// awaitTwins says of the hosts on which two machines run that nothing new is started there, and the way out.
func awaitTwins(v *View, p *Plan) {
	used := v.UsedHosts()
	var waits []api.Decision
	for i := range v.Hosts {
		h := &v.Hosts[i]
		if text, twins := h.Twins(); twins && used[h.Name] {
			waits = append(waits, api.Decision{
				Object: "host/" + h.Name, Verdict: api.VerdictWait, Reason: api.ReasonTwoMachines,
				Message: text + "; running daemons keep running, nothing new starts on either; stop the agent on the wrong " +
					"machine ('systemctl disable --now holdfast')",
			})
		}
	}
	p.Decisions = append(waits, p.Decisions...)
}
