// Package cephconf reads files of Ceph in the form of ceph.conf, keyrings among them.
package cephconf

import "strings"

// Parse returns the options by section and name. Names are as the documents of Ceph have them: "mon host" and "mon-host" are mon_host.
// What stands before the first section counts as global, as Ceph has it. A line that ends with a backslash goes on in the next one;
// a comment begins with # or ;.
func Parse(text string) map[string]map[string]string {
	sections := map[string]map[string]string{}
	section := "global"
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = strings.TrimSpace(uncommented(line))
		if name, ok := strings.CutPrefix(line, "["); ok {
			section = strings.TrimSpace(strings.TrimSuffix(name, "]"))
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		if sections[section] == nil {
			sections[section] = map[string]string{}
		}
		sections[section][normal(name)] = strings.Trim(strings.TrimSpace(value), `"`)
	}
	return sections
}

// uncommented is a line without its comment. A # in a value belongs to it when no space stands before it.
func uncommented(line string) string {
	for i, c := range line {
		if (c == '#' || c == ';') && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			return line[:i]
		}
	}
	return line
}

func normal(name string) string {
	return strings.ToLower(strings.Join(strings.FieldsFunc(name, func(c rune) bool { return c == ' ' || c == '\t' || c == '-' || c == '_' }), "_"))
}
