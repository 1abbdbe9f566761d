package servicetest

import (
	"strings"
	"testing"
)

func TestIsQuestion(t *testing.T) {
	for line, want := range map[string]bool{
		"/usr/bin/gluster --mode=script --xml --glusterd-sock=/s volume info all": true,
		"gluster --xml pool list":                        true,
		"gluster volume remove-brick v h:/a h:/b status": true,
		"gluster volume remove-brick v h:/a h:/b start":  false,
		"gluster volume create status h:/a":              false,
		"gluster volume set v info on":                   false,
		"gluster volume quota v enable":                  false,
		"gluster":                                        false,
		"rbd -c /c -n client.a --admin-socket= mirror pool info --format json vms":          true,
		"rbd -c /c -n client.a mirror pool status --format json vms":                        true,
		"rbd -c /c -n client.a mirror pool enable status image":                             false,
		"rbd -c /c -n client.a mirror pool peer bootstrap import --direction rx-only vms -": false,
		"sfdisk --json /dev/x":   true,
		"sfdisk --delete /dev/x": false,
		"umount --version":       true,
	} {
		if got := isQuestion(strings.Fields(line)); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

func TestSameEnd(t *testing.T) {
	at := func(places ...string) (all []effect) {
		for _, p := range places {
			all = append(all, effect{where: p})
		}
		return all
	}
	reference := at("a", "b", "b", "c")
	for places, want := range map[string]bool{"a b c": true, "a b b b c c": true, "a b": false, "a b c d": false} {
		if got := sameButRepeats(reference, at(strings.Fields(places)...)); got != want {
			t.Errorf("%s: %v", places, got)
		}
	}
}
