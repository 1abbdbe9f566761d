package inventory

import (
	"os"
	"strings"
)

// udevEntry is a record of the udev database.
type udevEntry struct {
	links []string // below /dev
	env   map[string]string
}

// readUdev reads one record; a missing one is empty.
func readUdev(file string) udevEntry {
	data, err := os.ReadFile(file)
	if err != nil {
		return udevEntry{}
	}
	return parseUdev(string(data))
}

// parseUdev parses the lines of a record: "S:" is a link, "E:" a property (systemd, src/libsystemd/sd-device).
func parseUdev(text string) udevEntry {
	e := udevEntry{env: map[string]string{}}
	for line := range strings.Lines(text) {
		kind, value, ok := strings.Cut(strings.TrimRight(line, "\n"), ":")
		if !ok {
			continue
		}
		switch kind {
		case "S":
			e.links = append(e.links, "/dev/"+value)
		case "E":
			if k, v, ok := strings.Cut(value, "="); ok {
				e.env[k] = v
			}
		}
	}
	return e
}
