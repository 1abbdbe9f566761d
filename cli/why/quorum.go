package why

import (
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// quorum answers for the mons of the clusters.
func quorum(w *World, object string) (Answer, bool) {
	if object != "quorum" && object != "mons" {
		return Answer{}, false
	}
	var all []Answer
	for i := range w.Statuses {
		if s := &w.Statuses[i]; s.Status.Ceph != nil {
			all = append(all, quorumOf(w, s))
		}
	}
	if len(all) == 0 {
		return Answer{}, false
	}
	i := max(0, slices.IndexFunc(all, func(a Answer) bool { return a.Reason != "" }))
	return all[i], true
}

// quorumOf says which mons of a cluster are in the quorum.
func quorumOf(w *World, s *api.StorageStatus) Answer {
	var in, out []string
	for i := range w.Daemons {
		d := &w.Daemons[i]
		if d.Spec.Cluster != s.Name || d.Spec.Type != "ceph-mon" {
			continue
		}
		if slices.Contains(s.Status.Ceph.Quorum, d.Spec.ID) {
			in = append(in, ShortName(d))
		} else {
			out = append(out, ShortName(d))
		}
	}
	total := len(in) + len(out)
	switch {
	case s.Status.StaleSince != nil:
		return answered(fmt.Sprintf("The mons of cluster %s have no quorum, or do not answer: Ceph has not answered "+
			"since %s.",
			s.Name, s.Status.StaleSince.UTC().Format("2006-01-02T15:04:05Z")), brokenMon(w,
			s.Name)).because(api.ReasonNotAnswering)
	case len(out) > 0:
		text := fmt.Sprintf("%d of %d mons of cluster %s are in the quorum: %s; not in it: %s. It needs %d.",
			len(in), total, s.Name, words.Few(in), words.Few(out), total/2+1)
		return answered(text, fmt.Sprintf("run 'holdfast why %s'.", out[0])).because(api.ReasonQuorumAtRisk)
	}
	return answered(fmt.Sprintf("All %d mons of cluster %s are in the quorum: %s.", total, s.Name, words.Few(in)), "")
}

// brokenMon is the next step where the mons have no quorum: the first that does not run.
func brokenMon(w *World, cluster string) string {
	name := ""
	for i := range w.Daemons {
		d := &w.Daemons[i]
		if d.Spec.Cluster != cluster || d.Spec.Type != "ceph-mon" {
			continue
		}
		if !asWanted(d) || onSilent(w, d) {
			return fmt.Sprintf("run 'holdfast why %s'; when the hosts of most mons are gone for good, 'holdfast ceph "+
				"recover-mons' makes a quorum of what is left.", ShortName(d))
		}
		name = ShortName(d)
	}
	if name == "" {
		return "run 'holdfast status'."
	}
	return fmt.Sprintf("all its mons run: check the network between their hosts, and run 'holdfast why %s'.", name)
}

// onSilent says whether the agent of a daemon's host is silent.
func onSilent(w *World, d *api.Daemon) bool {
	return slices.ContainsFunc(w.Hosts, func(h api.Host) bool { return h.Name == d.Spec.Host && silent(&h) != nil })
}
