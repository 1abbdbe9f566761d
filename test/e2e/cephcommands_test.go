package e2e

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/holdfast-storage/holdfast/test/commands"
)

//go:embed cephcommands.py
var cephCommands string

// notHere are commands of modules that are not switched on here, and of later releases than the
// one that is tested. get is test/commands' example of a COMMAND.
var notHere = []string{
	"get", "auth get {entity}", "influx", "zabbix", "dashboard", "auth rotate",
	"auth wipe-rotating-service-keys", "fs rename", "adopt", "recover-mons",
	"mirror-token", "shell", "-s",
}

// commandsAreKnown has Ceph's own tables of commands tell which commands of Ceph in Holdfast's texts Ceph refuses.
func (b *bed) commandsAreKnown() {
	b.Helper()
	all, err := commands.All("../..", "holdfast ceph")
	if err != nil {
		b.Fatal(err)
	}
	s, err := b.filesystem()
	if err != nil {
		b.Fatal(err)
	}
	real := strings.NewReplacer("mds.a", "mds."+s.Active, "mon.a", "mon."+b.daemonOf(1, "ceph-mon").Spec.ID)
	lines := []string{"osd unset pauserd"} // which Ceph refuses: it prints the name, and takes another one
	for _, c := range all {
		words := c.Words()[2:]
		if end := slices.Index(words, "|"); end >= 0 {
			words = words[:end]
		}
		line := strings.TrimPrefix(strings.Join(words, " "), "shell -- ceph ")
		if !slices.ContainsFunc(notHere, func(begin string) bool {
			return line == begin || strings.HasPrefix(line,
				begin+" ")
		}) {
			lines = append(lines, real.Replace(line))
		}
	}
	if len(lines) < 60 {
		b.Errorf("%d commands are found: %q", len(lines), lines)
	}
	refused := b.holdfast(0, "ceph", "shell", "--", "bash", "-c",
		"/usr/bin/python3 -c \"$1\" <<<\"$2\"", "-", cephCommands, strings.Join(lines, "\n"))
	if got := strings.TrimSpace(refused); got != "osd unset pauserd" {
		b.Errorf("Ceph does not know, or refuses, of %d commands:\n%s", len(lines), got)
	}
}
