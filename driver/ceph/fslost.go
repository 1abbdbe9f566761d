package ceph

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/fsspec"
	"github.com/holdfast-storage/holdfast/driver/ceph/writes"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// findFS finds a filesystem by its number, or by its name where none was recorded. One that a person has given up counts as never made.
func (p *planner) findFS(x *fsPlan) {
	if !p.fsKnown() {
		return
	}
	if have, ok := p.seen.FS.Filesystems[x.Name]; ok {
		x.have = &have
	}
	l := p.fsLost(x)
	switch {
	case l == nil:
	case p.accepted(x.Filesystem, losses{l}):
		x.id, x.noted, x.forgot = 0, nil, true
	default:
		x.lost, x.have = losses{l}, nil
	}
}

// findFSPools finds the pools of a filesystem. Of one that is lost none is touched.
func (p *planner) findFSPools(x *fsPlan) {
	if len(x.lost) > 0 {
		for _, pool := range x.pools {
			pool.lost = x.lost[0]
		}
		return
	}
	x.lost = p.findPools(x.Filesystem, x.pools...)
	for _, pool := range x.pools {
		if pool.lost != nil && pool.lost.reason == api.ReasonNameTaken {
			pool.lost.anew = "creates a new, empty pool after the pool of its name was renamed"
		}
	}
	p.findGroups(x)
}

// fsLost says how the filesystem that was recorded is gone; nil while it is there. Nobody misses one that is being deleted.
func (p *planner) fsLost(x *fsPlan) *loss {
	if x.id == 0 || x.DeletionTimestamp != nil || x.have != nil && x.owns() {
		return nil
	}
	l := p.fsGone(x)
	l.id, l.anew = strconv.FormatInt(x.id, 10), fsspec.Anew(x.Filesystem, len(p.fsPoolsLeft(x)) > 0)
	if x.have != nil {
		l.reason, l.anew = api.ReasonNameTaken, fmt.Sprintf("accepts filesystem %s (id %d) as this one", x.Name, x.have.ID)
		l.why = fmt.Sprintf("Ceph's filesystem %s has another id (%d) than the recorded one: %s", x.Name, x.have.ID, l.why)
		l.back = "" // its name is to be free first
	}
	return l
}

// fsGone says where a filesystem is that has its name no more, or where its data is.
func (p *planner) fsGone(x *fsPlan) *loss {
	if now := p.fsName(x.id); now != "" {
		return &loss{
			reason: api.ReasonRenamedOutside,
			why:    fmt.Sprintf("filesystem %s (id %d) was renamed to %s outside Holdfast", x.Name, x.id, now),
			back:   fmt.Sprintf("rename it back with 'holdfast ceph fs rename %s %s --yes-i-really-mean-it'", now, x.Name),
		}
	}
	l := &loss{reason: api.ReasonDeletedOutside, back: p.fsBack(x)}
	l.why = fmt.Sprintf("filesystem %s (id %d) was deleted outside Holdfast", x.Name, x.id)
	if left := p.fsPoolsLeft(x); len(left) > 0 {
		l.why += "; its data is left in " + words.Few(left)
	}
	return l
}

// fsName is the name of a filesystem by its number; empty where there is none.
func (p *planner) fsName(id int64) string {
	for name, fs := range p.seen.FS.Filesystems {
		if fs.ID == id {
			return name
		}
	}
	return ""
}

// fsPoolsLeft are the pools of a filesystem that is gone which Ceph still has, by whatever names.
func (p *planner) fsPoolsLeft(x *fsPlan) (left []string) {
	for _, s := range x.noted {
		if name := p.poolName(s.ID); name != "" {
			left = append(left, fmt.Sprintf("pool %s (id %d)", name, s.ID))
		}
	}
	return left
}

// fsBack says how a filesystem that is gone is made again of its pools, with what is in them; empty where some of them are gone, too.
func (p *planner) fsBack(x *fsPlan) string {
	var names []string
	for _, s := range x.noted {
		if name := p.poolName(s.ID); name != "" {
			names = append(names, name)
		}
	}
	if len(names) < 2 || len(names) < len(x.noted) {
		return ""
	}
	text := fmt.Sprintf("bring it back with 'holdfast ceph fs new %s %s %s --fscid %d --force --recover', then 'holdfast ceph fs set %s joinable true'",
		x.Name, names[0], names[1], x.id, x.Name)
	for _, name := range names[2:] {
		text += fmt.Sprintf(", 'holdfast ceph fs add_data_pool %s %s'", x.Name, name)
	}
	return text
}

// fsPoolState is how a pool of a filesystem is. One that was only renamed serves its filesystem by its number.
func (p *planner) fsPoolState(x *fsPlan, pool *poolPlan) writes.Word {
	word := p.poolState(pool)
	if pool.lost != nil && x.have != nil && slices.Contains(append(x.have.DataPools, x.have.MetadataPool), pool.id) {
		word.State = api.ResourceDegraded
	}
	return word
}

// findGroups finds subvolume groups that were made and are gone. Nobody misses one that the Filesystem does not list any more.
func (p *planner) findGroups(x *fsPlan) {
	if len(x.lost) > 0 || x.have == nil || x.forgot || x.DeletionTimestamp != nil {
		return
	}
	for _, g := range x.Spec.SubvolumeGroups {
		if p.groupGone(x, g.Name) {
			x.lostGroups = append(x.lostGroups, &loss{
				id: groupID(g.Name), reason: api.ReasonDeletedOutside, anew: "creates a new, empty one",
				why: fmt.Sprintf("subvolume group %s of filesystem %s was deleted outside Holdfast", g.Name, x.Name),
			})
		}
	}
	if p.accepted(x.Filesystem, x.lostGroups) {
		x.forgotGroups, x.lostGroups = x.lostGroups, nil
	}
	if len(x.lostGroups) > 0 {
		p.object(x.line(), x.lostGroups.refusal(x.Filesystem))
	}
}

// groupGone says whether a group that was made is gone, by the manager's word of now or of before.
func (p *planner) groupGone(x *fsPlan, name string) bool {
	groups, known := p.seen.FS.Groups[x.Name]
	_, there := groups[name]
	if missed := slices.Contains(x.Status.LostSubvolumeGroups, name) || slices.Contains(strings.Split(x.Status.Lost, ","), groupID(name)); missed || !known {
		return missed && !there
	}
	return !there && slices.ContainsFunc(x.Status.SubvolumeGroups, func(g api.SubvolumeGroup) bool { return g.Name == name })
}

// groupID is the identity of a subvolume group, of which Ceph tells none but its name.
func groupID(name string) string { return groupIDPrefix + name }

const groupIDPrefix = "group-"

// lostGroupNames are the names of the subvolume groups that are gone.
func (x *fsPlan) lostGroupNames() (names []string) {
	for _, g := range x.Spec.SubvolumeGroups {
		if x.lostGroups.has(groupID(g.Name)) {
			names = append(names, g.Name)
		}
	}
	return names
}

// has says whether something is lost.
func (l losses) has(id string) bool {
	return slices.ContainsFunc(l, func(one *loss) bool { return one.id == id })
}
