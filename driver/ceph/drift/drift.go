// Package drift compares what Ceph has with what is declared, object by object: what differs was changed in
// Ceph itself, outside Holdfast. What Holdfast knows for sure is put back; the rest waits for a user, or is
// only reported. It is pure, and looks only at what the maps of the last change show: in a cluster in which
// nothing changed it does nothing.
package drift

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/holdfast-storage/holdfast/driver/ceph/health"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Kind says what was changed.
type Kind string

// What Holdfast compares.
const (
	Place    Kind = "Place"    // an OSD that has no place in CRUSH
	Key      Kind = "Key"      // the key of a daemon
	Mon      Kind = "Mon"      // a mon that is missing in the map of the mons
	Stranger Kind = "Stranger" // a mon in the map that Holdfast does not run
	Flag     Kind = "Flag"     // a flag of the whole cluster
	Address  Kind = "Address"  // the address of a host with daemons that listen on the one that it had
)

// Remedy says what becomes of a difference.
type Remedy string

// The remedies.
const (
	PutBack    Remedy = "PutBack"    // Holdfast puts back what it had set
	AwaitsWord Remedy = "AwaitsWord" // a user decides
	Reported   Remedy = "Reported"   // nothing waits for it: it stays
)

// Difference is one thing that Ceph has otherwise than declared.
type Difference struct {
	Kind   Kind
	Object string // such as osd.1
	Remedy Remedy
	// Text is what was found and why that matters, and for a user what to do.
	Text string
}

// Found is what Ceph has, as far as it is compared. Nobody writes to it.
type Found struct {
	// Strays are the OSDs that are up and have no place in CRUSH.
	Strays []int
	// Flags are those that are set for the whole cluster.
	Flags []string
	// Keys are the entities whose keys in Ceph's auth database are not those that Holdfast keeps. Only daemons
	// that fail are asked about.
	Keys map[string]KeyState
}

// Declared is what Holdfast has set.
type Declared struct {
	// OSD is a wanted OSD; nil where Holdfast has none of this number, or it leaves.
	OSD func(id int) *OSD
	// Mons are the members of the quorum that Holdfast runs, and Others further mons of its own, which join or
	// leave.
	Mons, Others []string
	// Monmap is Ceph's map of the mons, and Quorum those of them in quorum.
	Monmap, Quorum []string
	// Bound are the daemons that run, with where they listen.
	Bound iter.Seq[Bound]
	// Keeps says whether Holdfast keeps the key of an entity, and the mons had it.
	Keeps func(entity string) bool
	// Moving says what waits for data to move, such as "the drain of host h4"; empty where nothing does.
	Moving string
}

// OSD is a wanted OSD.
type OSD struct {
	Label, Bucket string
	// Own is set where spec.ceph.config says itself where the OSD is in CRUSH.
	Own bool
}

// Compare finds what differs.
func Compare(d *Declared, f *Found) (all []Difference) {
	all = append(all, places(d, f)...)
	all = append(all, keys(d, f)...)
	all = append(all, mons(d)...)
	all = append(all, addresses(d.Bound)...)
	return append(all, flags(d, f)...)
}

func places(d *Declared, f *Found) (all []Difference) {
	for _, id := range f.Strays {
		o := d.OSD(id)
		if o == nil {
			continue
		}
		x := Difference{Kind: Place, Object: o.Label, Remedy: PutBack}
		x.Text = fmt.Sprintf("it is up but CRUSH does not have it, so that it gets no data; put back below host %s, "+
			"with its size as weight", o.Bucket)
		if o.Own {
			x.Remedy = AwaitsWord
			x.Text = fmt.Sprintf("it is up but CRUSH does not have it, so that it gets no data, and spec.ceph.config "+
				"says that OSDs are placed by hand: run 'holdfast ceph shell -- ceph osd crush create-or-move %s "+
				"WEIGHT root=default host=%s', or remove the option", o.Label, o.Bucket)
		}
		all = append(all, x)
	}
	return all
}

// mons compares the map of the mons only while they are a quorum: without one nothing of it can be changed.
func mons(d *Declared) (all []Difference) {
	if len(d.Quorum) == 0 {
		return nil
	}
	for _, id := range d.Mons {
		if !slices.Contains(d.Monmap, id) {
			all = append(all, Difference{Kind: Mon, Object: "mon." + id, Remedy: PutBack, Text: Removed})
		}
	}
	for _, id := range d.Monmap {
		if slices.Contains(d.Mons, id) || slices.Contains(d.Others, id) {
			continue
		}
		x := Difference{Kind: Stranger, Object: "mon." + id, Remedy: AwaitsWord}
		x.Text = fmt.Sprintf("Ceph's map has it, and Holdfast does not run it: it counts for the quorum, which needs %d "+
			"of %d mons; if nothing needs it, run 'holdfast ceph shell -- ceph mon remove %s'", len(d.Monmap)/2+1,
			len(d.Monmap), id)
		all = append(all, x)
	}
	return all
}

// Removed says what becomes of a mon that was taken out of the map.
const Removed = "removed from Ceph's map of the mons outside Holdfast, so it cannot return with what it knows; " +
	"another mon is created in its place"

// Purged says what becomes of an OSD that was taken out of Ceph's map.
const Purged = "removed from Ceph's map of the OSDs outside Holdfast, although its data is there; registered " +
	"again with its number, its uuid and its key"

// told are the flags that users set, with what each keeps from happening.
var told = map[string]string{
	"pauserd": "clients read nothing", "pausewr": "clients write nothing",
	"noup": "no OSD comes up", "nodown": "no OSD is marked down",
	"noin": "no OSD is marked in", "noout": "no OSD is marked out",
	"nobackfill": "no data moves to other OSDs", "norebalance": "no data moves to other OSDs",
	"norecover": "no copy is made anew", "noscrub": "no data is scrubbed", "nodeep-scrub": "no data is scrubbed deeply",
	"nosnaptrim": "no snapshot is trimmed", "notieragent": "cache tiers do not move data",
}

// holding are the flags that keep data from moving.
var holding = []string{"nobackfill", "norebalance", "norecover"}

func flags(d *Declared, f *Found) (all []Difference) {
	for _, flag := range f.Flags {
		effect := told[flag]
		if effect == "" {
			continue
		}
		x := Difference{Kind: Flag, Object: "flag/" + flag, Remedy: Reported}
		x.Text = fmt.Sprintf("set in Ceph, so that %s; it stays until you run %s", effect, unset(flag))
		if d.Moving != "" && slices.Contains(holding, flag) {
			x.Remedy = AwaitsWord
			x.Text = fmt.Sprintf("set in Ceph, so that %s, and %s waits for that: run %s", effect, d.Moving, unset(flag))
		}
		all = append(all, x)
	}
	return all
}

func unset(flag string) string { return "'" + health.Unset(flag) + "'" }

// Holding says which flags keep data from moving, and how to take them away; empty where none does.
func (f *Found) Holding() string {
	var set, commands []string
	for _, flag := range holding {
		if slices.Contains(f.Flags, flag) {
			set, commands = append(set, flag), append(commands, unset(flag))
		}
	}
	switch len(set) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("flag %s is set in Ceph, so that it does not move: run %s", set[0], commands[0])
	}
	return fmt.Sprintf("flags %s are set in Ceph, so that it does not move: run %s", words.Few(set),
		strings.Join(commands, " and "))
}
