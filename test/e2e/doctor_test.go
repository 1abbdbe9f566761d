package e2e

import (
	"errors"
	"fmt"
	"strings"
)

// wellByDoctor fails the test unless 'holdfast doctor' comes to find nothing that anybody has to do. It may tell of how full the disk of the
// machine is that the test runs on, and that there is no backup yet. Heartbeats that were slow while a network was cut, which Ceph remembers for
// minutes after, are muted.
func (b *bed) wellByDoctor() {
	b.Helper()
	for _, code := range []string{"OSD_SLOW_PING_TIME_BACK", "OSD_SLOW_PING_TIME_FRONT"} {
		b.ceph("health", "mute", code, "1h", "--sticky")
	}
	b.await("'holdfast doctor' to find that all is well", func() error {
		out, err := b.Holdfast("doctor")
		for line := range strings.Lines(out) {
			level, rest, _ := strings.Cut(line, " ")
			check, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			if level == "FAIL" || level == "WARN" && check != "snapshots" && check != "disk" || level == "SKIP" {
				err = errors.Join(err, errors.New(line))
			}
		}
		return err
	})
	b.holdfast(0, "doctor")
}

// doctorFinds checks that 'holdfast doctor' has a line that says this, and that the next one says what to do.
func doctorFinds(out, message, remedy string) error {
	lines := strings.Split(out, "\n")
	for i, line := range lines[:len(lines)-1] {
		if strings.Contains(line, message) && strings.Contains(lines[i+1], "→") && strings.Contains(lines[i+1], remedy) {
			return nil
		}
	}
	return fmt.Errorf("holdfast doctor does not find %q with %q:\n%s", message, remedy, out)
}
