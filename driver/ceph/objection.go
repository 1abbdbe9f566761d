package ceph

import (
	"fmt"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// objections are what is against a resource, or a part of it.
type objections []engine.Objection

// refuse adds what does not pass by itself.
func (l *objections) refuse(reason api.Reason, format string, args ...any) {
	*l = append(*l, engine.Refusal(reason, format, args...))
}

// wait adds what passes by itself.
func (l *objections) wait(reason api.Reason, format string, args ...any) {
	*l = append(*l, engine.Wait(reason, format, args...))
}

// add adds an objection, if it is one.
func (l *objections) add(o engine.Objection) {
	if !o.None() {
		*l = append(*l, o)
	}
}

// of are the objections to a part of what they are said of.
func (l objections) of(what string) (all objections) {
	for _, o := range l {
		o.Message = fmt.Sprintf("%s: %s", what, o.Message)
		all = append(all, o)
	}
	return all
}

// texts are the objections as sentences.
func (l objections) texts() (all []string) {
	for _, o := range l {
		all = append(all, o.Message)
	}
	return all
}

// object adds objections to the plan, as decisions about an object.
func (p *planner) object(object string, all ...engine.Objection) {
	for _, o := range all {
		p.plan.Object(object, o)
	}
}
