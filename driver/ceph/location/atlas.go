package location

import (
	"fmt"
	"regexp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/crushmap"
	"github.com/holdfast-storage/holdfast/engine"
)

// Atlas is where the buckets of CRUSH are by the labels of all hosts of a cluster together. In CRUSH a
// name is in one place only.
type Atlas struct {
	home  func(host string) string // the bucket of a host
	crush map[string]crushmap.Bucket
	spots map[string]*spot
	// apart are buckets that CRUSH has hosts with data in, by the names that the hosts are labelled with
	// instead; agreed are those that they are labelled with.
	apart  map[string]string
	agreed map[string]bool
}

// spot is a bucket as labels have it.
type spot struct {
	level string
	in    map[string]string // the buckets that it is in, by their levels
	by    string            // the host that says so first
	// wrong says why it cannot be so.
	wrong engine.Objection
}

// NewAtlas reads the labels of hosts. home is the bucket of a host, and crush what CRUSH has; nil where
// nobody knows.
func NewAtlas(hosts []*api.Host, home func(host string) string, crush map[string]crushmap.Bucket) *Atlas {
	a := &Atlas{
		home: home, crush: crush, spots: map[string]*spot{}, apart: map[string]string{}, agreed: map[string]bool{},
	}
	for _, h := range hosts {
		a.spots[home(h.Name)] = &spot{level: "host", by: h.Name}
	}
	for _, h := range hosts {
		a.add(h.Name, Of(h))
		a.compare(a.crush[home(h.Name)], Of(h))
	}
	return a
}

// add takes over what a host's labels say of the buckets that it is in.
func (a *Atlas) add(host string, in map[string]string) {
	for _, level := range Levels {
		name := in[level]
		if name == "" {
			continue
		}
		s := a.spots[name]
		switch {
		case s == nil:
			s = &spot{level: level, in: map[string]string{}, by: host}
			a.spots[name] = s
		case s.level != level:
			s.fail("%s is a %s in the labels of host %s, but a %s in those of host %s",
				name, s.level, s.by, level, host)
			continue
		}
		for _, larger := range Above(level) {
			switch was, is := s.in[larger], in[larger]; {
			case is == "" || was == is:
			case was == "":
				s.in[larger] = is
			default:
				s.fail("%s %s is in %s %s in the labels of host %s, but in %s in those of host %s",
					level, name, larger, was, s.by, is, host)
			}
		}
	}
}

// compare notes which buckets CRUSH has a host in that holds data, beside those that it is labelled with.
func (a *Atlas) compare(host crushmap.Bucket, labels map[string]string) {
	for level, name := range labels {
		switch is := host.In[level]; {
		case host.Type != "host" || host.Weight == 0 || is == "":
		case is == name:
			a.agreed[name] = true
		case a.apart[name] == "":
			a.apart[name] = is
		}
	}
}

// twin says why a bucket is not made anew: it is there, with data, by a name that no host is labelled
// with, and copies that have to be apart would be together.
func (a *Atlas) twin(level, name string) (none engine.Objection) {
	is := a.apart[name]
	if is == "" || a.agreed[is] {
		return none
	}
	return engine.Refusal(api.ReasonMisplaced,
		"hosts with data have the label %s %s, but CRUSH has them in %s: label the hosts with %s, or rename the "+
			"bucket ('holdfast ceph shell -- ceph osd crush rename-bucket %s %s')", level, name, is, is, is, name)
}

// fail notes what is wrong with a bucket, with what to do.
func (s *spot) fail(format string, args ...any) {
	if s.wrong.None() {
		s.wrong = engine.Refusal(api.ReasonConflict,
			"%s: CRUSH has one bucket of each name; label the hosts with distinct names ('holdfast host label "+
				"--location')",
			fmt.Sprintf(format, args...))
	}
}

// crushName is what CRUSH takes for the name of a bucket (CrushWrapper::is_valid_crush_name), and
// osdLike the name of an OSD, which it may not have.
var crushName, osdLike = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`), regexp.MustCompile(`^osd\.[0-9]+$`)

// Locate is where a host belongs: in what its labels say, and what these are in by the labels of
// others; why says why it cannot be there. Ceph puts it into the smallest bucket that is there
// already, wherever that is, so that labels have to agree with CRUSH from there on.
func (a *Atlas) Locate(h *api.Host) (in map[string]string, why engine.Objection) {
	in = Of(h)
	short := a.home(h.Name)
	if b, there := a.crush[short]; there && b.Type != "host" {
		return nil, engine.Refusal(api.ReasonConflict,
			"CRUSH has a %s named %s, which is the name of a host: rename the bucket ('holdfast ceph osd crush rename-bucket')",
			b.Type, short)
	}
	for _, level := range Levels {
		name := in[level]
		if name == "" {
			continue
		}
		if !crushName.MatchString(name) || osdLike.MatchString(name) {
			return nil, engine.Refusal(api.ReasonInvalidSpec,
				"%s is not a valid CRUSH name of a %s: label host %s with another name", name, level, h.Name)
		}
		if b, there := a.crush[name]; there {
			return in, misfit(b, level, name, in)
		}
		if why := a.twin(level, name); !why.None() {
			return nil, why
		}
		s := a.spots[name]
		for _, larger := range Above(level) {
			switch is := s.in[larger]; {
			case is == "" || in[larger] == is:
			case in[larger] == "":
				in[larger] = is
			default:
				s.fail("%s %s is in %s %s in the labels of host %s, but in %s in those of other hosts",
					level, name, larger, is, s.by, in[larger])
			}
		}
		if !s.wrong.None() {
			return nil, s.wrong
		}
	}
	return in, misfit(a.crush[Root], "root", Root, in)
}

// misfit says why a bucket that CRUSH has cannot be the one of a location.
func misfit(b crushmap.Bucket, level, name string, in map[string]string) (none engine.Objection) {
	if b.Type != level && b.Type != "" {
		return engine.Refusal(api.ReasonConflict,
			"CRUSH has a %s named %s, but the labels of hosts use the name for a %s: choose another name in the labels",
			b.Type, name, level)
	}
	for _, larger := range Above(level) {
		want := in[larger]
		if larger == "root" {
			want = Root
		}
		if want != "" && b.In[larger] != want {
			const differs = "CRUSH has %s %s in %s, but the labels of its hosts put it in %s %s: change the labels, or " +
				"move the bucket with its data ('holdfast ceph shell -- ceph osd crush move %s %s')"
			return engine.Refusal(api.ReasonMisplaced, differs,
				level, name, inWords(b.In), larger, want, name, Text(upFrom(in, level)))
		}
	}
	return none
}

// inWords are the buckets that one is in, in words.
func inWords(in map[string]string) string {
	for _, level := range ToRoot {
		if in[level] != "" {
			return level + " " + in[level]
		}
	}
	return "nothing"
}

// upFrom are the buckets of a location that are larger than a level.
func upFrom(in map[string]string, level string) map[string]string {
	rest := map[string]string{}
	for _, larger := range Above(level) {
		rest[larger] = in[larger]
	}
	return rest
}
