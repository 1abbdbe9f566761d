package propose

import (
	"cmp"
	"fmt"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// addSilence says why a storage system that decides what happens does not answer, or did not answer
// everything. Where there is no word of it at all that is noted: nobody knows then what comes of
// this. What becomes of a cluster that is deleted, or that nothing is done to, it does not decide.
func (p *Proposal) addSilence(driver engine.Driver, view *engine.View, failed error) string {
	if view.Cluster.DeletionTimestamp != nil || view.Cluster.ModeOf() != api.ClusterActive {
		return ""
	}
	why, partly := driver.Unanswered(view), ""
	if failed != nil {
		partly = failed.Error()
	}
	if why != "" || failed != nil && view.System == nil {
		cluster := plans.ObjectName(engine.KindCluster, view.Cluster.Namespace, view.Cluster.Name)
		p.Silent[cluster] = fmt.Sprintf("%s of %s does not answer (%s)", view.Cluster.Spec.Type, cluster, cmp.Or(partly, why))
		p.Basis.AddSilence(cluster)
		p.Report.Unknown = true
	}
	return cmp.Or(partly, why)
}
