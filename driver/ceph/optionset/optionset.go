// Package optionset holds Ceph options by section and name, as ceph.conf has them. It is pure.
package optionset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-storage/holdfast/internal/spell"
)

// Options are Ceph options by section and name.
type Options map[string]map[string]string

// Set sets an option.
func (o Options) Set(section, name, value string) {
	if o[section] == nil {
		o[section] = map[string]string{}
	}
	o[section][name] = strings.TrimSpace(value)
}

// Each calls a function for each option, in a fixed order.
func (o Options) Each(f func(section, name, value string)) {
	for _, section := range slices.Sorted(maps.Keys(o)) {
		for _, name := range slices.Sorted(maps.Keys(o[section])) {
			f(section, name, o[section][name])
		}
	}
}

// Text writes options as ceph.conf has them; Parse reads that.
func (o Options) Text() string {
	var b strings.Builder
	for _, section := range slices.Sorted(maps.Keys(o)) {
		Write(&b, section, o[section])
	}
	return b.String()
}

// Parse reads what Text writes.
func Parse(text string) Options {
	o, section := Options{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, value, isOption := strings.Cut(line, " = ")
		switch {
		case strings.HasPrefix(line, "["):
			section = strings.Trim(line, "[]")
		case isOption || strings.HasSuffix(line, " ="):
			o.Set(section, strings.TrimSuffix(name, " ="), value)
		}
	}
	return o
}

// Of are the options of some sections.
func (o Options) Of(sections []string) Options {
	part := Options{}
	for _, section := range sections {
		for name, value := range o[section] {
			part.Set(section, name, value)
		}
	}
	return part
}

// Write writes a section.
func Write(b *strings.Builder, name string, options map[string]string) {
	b.WriteString("\n[" + oneLine(name) + "]\n")
	for _, option := range slices.Sorted(maps.Keys(options)) {
		b.WriteString(oneLine(option) + " = " + oneLine(strings.TrimSpace(options[option])) + "\n")
	}
}

// oneLine is what stands on a line of ceph.conf, which has no way to write an end of a line. The
// API and engine.Addresses refuse what has one; if anything passed them, a line of it would be an
// option that nobody set, in the files of all hosts. So it panics, which the engine tells as an
// error of the cluster's plan, and nothing is written.
func oneLine(text string) string {
	if strings.ContainsAny(text, "\n\r\x00") {
		panic(fmt.Sprintf("ceph.conf cannot hold %.100q, because it has several lines", text))
	}
	return text
}

// maxNear is how many names are offered for one that is not known.
const maxNear = 3

// Nearest are the names that are like one that is not known, the most like it first.
func Nearest(names []string, name string) []string {
	far := func(n string) int { return spell.Distance(name, n) }
	near := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !spell.Alike(name, 2*far(n)) })
	slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(far(a), far(b)) })
	return near[:min(len(near), maxNear)]
}
