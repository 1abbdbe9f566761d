package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

const mgrType = "ceph-mgr"

// mgrs are the managers by Ceph's own word: which one is active, and which stand by. The number of
// each is that of its process's session.
type mgrs struct {
	Available bool
	Active    string `json:"active_name"`
	GID       int    `json:"active_gid"`
	Standbys  []struct {
		Name string
		GID  int
	}
}

func (b *bed) mgrs() (m mgrs) {
	b.Helper()
	if err := json.Unmarshal([]byte(b.ceph("mgr", "dump", "-f", "json")), &m); err != nil {
		b.Fatalf("reading ceph mgr dump: %v", err)
	}
	return m
}

// names are those of all managers that are there, with their numbers.
func (m mgrs) names() map[string]int {
	all := map[string]int{m.Active: m.GID}
	for _, s := range m.Standbys {
		all[s.Name] = s.GID
	}
	return all
}

// activeMgrOn has the manager of a host be the active one. Another one is told to hand over when it
// is at work and has a standby: one that was told so a moment ago starts anew, and 'ceph mgr fail'
// without a name would fail whichever comes next.
func (b *bed) activeMgrOn(host string) {
	b.Helper()
	b.await("the active mgr to be on "+host, func() error {
		m := b.mgrs()
		active := m.Active
		if !m.Available || active == "" || len(m.Standbys) == 0 {
			return fmt.Errorf("there is no active mgr with a standby: %+v", m)
		}
		for _, d := range b.daemons() {
			if d.Spec.Type == mgrType && d.Spec.ID == active && d.Spec.Host == host {
				return nil
			}
		}
		return fmt.Errorf("it is mgr.%s%s", active, b.ceph("mgr", "fail", active))
	})
}

// mgrsWithout says what is missing until so many managers are there, one of which is active, by
// Ceph's word and by that of the agents of hosts that have power.
func (b *bed) mgrsWithout(lost string, count int) error {
	var running []string
	for _, d := range b.daemons() {
		if d.Spec.Type == mgrType && d.Spec.Host != lost && d.Status.State == api.DaemonRunning && b.hostNamed(d.Spec.Host).On() {
			running = append(running, d.Spec.ID)
		}
	}
	m := b.mgrs()
	there := slices.Sorted(maps.Keys(m.names()))
	slices.Sort(running)
	if !m.Available || len(running) != count || !slices.Equal(there, running) {
		return fmt.Errorf("Ceph has %q (%+v), and there run %q", there, m, running)
	}
	if stat := b.ceph("mgr", "stat"); !strings.Contains(stat, `"num_standby": `+strconv.Itoa(count-1)) {
		return fmt.Errorf("ceph mgr stat says %s", stat)
	}
	return nil
}
