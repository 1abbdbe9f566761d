package hosts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tailBytes is how much of the end of each log is printed.
const tailBytes = 8 << 10

// daemonLogs are the logs of the daemons that an agent of Holdfast runs on a host.
const daemonLogs = "/var/lib/holdfast/agent/daemons/*/log*"

// Diagnose prints what runs on each host and the ends of its logs: of what Start started, of all below its /var/log, and of the
// daemons.
func (l *Lab) Diagnose(t T) {
	t.Helper()
	for _, h := range l.hosts {
		power := "is off"
		if h.On() {
			power = "is on"
		}
		t.Logf("==== host %s (%s) %s", h.Name, h.IP, power)
		daemons, _ := filepath.Glob(h.Path(daemonLogs))
		for _, path := range append(daemons, filepath.Join(h.Dir(), "logs"), h.Path("/var/log")) {
			printLogs(t, path)
		}
	}
}

// printLogs prints the ends of all logs at or below a path.
func printLogs(t T, path string) {
	t.Helper()
	err := filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		tail, err := readTail(path)
		if err != nil {
			return err
		}
		if tail != "" {
			t.Logf("---- %s\n%s", path, tail)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Logf("hosts: while reading logs: %v", err)
	}
}

// readTail reads the end of a file, from the start of a line.
func readTail(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	from := max(0, info.Size()-tailBytes)
	buf := make([]byte, info.Size()-from)
	n, err := f.ReadAt(buf, from)
	if n == 0 && err != nil && info.Size() > 0 {
		return "", fmt.Errorf("while reading %s: %w", path, err)
	}
	text := string(buf[:n])
	if _, rest, ok := strings.Cut(text, "\n"); from > 0 && ok {
		text = rest
	}
	return strings.TrimRight(text, "\n"), nil
}
