package hosts

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// obstacles are what all guards say of the host.
func (j *job) obstacles(ctx context.Context) ([]Obstacle, error) {
	var all []Obstacle
	for _, guard := range j.Guards {
		found, err := guard(ctx, j.Host)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func waitsOf(all []Obstacle) []string {
	var texts []string
	for _, o := range all {
		texts = append(texts, o.Wait)
	}
	return texts
}

// maySwitchOff refuses what would end in a machine that must not be switched off, with all that is against it.
func (j *job) maySwitchOff(ctx context.Context) error {
	var reasons []string
	var storage *refusal
	if err := j.allow(ctx, api.HostMaintenance); errors.As(err, &storage) {
		reasons = append(reasons, storage.text)
	} else if err != nil {
		return err
	}
	beside, err := j.offRefusals(ctx)
	if reasons = append(reasons, beside...); len(reasons) > 0 {
		return refuse("%s", strings.Join(reasons, "; "))
	}
	return err
}

// offRefusals say why nothing would take the host's place in what is no storage. Who has one server has chosen that nothing can be changed while
// it is off, and is told so.
func (j *job) offRefusals(ctx context.Context) (reasons []string, err error) {
	if only, err := j.onlyServer(ctx); only || err != nil {
		return nil, err
	}
	all, err := j.obstacles(ctx)
	for _, o := range all {
		if o.Refusal != "" {
			reasons = append(reasons, o.Refusal)
		}
	}
	return reasons, err
}

// offText says what the end of the action means for the machine: a sentence to add, or what is waited for before it may be switched off.
func (j *job) offText(ctx context.Context) (says string, waitsFor []string, err error) {
	only, err := j.onlyServer(ctx)
	if err != nil {
		return "", nil, err
	}
	if only {
		return fmt.Sprintf(". It is the only server: while it is off, you cannot change anything. Before you retire it, "+
			"join another server ('holdfast token create --role server') and run 'holdfast host remove %s'",
			j.Host.Name), nil, nil
	}
	all, err := j.obstacles(ctx)
	return "", waitsOf(all), err
}

// onlyServer says whether the host is a server, and no other one is.
func (j *job) onlyServer(ctx context.Context) (bool, error) {
	if _, server := j.Host.Labels[api.LabelServer]; !server {
		return false, nil
	}
	all, err := j.Store.Hosts(ctx)
	for i := range all {
		if _, server := all[i].Labels[api.LabelServer]; server && all[i].Name != j.Host.Name {
			return false, err
		}
	}
	return true, err
}

// mayBeOff has maintenance end when the machine may be switched off.
func (j *job) mayBeOff(ctx context.Context, p action.Progress) (action.Progress, error) {
	says, waitsFor, err := j.offText(ctx)
	if err != nil || len(waitsFor) == 0 {
		p.Message += says
		return p, err
	}
	p.Done, p.WaitsFor = false, strings.Join(waitsFor, "; ")
	p.Message = "its daemons are stopped; do not power it off yet"
	return p, nil
}

// isEmpty says that a host is drained, and where it is a server what that means for the machine: draining is done anyway.
func (j *job) isEmpty(ctx context.Context) (string, error) {
	says, waitsFor, err := j.offText(ctx)
	if err != nil || len(waitsFor) == 0 {
		return fmt.Sprintf("host %s is drained%s", j.Host.Name, says), err
	}
	return fmt.Sprintf("host %s is drained. Do not power it off yet: waiting for %s",
		j.Host.Name, strings.Join(waitsFor, "; ")), nil
}
