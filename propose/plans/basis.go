package plans

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// maxFacts is how many bytes of facts a Plan keeps at most; maxBasis how many objects. The bounds of the schema are above both.
const (
	maxFacts = 256 << 10
	maxBasis = 3000
)

// Basis is what a plan was made from: the objects that decide what it comes to, with those of their fields that do.
type Basis map[string]Facts

// Facts is one object of a Basis.
type Facts struct {
	// UID is empty for an object that does not exist.
	UID string
	// Fields are what the plan depends on.
	Fields map[string]string
	// sum is the digest of facts that are not all here.
	sum string
}

// BasisOf is the basis that a proposal was made from, as far as it tells.
func BasisOf(p *api.PlanProposal) Basis {
	b, facts := Basis{}, keptFacts(p.Facts)
	for _, x := range p.Basis {
		b[x.Object] = Facts{UID: x.UID, Fields: facts[x.Object], sum: x.Digest}
	}
	return b
}

// silence names in a Basis that the storage system of a cluster did not answer when the plan was made.
const silence = "silence of "

// AddSilence notes that the storage system of a cluster does not answer: the plan is not what would come of it if it did.
func (b Basis) AddSilence(cluster string) {
	b[silence+cluster] = Facts{UID: "-", Fields: map[string]string{"answers": "no"}}
}

// MadeInSilence says whether the storage system of a cluster did not answer when a plan was made.
func MadeInSilence(spec *api.PlanProposal, cluster string) bool {
	return slices.ContainsFunc(spec.Basis, func(b api.PlanBasis) bool { return b.Object == silence+cluster })
}

// Digest covers the fields.
func (f Facts) Digest() string {
	if f.sum != "" {
		return f.sum
	}
	return digest(f.lines(""))
}

func (f Facts) lines(prefix string) []string {
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(f.Fields)) {
		lines = append(lines, prefix+path+" = "+f.Fields[path])
	}
	return lines
}

func digest(lines []string) string {
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:16])
}

// Store puts the basis into a Plan. Of a world so large that there is no room for it, one digest of everything is kept.
func (b Basis) Store(spec *api.PlanProposal) {
	b = b.bounded()
	var facts []string
	size := 0
	for _, object := range slices.Sorted(maps.Keys(b)) {
		f := b[object]
		spec.Basis = append(spec.Basis, api.PlanBasis{Object: object, UID: f.UID, Digest: f.Digest()})
		for _, line := range f.lines(object + "\t") {
			facts = append(facts, line)
			size += len(line) + 1
		}
	}
	if size <= maxFacts {
		spec.Facts = strings.Join(facts, "\n")
	}
}

// everything stands for all objects where they are too many.
const everything = "everything"

func (b Basis) bounded() Basis {
	if len(b) <= maxBasis {
		return b
	}
	return b.condensed()
}

// condensed is one digest of everything.
func (b Basis) condensed() Basis {
	if _, is := b[everything]; is {
		return b
	}
	all := Facts{Fields: map[string]string{}}
	for object, f := range b {
		all.Fields[object] = f.UID + " " + f.Digest()
	}
	return Basis{everything: all}
}

// Condense leaves of the basis of a proposal one digest of everything.
func Condense(p *api.PlanProposal) {
	one := BasisOf(p).condensed()[everything]
	p.Basis, p.Facts = []api.PlanBasis{{Object: everything, UID: one.UID, Digest: one.Digest()}}, ""
}

// Witness is what is known of an object beside the basis.
type Witness struct {
	// Changed says who changed it, and when; it may be empty.
	Changed string
	// Gone says that the server has no such object. Without it nobody knows.
	Gone bool
}

// Moved says, in sentences, what of a Plan's basis is not so any more. An object that the basis
// does not have now need not be gone: a deletion that somebody else carried out no longer concerns
// its cluster. Of those it is said only where nothing else moved.
func (b Basis) Moved(spec *api.PlanProposal, witness func(object string) Witness) []string {
	b = b.bounded()
	before := *spec
	if _, one := b[everything]; one {
		Condense(&before)
	} else if slices.ContainsFunc(spec.Basis, func(x api.PlanBasis) bool { return x.Object == everything }) {
		b = b.condensed()
	}
	kept := keptFacts(before.Facts)
	was := map[string]api.PlanBasis{}
	for _, x := range before.Basis {
		was[x.Object] = x
	}
	objects := maps.Clone(b)
	for object := range was {
		if _, ok := objects[object]; !ok {
			objects[object] = Facts{}
		}
	}
	var moved, lapsed []string
	for _, object := range slices.Sorted(maps.Keys(objects)) {
		old, known := was[object]
		now, is := b[object]
		m := move{object, old, kept[object], now, known, is, witness}
		if m.lapsed() {
			lapsed = append(lapsed, object+" mattered when the plan was made, but does not now")
			continue
		}
		moved = append(moved, m.sentences()...)
	}
	if len(moved) == 0 {
		return lapsed
	}
	return moved
}

// move is an object as it was and as it is.
type move struct {
	object    string
	old       api.PlanBasis
	facts     map[string]string
	now       Facts
	known, is bool
	witness   func(string) Witness
}

// lapsed says whether an object is there, as far as anybody knows, and what is planned does not
// depend on it any more.
func (m move) lapsed() bool {
	silent := strings.HasPrefix(m.object, silence)
	return !silent && m.known && !m.is && m.old.UID != "" && !m.witness(m.object).Gone
}

func (m move) sentences() []string {
	cluster, silent := strings.CutPrefix(m.object, silence)
	switch {
	case silent && m.known && !m.is:
		return []string{"the storage system of " + cluster + " answers now, but did not when the plan was made"}
	case m.known && m.is && m.old.UID == m.now.UID && m.old.Digest == m.now.Digest():
		return nil
	case !m.known:
		return []string{m.object + " matters now, but did not when the plan was made"}
	case m.old.UID != "" && m.now.UID == "":
		return []string{m.object + " is gone"}
	case m.old.UID == "" && m.now.UID != "":
		return []string{m.object + " was created by another user" + m.who()}
	case m.old.UID != m.now.UID:
		return []string{m.object + " was deleted and created again" + m.who()}
	}
	if len(m.facts) == 0 || m.now.sum != "" && len(m.now.Fields) == 0 {
		return []string{m.object + " was changed" + m.who()}
	}
	var moved []string
	for _, c := range Differences(m.facts, m.now.Fields) {
		moved = append(moved, m.object+m.changed(c))
	}
	return moved
}

func (m move) who() string {
	if who := m.witness(m.object).Changed; who != "" {
		return " " + who
	}
	return ""
}

// changed words a difference. Devices, daemons and actions are things; all else are fields, which somebody has changed.
func (m move) changed(c FieldChange) string {
	thing := slices.ContainsFunc([]string{"device ", "daemon ", "action "}, func(kind string) bool { return strings.HasPrefix(c.Path, kind) })
	switch {
	case thing && c.New == unset:
		return ": " + c.Path + " (" + c.Old + ") is gone"
	case thing && c.Old == unset:
		return ": " + c.Path + " (" + c.New + ") is new"
	case thing:
		return fmt.Sprintf(": %s was %s, and is %s", c.Path, c.Old, c.New)
	}
	return " was changed" + m.who() + ": " + strings.Replace(c.String(), ": ", " ", 1)
}

// keptFacts reads the facts of a Plan.
func keptFacts(text string) map[string]map[string]string {
	kept := map[string]map[string]string{}
	for line := range strings.SplitSeq(text, "\n") {
		object, fact, ok := strings.Cut(line, "\t")
		path, value, ok2 := strings.Cut(fact, " = ")
		if !ok || !ok2 {
			continue
		}
		if kept[object] == nil {
			kept[object] = map[string]string{}
		}
		kept[object][path] = value
	}
	return kept
}
