package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/orch/answer"
	"github.com/holdfast-storage/holdfast/orch/apply"
	"github.com/holdfast-storage/holdfast/orch/spec"
	"github.com/holdfast-storage/holdfast/propose"
)

// askedFor is how long the storage system is waited for before an answer, and planWithin how long a
// plan may take with that. What is left of the time of a call is for its Action, at least toRecord.
const askedFor, planWithin, toRecord = 800 * time.Millisecond, 1200 * time.Millisecond, 600 * time.Millisecond

// unplanned is said of a call that was recorded while nobody could say whether it can be carried out.
const unplanned = "Ceph did not answer in time, so Holdfast has not checked whether this can be done; " +
	"the action fails if not"

// documents are the arguments of apply and plan.
type documents struct {
	Specs       []json.RawMessage `json:"specs"`
	Spec        json.RawMessage   `json:"spec"`
	NoOverwrite bool              `json:"no_overwrite"`
}

// all are the documents; plan calls its list spec.
func (d documents) all() []json.RawMessage {
	var list []json.RawMessage
	if d.Specs == nil && json.Unmarshal(d.Spec, &list) == nil {
		return list
	}
	return d.Specs
}

// applyAll declares all documents of a call, or none.
func applyAll(ctx context.Context, c *Call) (any, error) {
	args, err := read[documents](c)
	if err != nil {
		return nil, err
	}
	return c.apply(ctx, args.all(), args.NoOverwrite)
}

// applyOne declares one document.
func applyOne(ctx context.Context, c *Call) (any, error) {
	args, err := read[documents](c)
	if err != nil {
		return nil, err
	}
	words, err := c.apply(ctx, []json.RawMessage{args.Spec}, false)
	if err != nil {
		return nil, err
	}
	return strings.Join(words, "\n"), nil
}

// apply checks everything first, and then has an Action carry it out. Of a dry run nothing is
// written.
func (c *Call) apply(ctx context.Context, docs []json.RawMessage, noOverwrite bool) ([]string, error) {
	writes, err := spec.Writes(spec.Request{View: c.View, Docs: docs, NoOverwrite: noOverwrite})
	if err != nil {
		return nil, err
	}
	found, err := c.check(ctx, writes)
	if err != nil {
		return nil, err
	}
	if w := c.unchangedYet(writes, found.changes); w != nil && !spec.Preview(docs) {
		if err := c.awaitWritten(ctx, w.Service); err != nil {
			return nil, err
		}
		return c.apply(ctx, docs, noOverwrite)
	}
	words := append([]string{}, found.words...)
	if spec.Preview(docs) || len(found.changes) == 0 {
		return words, nil
	}
	parameters, err := apply.Parameters(found.changes, c.take())
	if err != nil {
		return nil, answer.Errorf("%v", err)
	}
	last := len(words) - 1
	words[last], err = c.start(ctx, c.applying(parameters), words[last], stepDone(apply.StepPersist))
	return words, err
}

// checked is what the API server and the planner say of a call.
type checked struct {
	// words are the answers, in the words of Ceph.
	words []string
	// changes are the writes that change something.
	changes  []spec.Write
	proposal *propose.Proposal
}

// check has the API server look at each object, and the planner at all of them together.
func (c *Call) check(ctx context.Context, writes []spec.Write) (*checked, error) {
	found, request := &checked{}, propose.Request{Operation: api.PlanApply}
	for _, w := range writes {
		if w.Answer != "" {
			found.words = append(found.words, strings.Join(append([]string{w.Answer}, w.Notes...), "\n"))
		}
		if w.Object == nil {
			continue
		}
		target, err := c.checkOne(ctx, w)
		if err != nil {
			return nil, err
		}
		if !same(target) {
			found.changes = append(found.changes, w)
			request.Targets = withTarget(request.Targets, target)
		}
	}
	if len(found.changes) == 0 {
		return found, nil
	}
	var err error
	if found.proposal, err = proposed(ctx, c.Home, request); err != nil {
		return nil, err
	}
	if found.proposal == nil {
		found.words = append(found.words, unplanned)
		return found, nil
	}
	if refused := append(found.proposal.Refused, found.proposal.Foreseen...); len(refused) > 0 {
		return nil, answer.Errorf("%s", strings.Join(refused, "; "))
	}
	return found, nil
}

// proposed is what would come of a request. It is nil where that is not known in time, as while Ceph's
// mgr starts: the condition of each resource says what cannot be done, and the Action fails with it.
func proposed(ctx context.Context, home Home, r propose.Request) (*propose.Proposal, error) {
	type answered struct {
		proposal *propose.Proposal
		err      error
		fault    any
	}
	most := planWithin
	if end, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(end)-toRecord)
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	said := make(chan answered, 1)
	go func() {
		defer cancel()
		defer func() {
			if fault := recover(); fault != nil {
				said <- answered{fault: fault}
			}
		}()
		p, err := home.Propose(ctx, r, askedFor)
		said <- answered{proposal: p, err: err}
	}()
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case a := <-said:
		if a.fault != nil {
			panic(a.fault) // it is one of this call
		}
		if a.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, nil
		}
		return a.proposal, a.err
	case <-late.C:
		return nil, nil
	}
}

func (c *Call) checkOne(ctx context.Context, w spec.Write) (t propose.Target, err error) {
	t = propose.Target{Unstructured: w.Object, After: w.Object.DeepCopy()}
	if t.Live, err = live(ctx, c.Client, w.Object); err != nil {
		return t, err
	}
	err = apply.Object(ctx, c.Client, t.After, w.Manager, c.take(), client.DryRunAll)
	var refusal *answer.Error
	if err != nil && !errors.As(err, &refusal) {
		return t, fmt.Errorf("%s: %w", w.Service, err)
	}
	return t, err
}

// same says whether an object stays as it is, whoever applied it.
func same(t propose.Target) bool {
	if t.Live == nil {
		return false
	}
	meta := func(u *unstructured.Unstructured) []any { return []any{u.GetLabels(), u.GetAnnotations()} }
	return reflect.DeepEqual(t.Live.Object["spec"], t.After.Object["spec"]) &&
		reflect.DeepEqual(meta(t.Live), meta(t.After))
}

// withTarget adds a target. Several documents may be about one object, such as those of mons and of
// mgrs, and none of these knows of the others: what each sets is put together.
func withTarget(all []propose.Target, t propose.Target) []propose.Target {
	for i := range all {
		if all[i].GroupVersionKind() == t.GroupVersionKind() && all[i].GetName() == t.GetName() {
			all[i].After.Object = merge(all[i].After.Object, t.Unstructured.Object)
			return all
		}
	}
	return append(all, t)
}

// merge puts what a document sets over an object.
func merge(over, with map[string]any) map[string]any {
	for key, value := range with {
		inner, isMap := value.(map[string]any)
		if old, was := over[key].(map[string]any); isMap && was {
			over[key] = merge(old, inner)
		} else {
			over[key] = value
		}
	}
	return over
}
