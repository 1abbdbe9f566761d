package propose

import (
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// refusals are what the plan refuses. In a cluster that exists, a fault that is there already, such
// as a disk that failed, keeps nobody from changing something else.
func refusals(plan, present *engine.Plan) []string {
	known := map[string]bool{}
	if present != nil && !plan.Refused {
		for _, d := range present.Decisions {
			known[decisionText(d)] = true
		}
	}
	var all []string
	for _, d := range plan.Decisions {
		if d.Verdict == api.VerdictRefuse && !known[decisionText(d)] {
			all = append(all, decisionText(d))
		}
	}
	return all
}

// laterRefusals are what will be refused in the end, beside what is refused now: a driver may wait
// before it judges, such as for a StorageNode that comes back under another name. Something of
// which anything will be refused as things are is left out, whatever the words: they hold numbers
// that move.
func laterRefusals(p *engine.Projection, now []string, was func() *engine.Projection) []string {
	late := slices.DeleteFunc(refusals(p.Last, nil), func(text string) bool { return slices.Contains(now, text) })
	if len(late) == 0 {
		return nil // which is so most of the time, and spares the projection of the present
	}
	known := slices.Concat(refusals(was().First, nil), refusals(was().Last, nil))
	return slices.DeleteFunc(late, func(text string) bool {
		return slices.ContainsFunc(known, func(k string) bool { return refusedObject(k) == refusedObject(text) })
	})
}

// refusedObject is the object of a refusal's text.
func refusedObject(text string) string {
	object, _, _ := strings.Cut(text, ": ")
	return object
}
