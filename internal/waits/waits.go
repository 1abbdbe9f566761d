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
	// AgentSilent is read by platform/store, for the condition AgentConnected of Hosts.
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
	// MgrHangs is read by driver/ceph, for mgrs that Ceph does not hear.
	MgrHangs time.Duration
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
		{
			"agentSilent", 15 * time.Second,
			"An agent counts as disconnected after this time without a heartbeat. Heartbeats come every 5 s, " +
				"so two may be lost.",
			func(w *Waits) *time.Duration { return &w.AgentSilent },
		},
		{
			"hostDead", 2 * time.Minute,
			"A host that a user declared gone must be disconnected for this time before its daemons are " +
				"released without its agent. It must be connected for this time before it counts as back.",
			func(w *Waits) *time.Duration { return &w.HostDead },
		},
		{
			"actionLost", 2 * time.Minute,
			"An agent may finish an action this long after the action's timeout, before the action counts as " +
				"lost.",
			func(w *Waits) *time.Duration { return &w.ActionLost },
		},
		{
			"nodeGone", 30 * time.Second,
			"Ceph: a host must have no StorageNode for this time before its daemons leave. A StorageNode that" +
				" is renamed is gone for a moment.",
			func(w *Waits) *time.Duration { return &w.NodeGone },
		},
		{
			"replicaLost", time.Minute,
			"Ceph: the host of a missing mgr, MDS, gateway or rbd-mirror must be disconnected for this time " +
				"before another host runs a replacement.",
			func(w *Waits) *time.Duration { return &w.ReplicaLost },
		},
		{
			"replicaSteady", 5 * time.Minute,
			"Ceph: a host that came back must be connected for this time before the replacement of its daemon" +
				" is removed. This prevents moving back and forth.",
			func(w *Waits) *time.Duration { return &w.ReplicaSteady },
		},
		{
			"monJoin", 5 * time.Minute,
			"Ceph: a new mon whose daemon fails is removed if it has not joined within this time.",
			func(w *Waits) *time.Duration { return &w.MonJoin },
		},
		{
			"monSlow", 3 * time.Minute,
			"Ceph: if a running new mon has not joined within this time, the report says what may keep it " +
				"out.",
			func(w *Waits) *time.Duration { return &w.MonSlow },
		},
		{
			"monSteady", time.Minute,
			"Ceph: the restarts of a new mon do not count any more once it has run for this time.",
			func(w *Waits) *time.Duration { return &w.MonSteady },
		},
		{
			"monAvoid", time.Hour,
			"Ceph: Holdfast creates no mon for this time on a host where a mon kept failing.",
			func(w *Waits) *time.Duration { return &w.MonAvoid },
		},
		{
			"osdBack", 10 * time.Minute,
			"Ceph: after maintenance, an OSD has this time to come up before Ceph may mark it out. Ceph's own" +
				" default is the same (mon_osd_down_out_interval).",
			func(w *Waits) *time.Duration { return &w.OSDBack },
		},
		{
			"daemonFresh", time.Minute,
			"Ceph: a mon or an OSD must run for this time before its absence in Ceph counts: until then the " +
				"mon does not count as hung, and a down OSD is waited for.",
			func(w *Waits) *time.Duration { return &w.DaemonFresh },
		},
		{
			"mgrHangs", 5 * time.Minute,
			"Ceph: a mgr whose process runs for this time while Ceph has no mgr at all is restarted: it " +
				"hangs. Loading its modules takes seconds.",
			func(w *Waits) *time.Duration { return &w.MgrHangs },
		},
		{
			"restartBack", 2 * time.Minute,
			"Ceph: an OSD that comes back within this time after its restart does not count as flapping.",
			func(w *Waits) *time.Duration { return &w.RestartBack },
		},
		{
			"restartEnd", 15 * time.Minute,
			"Ceph: an unfinished restart is waited for this long at most, because its agent may never end it.",
			func(w *Waits) *time.Duration { return &w.RestartEnd },
		},
		{
			"brickLost", 30 * time.Second,
			"GlusterFS: the directory of a brick must be gone from a healthy store for this time before the " +
				"brick counts as lost.",
			func(w *Waits) *time.Duration { return &w.BrickLost },
		},
		{
			"brickStart", time.Minute,
			"GlusterFS: started bricks have this time to serve before they are started again.",
			func(w *Waits) *time.Duration { return &w.BrickStart },
		},
		{
			"brickHeal", time.Minute,
			"GlusterFS: the self-heal daemons have this time before Holdfast starts a heal.",
			func(w *Waits) *time.Duration { return &w.BrickHeal },
		},
		{
			"glusterBack", 2 * time.Minute,
			"GlusterFS: the bricks of a started node have this time to serve; a later failure does not count " +
				"as part of its start.",
			func(w *Waits) *time.Duration { return &w.GlusterBack },
		},
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
		return fmt.Errorf("%q: the duration must be above 0, such as %s=%v; the names are %s",
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
