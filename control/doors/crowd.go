package doors

import "container/list"

// crowd is a number of connections, by whom they belong to. Where there are too many the oldest one
// has to go: first of who has too many, else of who has the most. So nobody keeps others out, and
// who needs a moment to prove who he is has it.
type crowd struct {
	most, perGroup int
	// spare holds for connections that are not closed for others to come in.
	spare  func(*Conn) bool
	groups map[string]*list.List
	count  int
}

func newCrowd(most, perGroup int, spare func(*Conn) bool) *crowd {
	return &crowd{most: most, perGroup: perGroup, spare: spare, groups: map[string]*list.List{}}
}

// add counts a connection, and returns the one that has to go for it, if any: itself where all
// others are spared. That one is counted no more.
func (c *crowd) add(conn *Conn, group string) (victim *Conn, why string) {
	line := c.groups[group]
	if line == nil {
		line = list.New()
		c.groups[group] = line
	}
	conn.place, conn.group, conn.crowd = line.PushBack(conn), group, c
	c.count++
	switch {
	case line.Len() > c.perGroup:
		victim, why = c.oldest(line), "one"
	case c.count > c.most:
		victim, why = c.oldest(c.longest()), "all"
	default:
		return nil, ""
	}
	victim.remove()
	return victim, why
}

func (c *crowd) oldest(line *list.List) *Conn {
	for e := line.Front(); e != nil; e = e.Next() {
		if conn := e.Value.(*Conn); !c.spare(conn) || e.Next() == nil {
			return conn
		}
	}
	return nil // never: the line has one at least
}

// longest is the line with the most connections, and of those of one length the one with the
// oldest.
func (c *crowd) longest() (longest *list.List) {
	for _, line := range c.groups {
		if longest == nil || line.Len() > longest.Len() || line.Len() == longest.Len() && first(line) < first(longest) {
			longest = line
		}
	}
	return longest
}

func first(line *list.List) uint64 { return line.Front().Value.(*Conn).number }

// remove counts a connection no more.
func (c *Conn) remove() {
	in := c.crowd
	if in == nil {
		return
	}
	line := in.groups[c.group]
	line.Remove(c.place)
	if line.Len() == 0 {
		delete(in.groups, c.group)
	}
	in.count--
	c.crowd = nil
}
