package plans_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// TestWrite shows reports of changes that a line each describes:
//
//	VERB KIND.ID-LAST [host=H | host=H1-N] [step=N] [state=S] [device=MODEL/SIZE] [risk=R] [reason=TEXT]
//	object NAME [FIELD=OLD>NEW …]
//	note TEXT
//
// A range of hosts takes the daemons in turn.
func TestWrite(t *testing.T) {
	datadriven.RunTest(t, "testdata/text.txt", func(t *testing.T, d *datadriven.TestData) string {
		r := plans.Report{Notes: map[string][]string{}}
		for _, arg := range d.CmdArgs {
			if arg.Key == "cluster" {
				r.Clusters = arg.Vals
			}
		}
		for line := range strings.Lines(d.Input) {
			addLine(t, &r, strings.TrimSpace(line))
		}
		var b bytes.Buffer
		r.Write(&b)
		return b.String()
	})
}

func addLine(t *testing.T, r *plans.Report, line string) {
	t.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	words := strings.Fields(rest)
	switch verb {
	case "note":
		r.Notes[r.Clusters[0]] = append(r.Notes[r.Clusters[0]], rest)
	case "object":
		c := plans.Change{Verb: plans.VerbApply, Object: words[0], Reason: "changed"}
		for _, w := range words[1:] {
			path, values, _ := strings.Cut(w, "=")
			from, to, _ := strings.Cut(values, ">")
			c.Fields = append(c.Fields, plans.FieldChange{Path: path, Old: strings.ReplaceAll(from, "~", "(unset)"), New: to})
		}
		r.Changes = append(r.Changes, c)
	default:
		addDaemons(t, r, verb, words[0], options(words[1:]))
	}
}

func options(words []string) map[string]string {
	o := map[string]string{"step": "1"}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		o[key] = strings.ReplaceAll(value, "_", " ")
	}
	return o
}

func addDaemons(t *testing.T, r *plans.Report, verb, names string, o map[string]string) {
	t.Helper()
	kind, ids, _ := strings.Cut(names, ".")
	var first, last, hosts, step int
	labels := []string{names}
	if n, _ := fmt.Sscanf(ids, "%d-%d", &first, &last); n == 2 && verb != plans.VerbCommand {
		labels = nil
		for i := first; i <= last; i++ {
			labels = append(labels, fmt.Sprintf("%s.%d", kind, i))
		}
	}
	if _, err := fmt.Sscan(o["step"], &step); err != nil {
		t.Fatal(err)
	}
	if n, _ := fmt.Sscanf(o["host"], "h1-%d", &hosts); n != 1 {
		hosts = 1
	}
	for i, label := range labels {
		c := plans.Change{
			Cluster: r.Clusters[0], Step: step, Verb: verb, Object: "daemon/c-" + label, Label: label, Host: o["host"],
			State: api.WantedState(o["state"]), Risk: api.Risk(o["risk"]), Reason: o["reason"],
		}
		if verb == plans.VerbCommand {
			c.Object, c.Label = "osd new", strings.ReplaceAll(label, ",", ", ")
		}
		if hosts > 1 {
			c.Host = fmt.Sprintf("h%02d", 1+i%hosts)
		}
		if model, size, ok := strings.Cut(o["device"], "/"); ok {
			c.Devices = []plans.Device{{ID: fmt.Sprintf("wwn-%d", i), Model: model, Serial: fmt.Sprintf("S%d", i), Size: size}}
		}
		r.Changes = append(r.Changes, c)
	}
}
