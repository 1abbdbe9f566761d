package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/holdfast-storage/holdfast/agent/facts"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/absence"
	"github.com/holdfast-storage/holdfast/internal/words"
)

func dash(s string) string { return cmp.Or(s, "-") }

func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

func modeText(h *api.Host) string { return string(h.ModeOf()) }

// agentText says whether the agent is heard, and else since when not.
func agentText(h *api.Host, now time.Time) string {
	c := meta.FindStatusCondition(h.Status.Conditions, api.HostAgentConnected)
	switch _, twins := h.Twins(); {
	case twins:
		return "on two machines"
	case c == nil:
		return "not connected yet"
	case meta.IsStatusConditionTrue(h.Status.Conditions, api.HostAgentConnected):
		return "Connected"
	}
	text := "disconnected for " + duration.HumanDuration(now.Sub(c.LastTransitionTime.Time))
	if reason := absence.Reason(h); reason != api.ReasonAgentDisconnected {
		text += fmt.Sprintf(" (%s)", reason)
	}
	return text
}

func ageText(h *api.Host, now time.Time) string {
	return duration.HumanDuration(now.Sub(h.CreationTimestamp.Time))
}

// locationOf is where the host is, the largest failure domain first.
func locationOf(h *api.Host) string {
	var parts []string
	for _, label := range slices.Backward(api.LocationLabels()) {
		if v := h.Labels[label]; v != "" {
			parts = append(parts, v)
		}
	}
	return strings.Join(parts, "/")
}

// daemonsText is how many daemons run, of all.
func (s *hostSet) daemonsText(h *api.Host) string {
	running, all := 0, 0
	for i := range s.daemons {
		if d := &s.daemons[i]; d.Spec.Host == h.Name {
			all++
			if d.Status.State == api.DaemonRunning {
				running++
			}
		}
	}
	return fmt.Sprintf("%d/%d", running, all)
}

func (s *hostSet) clustersText(h *api.Host) string {
	names := map[string]bool{}
	for i := range s.daemons {
		if s.daemons[i].Spec.Host == h.Name {
			names[s.daemons[i].Spec.Cluster] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), ",")
}

func printValue(w io.Writer, v any, output string) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if output != "yaml" {
		data = []byte(words.JSON(string(data)) + "\n")
	} else if data, err = words.JSONToYAML(data); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// describeHost writes all that a person who looks after a host wants to know.
func describeHost(w io.Writer, on *engine.HostView, actions []api.Action, now time.Time) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { fmt.Fprintln(tw, cellsOf(cells)) }
	h := on.Host
	row("Name:", h.Name)
	row("Mode:", strings.TrimSuffix(modeText(h)+": "+h.Spec.Reason, ": "))
	row("Agent:", strings.TrimSuffix(agentText(h, now)+", version "+h.Status.AgentVersion, ", version "))
	row("Addresses:", dash(strings.Join(h.Status.Addresses, ", ")))
	row("Location:", dash(locationOf(h)))
	row("Machine:", dash(facts.Line(h.Status.Facts)))
	for _, k := range slices.Sorted(maps.Keys(h.Labels)) {
		row("Label:", k+"="+h.Labels[k])
	}
	for i := range h.Status.Devices {
		d := &h.Status.Devices[i]
		row("Device:", d.Path, d.Size.String(), string(d.Availability), d.ID, strings.Join(d.Reasons, "; "))
	}
	for i := range on.Nodes {
		n := &on.Nodes[i]
		row("StorageNode:", n.Namespace+"/"+n.Name, string(n.Spec.Type), few(n.Spec.Devices))
	}
	for i := range on.Daemons {
		l := daemonLine(&on.Daemons[i])
		row("Daemon:", on.Daemons[i].Name, "wanted "+string(on.Daemons[i].Spec.State), l.State, l.Detail)
	}
	for i := range actions {
		a := &actions[i]
		row("Action:", a.Name, a.Spec.Kind, string(a.Status.State), a.Status.Message)
	}
	return tw.Flush()
}

// few lists names, not more than a line bears.
func few(names []string) string {
	const most = 4
	if n := len(names); n > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return strings.Join(names, ", ")
}
