package why

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/health"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// more answers for what is no object of the API and yet has a name that people know: from 'holdfast status', or from
// the storage system.
func more(w *World, object string) (Answer, bool) {
	for _, answer := range []func(*World, string) (Answer, bool){
		planNamed, quorum, checkOfCode, placementGroup, poolInCeph, decisionNamed, daemonType, clusterWord,
	} {
		if a, known := answer(w, object); known {
			return a, true
		}
	}
	return Answer{}, false
}

// things are the kinds of decisions on what is there, though it is no object of the API.
var things = []string{"flag", "rule", "crush", "mgr", "outside", "device", "config", "secret", "service", "check"}

// decisionNamed answers for a thing that a report has decided on, with or without its kind.
func decisionNamed(w *World, object string) (Answer, bool) {
	names := []string{object}
	if !strings.Contains(object, "/") {
		for _, kind := range things {
			names = append(names, kind+"/"+object)
		}
	}
	d, of := w.decisionOn(names...)
	if d == nil {
		return Answer{}, false
	}
	kind, name, _ := strings.Cut(d.Object, "/")
	if !slices.Contains(things, kind) {
		return Answer{}, false
	}
	a := decided(join(upper(kind)+" "+name, d.Message), d, of)
	if kind == "flag" {
		a.Next = sentence(health.UnsetAll([]string{name}))
	}
	return a, true
}

// daemonType answers for all daemons of a type, by the word that 'holdfast status' counts them with: osd.
func daemonType(w *World, object string) (Answer, bool) {
	var bad []*api.Daemon
	total := 0
	for i := range w.Daemons {
		d := &w.Daemons[i]
		if short, _, _ := strings.Cut(ShortName(d), "."); short != object && d.Spec.Type != object {
			continue
		}
		if total++; !asWanted(d) || onSilent(w, d) {
			bad = append(bad, d)
		}
	}
	switch {
	case total == 0:
		return Answer{}, false
	case len(bad) == 0:
		return answered(fmt.Sprintf("%s of type %s are in their desired state.", words.Plural(total, "daemon"),
			object), ""), true
	}
	a := w.daemon(bad[0])
	text := fmt.Sprintf("%d of %d daemons of type %s are not in their desired state", len(bad), total, object)
	return answered(join(text, a.Text), a.Next).because(a.Reason), true
}

// clusterWord answers for a word that 'holdfast status' has of a cluster's state, such as HEALTH_WARN.
func clusterWord(w *World, object string) (Answer, bool) {
	for i := range w.Statuses {
		s := &w.Statuses[i]
		if object == "" || object != s.Status.Health && object != string(s.Status.Status) {
			continue
		}
		for j := range w.Clusters {
			if w.Clusters[j].Name == s.Name {
				return w.cluster(&w.Clusters[j]), true
			}
		}
	}
	return Answer{}, false
}

// heldByOther answers for an object that is deleted as far as Holdfast goes, and is kept by somebody else's finalizer.
func heldByOther(kind string, o metav1.Object) (Answer, bool) {
	ours := func(f string) bool { return strings.HasPrefix(f, api.Group+"/") }
	if o.GetDeletionTimestamp() == nil || len(o.GetFinalizers()) == 0 || slices.ContainsFunc(o.GetFinalizers(), ours) {
		return Answer{}, false
	}
	finalizer := o.GetFinalizers()[0]
	return answered(
		fmt.Sprintf("The %s is being deleted, and Holdfast has nothing more to do for it: finalizer %s, which is not "+
			"Holdfast's, keeps the object.", kind, strings.Join(o.GetFinalizers(), ", ")),
		fmt.Sprintf(`have the program that set %s remove it; when that program is gone, run kubectl patch %s %s `+
			`--type merge -p '{"metadata":{"finalizers":null}}'.`, finalizer, kind, o.GetName()),
	).because(api.ReasonForeignFinalizer), true
}
