package glusterd

import "strings"

// ParseGroup reads the file of a group of options: name=value on each line, as gluster takes it.
func ParseGroup(text string) map[string]string {
	options := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && name != "" && value != "" && !strings.HasPrefix(name, "#") {
			options[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return options
}
