// Package waits holds the times for which Holdfast waits so that people, machines and networks can come
// back: a short absence triggers nothing. They are settings, so that tests and labs need not wait them out.
//
//go:generate go run ./internal/waitsdoc ../../docs/reference/waits.md
package waits

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Variable is the environment variable that sets waits, in the form that Parse reads.
const Variable = "HOLDFAST_WAITS"

// Waits are all of them. A field that is zero means its default, see OrDefault; List has what each is
// for. Deadlines of calls, intervals of polling and pauses before something is tried again are none of
// them.
type Waits struct {
	// AgentSilent is read by platform/bare, for the condition AgentConnected of Hosts.
	AgentSilent time.Duration
	// HostDead is read by engine/hosts, for hosts that are said to be gone.
	HostDead time.Duration
	// ActionLost is read by action, for actions that agents carry out.
	ActionLost time.Duration

	// NodeGone is read by driver/ceph, for hosts without a StorageNode.
	NodeGone time.Duration
	// ReplicaLost and ReplicaSteady are read by driver/ceph, for daemons that can stand in for each other.
	ReplicaLost, ReplicaSteady time.Duration
	// MonJoin, MonSlow, MonSteady and MonAvoid are read by driver/ceph, for mons on their way in.
	MonJoin, MonSlow, MonSteady, MonAvoid time.Duration
	// OSDBack is read by driver/ceph, for OSDs of hosts that have left maintenance.
	OSDBack time.Duration
	// DaemonFresh is read by driver/ceph, for mons and OSDs that Ceph does not see yet.
	DaemonFresh time.Duration
	// RestartBack and RestartEnd are read by driver/ceph, for daemons whose restart was asked for.
	RestartBack, RestartEnd time.Duration

	// BrickLost, BrickStart and BrickHeal are read by driver/gluster, for bricks.
	BrickLost, BrickStart, BrickHeal time.Duration
	// GlusterBack is read by driver/gluster, for nodes that were started.
	GlusterBack time.Duration
}

// Wait is one of them, as people set it.
type Wait struct {
	Name    string
	Default time.Duration
	// Meaning says what is waited for.
	Meaning string

	field func(*Waits) *time.Duration
}

// List says all that there are.
func List() []Wait {
	return []Wait{
		{"agentSilent", 15 * time.Second,
			"An agent is not heard for so long before it counts as silent. Agents are heard every 5 s, so " +
				"that two of their beats may be lost.",
			func(w *Waits) *time.Duration { return &w.AgentSilent }},
		{"hostDead", 2 * time.Minute,
			"A host that is said to be gone is silent for so long before its daemons are let go without its " +
				"word, and heard for so long before it is believed to be back.",
			func(w *Waits) *time.Duration { return &w.HostDead }},
		{"actionLost", 2 * time.Minute,
			"An agent may end an action for so long after the action's time, before the action counts as " +
				"lost.",
			func(w *Waits) *time.Duration { return &w.ActionLost }},
		{"nodeGone", 30 * time.Second,
			"Ceph: a host has no StorageNode for so long before anything leaves it. A StorageNode that gets " +
				"another name is gone for a moment.",
			func(w *Waits) *time.Duration { return &w.NodeGone }},
		{"replicaLost", time.Minute,
			"Ceph: the host of a missing mgr, MDS, gateway or the like is silent for so long before another " +
				"one takes its place.",
			func(w *Waits) *time.Duration { return &w.ReplicaLost }},
		{"replicaSteady", 5 * time.Minute,
			"Ceph: a host that was silent is heard for so long before the one that took the place of its own " +
				"goes. Of a host that comes and goes it would move back and forth.",
			func(w *Waits) *time.Duration { return &w.ReplicaSteady }},
		{"monJoin", 5 * time.Minute,
			"Ceph: a new mon whose daemon fails may take so long to join before it is given up.",
			func(w *Waits) *time.Duration { return &w.MonJoin }},
		{"monSlow", 3 * time.Minute,
			"Ceph: a new mon that runs may take so long to join before it is told what may keep it out.",
			func(w *Waits) *time.Duration { return &w.MonSlow }},
		{"monSteady", time.Minute,
			"Ceph: a new mon that was started again and again runs for so long before that counts no more.",
			func(w *Waits) *time.Duration { return &w.MonSteady }},
		{"monAvoid", time.Hour,
			"Ceph: no mon is made for so long on a host where one kept failing.",
			func(w *Waits) *time.Duration { return &w.MonAvoid }},
		{"osdBack", 10 * time.Minute,
			"Ceph: an OSD of a host that has left maintenance may take so long to be up before Ceph may mark " +
				"it out. It is as long as Ceph itself waits (mon_osd_down_out_interval).",
			func(w *Waits) *time.Duration { return &w.OSDBack }},
		{"daemonFresh", time.Minute,
			"Ceph: a mon or an OSD runs for so long before Ceph has to see it: before that it is no mon that " +
				"hangs, and an OSD that is down is waited for.",
			func(w *Waits) *time.Duration { return &w.DaemonFresh }},
		{"restartBack", 2 * time.Minute,
			"Ceph: an OSD that comes back within so long after its restart was away on purpose, and is not " +
				"counted as flapping.",
			func(w *Waits) *time.Duration { return &w.RestartBack }},
		{"restartEnd", 15 * time.Minute,
			"Ceph: a restart that is not over is waited for so long; its agent may never end it.",
			func(w *Waits) *time.Duration { return &w.RestartEnd }},
		{"brickLost", 30 * time.Second,
			"GlusterFS: the directory of a brick is gone from a store that is well for so long before it " +
				"counts as lost.",
			func(w *Waits) *time.Duration { return &w.BrickLost }},
		{"brickStart", time.Minute,
			"GlusterFS: bricks that were started may take so long to serve before they are started again.",
			func(w *Waits) *time.Duration { return &w.BrickStart }},
		{"brickHeal", time.Minute,
			"GlusterFS: the self-heal daemons have so long before they are asked to look at once.",
			func(w *Waits) *time.Duration { return &w.BrickHeal }},
		{"glusterBack", 2 * time.Minute,
			"GlusterFS: bricks of a node that was started may take so long to serve, before that is no part " +
				"of its coming back.",
			func(w *Waits) *time.Duration { return &w.GlusterBack }},
	}
}

// Default returns the waits that hold where nothing is set.
func Default() Waits { return Waits{}.OrDefault() }

// OrDefault returns the waits with the defaults in the place of those that are zero.
func (w Waits) OrDefault() Waits {
	for _, x := range List() {
		if field := x.field(&w); *field == 0 {
			*field = x.Default
		}
	}
	return w
}

// Parse reads waits from a text such as "agentSilent=10s,hostDead=30s". Those that it does not name have their defaults.
func Parse(text string) (Waits, error) {
	var w Waits
	if strings.TrimSpace(text) == "" {
		return w.OrDefault(), nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		if err := w.set(strings.TrimSpace(pair)); err != nil {
			return Waits{}, err
		}
	}
	return w.OrDefault(), nil
}

// set takes one pair of a name and a duration.
func (w *Waits) set(pair string) error {
	all := List()
	name, value, _ := strings.Cut(pair, "=")
	i := slices.IndexFunc(all, func(x Wait) bool { return x.Name == name })
	if i < 0 {
		return fmt.Errorf("%q sets no wait: write NAME=DURATION, separated by commas, with the names %s",
			pair, names(all))
	}
	field := all[i].field(w)
	d, err := time.ParseDuration(value)
	switch {
	case *field != 0:
		return fmt.Errorf("%q sets %s twice", pair, name)
	case err != nil || d <= 0:
		return fmt.Errorf("%q: the duration has to be more than 0, such as %s=%v; the names are %s",
			pair, name, all[i].Default, names(all))
	}
	*field = d
	return nil
}

func names(all []Wait) string {
	var names []string
	for _, x := range all {
		names = append(names, x.Name)
	}
	return strings.Join(names, ", ")
}

// String tells the waits that are not the defaults, as Parse reads them.
func (w Waits) String() string {
	w = w.OrDefault()
	var pairs []string
	for _, x := range List() {
		if d := *x.field(&w); d != x.Default {
			pairs = append(pairs, fmt.Sprintf("%s=%v", x.Name, d))
		}
	}
	return strings.Join(pairs, ",")
}
