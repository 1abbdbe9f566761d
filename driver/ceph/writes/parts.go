package writes

import (
	"strings"

	"github.com/holdfast-storage/holdfast/internal/words"
)

// Part is a pool of a whole, such as of a filesystem, and how it stands.
type Part struct {
	Name string
	Is   Word
	// PGs and Unclean are those of the Pool that it was judged by.
	PGs     int
	Unclean map[string]int
}

// alike are pools of which the same is said, but for their placement groups.
type alike struct {
	names []string
	is    Word
	// frame is what is said, with a mark where the placement groups are said.
	frame string
	sum   Pool
}

// mark takes the place of placement groups in a text.
const mark = "\x00"

// WithPools is how a whole stands by its pools. Pools of which the same is said are named together,
// with the sum of their placement groups: a reader wants an OSD that is down once, not for each
// pool.
func (w Word) WithPools(parts []Part) Word {
	var groups []*alike
	for _, part := range parts {
		groups = add(groups, part)
	}
	for _, g := range groups {
		part, is := "pool "+g.names[0], "is"
		if len(g.names) > 1 {
			part, is = "pools "+words.Few(g.names), "are"
			_, _, states := g.sum.unclean()
			g.is.Text = strings.Replace(g.frame, mark, states, 1)
		}
		w = w.with(part, is, g.is)
	}
	return w
}

// PartOf is a pool as it was judged.
func PartOf(pool *Pool, is Word) Part {
	return Part{Name: pool.Name, Is: is, PGs: pool.PGs, Unclean: pool.Unclean}
}

func add(groups []*alike, part Part) []*alike {
	frame := part.Is.Text
	if len(part.Unclean) > 0 {
		_, _, states := (&Pool{PGs: part.PGs, Unclean: part.Unclean}).unclean()
		frame = strings.Replace(frame, states, mark, 1)
	}
	for _, g := range groups {
		if g.is.State == part.Is.State && g.is.Reason == part.Is.Reason && g.is.Next == part.Is.Next && g.frame == frame {
			g.names = append(g.names, part.Name)
			g.sum.add(part)
			return groups
		}
	}
	g := &alike{names: []string{part.Name}, is: part.Is, frame: frame, sum: Pool{Unclean: map[string]int{}}}
	g.sum.add(part)
	return append(groups, g)
}

func (p *Pool) add(part Part) {
	p.PGs += part.PGs
	for state, n := range part.Unclean {
		p.Unclean[state] += n
	}
}
