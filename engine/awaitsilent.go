package engine

import (
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// awaitSilent says of the hosts whose agents are silent and have to clean up what the cluster waits for, and the way out: a daemon is
// gone when its agent says so, and that of a machine that is lost never will.
func awaitSilent(v *View, p *Plan) {
	leaving := map[string][]string{}
	for i := range v.Daemons {
		d := &v.Daemons[i]
		if d.DeletionTimestamp != nil || removes(p, d.Name) {
			leaving[d.Spec.Host] = append(leaving[d.Spec.Host], d.Name)
		}
	}
	var texts []string
	for _, host := range silentHosts(v) {
		if names := leaving[host]; len(names) > 0 {
			texts = append(texts, silenceText(v, host, names))
		}
	}
	var waits []api.Decision
	for _, text := range texts {
		waits = append(waits, api.Decision{
			Object: "cluster/" + v.Cluster.Name, Verdict: api.VerdictWait, Reason: api.ReasonAgentDisconnected, Message: text,
		})
	}
	p.Decisions = append(waits, p.Decisions...)
	if len(texts) > 0 && v.Cluster.DeletionTimestamp != nil {
		p.Status.Message = words.Cut("the cluster is being deleted, and "+texts[0], maxDecisionMessage)
		p.Status.Reasons = append([]string{p.Status.Message}, p.Status.Reasons...)
	}
}

func silenceText(v *View, host string, names []string) string {
	command := "holdfast host remove " + host + " --gone"
	if slices.ContainsFunc(v.Nodes, func(n api.StorageNode) bool { return n.Status.Host == host }) {
		command += " --delete-nodes"
	}
	return fmt.Sprintf("the removal of %s waits: the agent of host %s is disconnected; start the machine. If it "+
		"is gone for good, run '%s', which does not wipe its disks", words.Few(names), host, command)
}
