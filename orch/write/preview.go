package write

import (
	"context"
	"slices"
	"strings"
	"syscall"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/orch/answer"
	"github.com/holdfast-storage/holdfast/orch/spec"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// Rows of a dry run, as generate_preview_tables of Ceph's package orchestrator reads them.
type (
	// serviceRow tells on which hosts daemons of a service come and go.
	serviceRow struct {
		Type   string   `json:"service_type"`
		Name   string   `json:"service_name"`
		Add    []string `json:"add"`
		Remove []string `json:"remove"`
	}
	// osdRow tells what becomes of disks, by host.
	osdRow struct {
		Type string                `json:"service_type"`
		Data map[string][]osdGroup `json:"data"`
	}
	osdGroup struct {
		Spec  string   `json:"osdspec"`
		Data  []osd    `json:"data"`
		Notes []string `json:"notes,omitempty"`
	}
	osd struct {
		Data string `json:"data"`
		DB   string `json:"block_db,omitempty"`
		WAL  string `json:"block_wal,omitempty"`
	}
	warningRow struct {
		Warning string `json:"warning"`
	}
)

// preview says what would come of documents, and changes nothing.
func preview(ctx context.Context, c *Call) (any, error) {
	args, err := read[documents](c)
	if err != nil {
		return nil, err
	}
	writes, err := spec.Writes(spec.Request{View: c.View, Docs: args.all(), NoOverwrite: args.NoOverwrite})
	if err != nil {
		return nil, err
	}
	found, err := c.check(ctx, writes)
	if err != nil {
		return nil, err
	}
	rows := []any{}
	if found.proposal == nil && len(found.changes) > 0 {
		return nil, &answer.Error{
			Errno:   -int(syscall.EAGAIN),
			Message: "the effect is unknown: Ceph did not answer in time; try again, or use 'holdfast plan'",
		}
	}
	if found.proposal == nil {
		return append(rows, warningRow{"nothing would change\n"}), nil
	}
	for _, w := range writes {
		rows = append(rows, rowOf(w, found.proposal.Report.Changes))
	}
	for _, note := range notes(found, writes) {
		rows = append(rows, warningRow{note + "\n"})
	}
	return rows, nil
}

// notes are what whoever applies this has to know.
func notes(found *checked, writes []spec.Write) (all []string) {
	for _, w := range writes {
		all = append(all, w.Notes...)
	}
	for _, silence := range found.proposal.Silent {
		all = append(all, "Ceph did not answer in time, so this may be incomplete: "+silence)
	}
	for _, c := range found.proposal.Report.Changes {
		if c.Risk != "" && c.Risk != api.RiskNone && c.Verb != plans.VerbApply && c.Reason != "" {
			all = append(all, string(c.Risk)+": "+c.Object+": "+c.Reason)
		}
	}
	all = append(all, found.proposal.Early...)
	all = append(all, found.proposal.Hostless...)
	const most = 20
	return all[:min(len(all), most)]
}

// rowOf is the row of a service.
func rowOf(w spec.Write, changes []plans.Change) any {
	kind, id, _ := strings.Cut(w.Service, ".")
	if kind == "osd" {
		return osdRow{kind, osdsOf(id, changes)}
	}
	row := serviceRow{kind, w.Service, []string{}, []string{}}
	for _, c := range changes {
		if !concerns(c, kind, id) {
			continue
		}
		switch c.Verb {
		case plans.VerbCreate:
			row.Add = with(row.Add, c.Host)
		case plans.VerbRemove:
			row.Remove = with(row.Remove, c.Host)
		}
	}
	return row
}

func with(hosts []string, host string) []string {
	if slices.Contains(hosts, host) {
		return hosts
	}
	return append(hosts, host)
}

// concerns says whether a change is of a daemon of a service.
func concerns(c plans.Change, kind, id string) bool {
	of, daemon, _ := strings.Cut(c.Label, ".")
	return of == kind && (id == "" || daemon == id || strings.HasPrefix(daemon, id+"-"))
}

// osdsOf are the OSDs that would be made, by host.
func osdsOf(group string, changes []plans.Change) map[string][]osdGroup {
	hosts := map[string][]osdGroup{}
	for _, c := range changes {
		if c.Verb != plans.VerbCreate || len(c.Devices) == 0 || !strings.HasPrefix(c.Label, "osd.") {
			continue
		}
		if len(hosts[c.Host]) == 0 {
			hosts[c.Host] = []osdGroup{{Spec: group}}
		}
		made := osd{Data: c.Devices[0].String()}
		for _, d := range c.Devices[1:] {
			made.DB = d.String()
		}
		g := &hosts[c.Host][0]
		g.Data = append(g.Data, made)
	}
	return hosts
}
