package systemd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// longestPause is how long at most a service waits to be started again, and how long it runs until systemd is told to forget that it ended.
const longestPause = time.Minute

const (
	prefix = "holdfast-"
	suffix = ".service"
	// mark begins the first line of each of our unit files; what it was made from follows as JSON.
	mark = "# Written by Holdfast for the daemon "
)

func unitName(name string) string { return prefix + name + suffix }

// safe are the names that need no escaping in a unit's name (systemd.unit(5)).
var safe = regexp.MustCompile(`^[A-Za-z0-9:_.-]{1,128}$`)

// check refuses what systemd would refuse later, or in fewer words.
func check(p runtime.Process) error {
	if !safe.MatchString(p.Name) {
		return fmt.Errorf("%q cannot be the name of a unit", p.Name)
	}
	if len(p.Command) == 0 {
		return errors.New("no command")
	}
	_, err := exec.LookPath(p.Command[0])
	return err
}

// unitText is the unit file of a process. What older releases of systemd do not know (RestartSteps and RestartMaxDelaySec came
// with 254) they leave out; the pause is then always the same. forgive has it short again.
func unitText(p runtime.Process, delay time.Duration) (string, error) {
	bin, err := exec.LookPath(p.Command[0])
	if err != nil {
		return "", err
	}
	from, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	args := []string{quote(bin)}
	for _, arg := range p.Command[1:] {
		args = append(args, quote(arg))
	}
	var b strings.Builder
	line := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	line("%s%s", mark, from)
	line("[Unit]\nDescription=Holdfast daemon %s", p.Name)
	line("Wants=network-online.target\nAfter=network-online.target")
	line("StartLimitIntervalSec=0")
	line("\n[Service]\nType=exec")
	if p.RunDir != "" {
		line("ExecStartPre=/bin/mkdir -p %s", quote(p.RunDir))
	}
	line("ExecStart=%s", strings.Join(args, " "))
	if p.Dir != "" {
		line("WorkingDirectory=%s", percent(p.Dir))
	}
	line("StandardOutput=append:%s\nStandardError=append:%s", percent(p.LogFile), percent(p.LogFile))
	line("Environment=%s", quote("HOLDFAST_DAEMON="+p.Name))
	line("LimitNOFILE=1048576\nTasksMax=infinity")
	kill := "mixed"
	if p.KeepChildren {
		kill = "process"
	}
	line("KillMode=%s\nTimeoutStopSec=%dms", kill, p.StopTimeout.Milliseconds())
	line("Restart=always\nRestartSec=%dms\nRestartSteps=6\nRestartMaxDelaySec=%d", delay.Milliseconds(), int(longestPause.Seconds()))
	line("\n[Install]\nWantedBy=multi-user.target")
	return b.String(), nil
}

// quote writes one argument so that systemd takes it literally (systemd.service(5), Command lines).
func quote(arg string) string {
	r := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`, "$", "$$", "%", "%%")
	return `"` + r.Replace(arg) + `"`
}

// percent doubles what would begin a specifier.
func percent(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// writeUnit brings the unit file to what p says; changed is false when it was so already.
func writeUnit(dir string, p runtime.Process, delay time.Duration) (changed bool, err error) {
	text, err := unitText(p, delay)
	if err != nil {
		return false, err
	}
	path := filepath.Join(dir, unitName(p.Name))
	have, err := os.ReadFile(path)
	switch {
	case err == nil && string(have) == text:
		return false, nil
	case err == nil && !bytes.HasPrefix(have, []byte(mark)):
		return false, fmt.Errorf("%s exists and was not written by Holdfast: left as it is", path)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(p.LogFile), 0o750); err != nil {
		return false, err
	}
	return true, atomicfile.Write(path, []byte(text), 0o644)
}

func removeUnit(dir, name string) error {
	if err := os.Remove(filepath.Join(dir, unitName(name))); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return atomicfile.SyncDir(dir)
}

// readUnits returns the processes whose unit files are in dir. Units that others wrote are not ours, whatever their name.
func readUnits(dir string) ([]runtime.Process, error) {
	paths, err := filepath.Glob(filepath.Join(dir, prefix+"*"+suffix))
	if err != nil {
		return nil, err
	}
	var out []runtime.Process
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		first, _, _ := strings.Cut(string(text), "\n")
		from, ours := strings.CutPrefix(first, mark)
		var p runtime.Process
		if ours && json.Unmarshal([]byte(from), &p) == nil && unitName(p.Name) == filepath.Base(path) {
			out = append(out, p)
		}
	}
	return out, nil
}
