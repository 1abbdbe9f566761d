package systemd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/unit"
	godbus "github.com/godbus/dbus/v5"
)

// standIn takes the place of systemd in these tests: it answers, on a message bus of the test's own, the calls of
// org.freedesktop.systemd1 that the runtime makes, reads the real unit files and runs real processes. It is not systemd: what
// it shows is that the runtime speaks to such a service rightly, not that systemd takes the unit files.
type standIn struct {
	conn *godbus.Conn
	dir  string
	wg   sync.WaitGroup

	mu       sync.Mutex
	services map[string]*svc
	jobs     int
	enabled  map[string]bool
	loaded   map[string]bool
}

// svc is one service.
type svc struct {
	leaves          bool          // what it started
	held            chan struct{} // what it left behind ends when this is closed; at once when nil
	cmd             *exec.Cmd
	active, sub     string
	pid, restarts   uint32
	code, status    int32
	started, exited time.Time
	delay           time.Duration
	stopping        bool
	ended           chan struct{}
}

const (
	managerPath  = godbus.ObjectPath("/org/freedesktop/systemd1")
	managerIface = "org.freedesktop.systemd1.Manager"
)

// startBus starts a message bus on a socket of its own, and returns its address.
func startBus(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hfbus")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	conf := filepath.Join(dir, "bus.conf")
	address := "unix:path=" + filepath.Join(dir, "socket")
	text := `<busconfig><type>session</type><listen>` + address + `</listen><auth>EXTERNAL</auth><policy context="default">
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("dbus-daemon", "--nofork", "--print-address", "--config-file="+conf)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("the package dbus is needed: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	if _, err := out.Read(make([]byte, 256)); err != nil {
		t.Fatal(err)
	}
	return address
}

func newStandIn(t *testing.T, address, dir string) *standIn {
	t.Helper()
	conn, err := godbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	s := &standIn{conn: conn, dir: dir, services: map[string]*svc{}, enabled: map[string]bool{}, loaded: map[string]bool{}}
	if err := conn.Export(manager{s}, managerPath, managerIface); err != nil {
		t.Fatal(err)
	}
	if err := conn.ExportSubtree(props{s}, managerPath+"/unit", "org.freedesktop.DBus.Properties"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.RequestName("org.freedesktop.systemd1", godbus.NameFlagDoNotQueue); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.wg.Wait()
		conn.Close()
	})
	return s
}

// manager answers the calls of the manager.
type manager struct{ s *standIn }

// Subscribe and the others are methods of org.freedesktop.systemd1.Manager.
func (manager) Subscribe() *godbus.Error { return nil }

func (m manager) Reload() *godbus.Error {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	m.s.loaded = map[string]bool{}
	files, _ := filepath.Glob(filepath.Join(m.s.dir, "*"))
	for _, f := range files {
		m.s.loaded[filepath.Base(f)] = true
	}
	return nil
}

type change struct{ Type, File, Destination string }

func (m manager) EnableUnitFiles(names []string, _, _ bool) (bool, []change, *godbus.Error) {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	for _, n := range names {
		m.s.enabled[n] = true
	}
	return true, nil, nil
}

func (m manager) DisableUnitFiles(names []string, _ bool) ([]change, *godbus.Error) {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	for _, n := range names {
		delete(m.s.enabled, n)
	}
	return nil, nil
}

func (m manager) ResetFailedUnit(name string) *godbus.Error {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	if s := m.s.services[name]; s != nil {
		s.restarts = 0
	}
	return nil
}

func (m manager) StartUnit(name, _ string) (godbus.ObjectPath, *godbus.Error) {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	if !m.s.loaded[name] {
		return "", noSuchUnit(name)
	}
	s := m.s.services[name]
	if s == nil {
		s = &svc{}
		m.s.services[name] = s
	}
	result := "done"
	if s.active != "active" {
		*s = svc{}
		if err := m.s.exec(name, s); err != nil {
			result = "failed"
		}
	}
	return m.s.job(name, result), nil
}

func (m manager) StopUnit(name, _ string) (godbus.ObjectPath, *godbus.Error) {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	s := m.s.services[name]
	if s == nil {
		if !m.s.loaded[name] {
			return "", noSuchUnit(name)
		}
		return m.s.job(name, "done"), nil
	}
	s.stopping = true
	if s.sub == "auto-restart" || s.cmd == nil {
		s.active, s.sub = "inactive", "dead"
		return m.s.job(name, "done"), nil
	}
	s.active, s.sub = "deactivating", "stop-sigterm"
	m.s.changed(name)
	timeout := m.s.stopTimeout(name)
	_ = syscall.Kill(int(s.pid), syscall.SIGTERM)
	m.s.jobs++
	job := m.s.jobPath()
	id, pid, ended := uint32(m.s.jobs), int(s.pid), s.ended
	m.s.wg.Go(func() {
		select {
		case <-ended:
		case <-time.After(timeout):
			_ = syscall.Kill(pid, syscall.SIGKILL)
			<-ended
		}
		m.s.jobRemoved(id, job, name, "done")
	})
	return job, nil
}

func noSuchUnit(name string) *godbus.Error {
	return godbus.NewError("org.freedesktop.systemd1.NoSuchUnit", []any{"Unit " + name + " not found."})
}

func (s *standIn) jobPath() godbus.ObjectPath {
	return managerPath + godbus.ObjectPath(fmt.Sprintf("/job/%d", s.jobs))
}

// job makes a job that ends at once; the signal of its end follows the answer.
func (s *standIn) job(name, result string) godbus.ObjectPath {
	s.jobs++
	path, id := s.jobPath(), uint32(s.jobs)
	s.wg.Go(func() { s.jobRemoved(id, path, name, result) })
	return path
}

func (s *standIn) jobRemoved(id uint32, path godbus.ObjectPath, name, result string) {
	_ = s.conn.Emit(managerPath, managerIface+".JobRemoved", id, path, name, result)
}

// options reads the service section of a unit file, and takes systemd's quoting away.
func (s *standIn) options(name string) (map[string]string, error) {
	f, err := os.Open(filepath.Join(s.dir, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	opts, err := unit.DeserializeOptions(f)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, o := range opts {
		out[o.Section+"."+o.Name] = o.Value
	}
	return out, nil
}

func (s *standIn) stopTimeout(name string) time.Duration {
	opts, err := s.options(name)
	if err != nil {
		return 0
	}
	d, _ := time.ParseDuration(opts["Service.TimeoutStopSec"])
	return d
}

// split takes quoted arguments apart, the reverse of quote.
func split(line string) []string {
	var args []string
	var arg strings.Builder
	in := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '"':
			if in {
				args = append(args, arg.String())
				arg.Reset()
			}
			in = !in
		case !in:
		case c == '\\':
			i++
			arg.WriteByte(map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', '\\': '\\', '"': '"'}[line[i]])
		case c == '$' || c == '%':
			i++
			arg.WriteByte(c)
		default:
			arg.WriteByte(c)
		}
	}
	return args
}

// exec starts the process of a service.
func (s *standIn) exec(name string, v *svc) error {
	opts, err := s.options(name)
	if err != nil {
		return err
	}
	if pre := strings.TrimPrefix(opts["Service.ExecStartPre"], "/bin/mkdir -p "); pre != "" {
		if err := os.MkdirAll(split(pre)[0], 0o755); err != nil {
			return err
		}
	}
	log, err := os.OpenFile(strings.TrimPrefix(opts["Service.StandardOutput"], "append:"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := split(opts["Service.ExecStart"])
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = opts["Service.WorkingDirectory"], log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	v.cmd, v.active, v.sub, v.pid = cmd, "active", "running", uint32(cmd.Process.Pid)
	v.started, v.exited, v.code, v.status, v.ended = time.Now(), time.Time{}, 0, 0, make(chan struct{})
	v.delay, _ = time.ParseDuration(opts["Service.RestartSec"])
	v.leaves = opts["Service.KillMode"] == "process"
	s.wg.Go(func() { s.wait(name, v) })
	s.changed(name)
	return nil
}

// wait does what systemd does when a process ends: it kills the rest unless told otherwise, and starts it again after a pause.
func (s *standIn) wait(name string, v *svc) {
	group := -v.cmd.Process.Pid
	_ = v.cmd.Wait() // how it ended stands in the state
	s.awaitRest(name, v)
	// Like systemd, it is content only when nothing is left.
	for !v.leaves && syscall.Kill(group, syscall.SIGKILL) == nil {
		time.Sleep(time.Millisecond)
	}
	s.mu.Lock()
	ws := v.cmd.ProcessState.Sys().(syscall.WaitStatus)
	v.exited, v.code, v.status = time.Now(), 1, int32(ws.ExitStatus())
	if ws.Signaled() {
		v.code, v.status = 2, int32(ws.Signal())
	}
	v.cmd, v.pid = nil, 0
	v.active, v.sub = "activating", "auto-restart"
	if v.stopping {
		v.active, v.sub = "inactive", "dead"
	}
	close(v.ended)
	s.changed(name)
	stopping, delay := v.stopping, v.delay
	s.mu.Unlock()
	if stopping {
		return
	}
	time.Sleep(delay) // the pause before a restart
	s.mu.Lock()
	defer s.mu.Unlock()
	if !v.stopping && s.services[name] == v && v.sub == "auto-restart" {
		v.restarts++
		_ = s.exec(name, v)
	}
}

// awaitRest waits for what the process has left behind, where a test holds that.
func (s *standIn) awaitRest(name string, v *svc) {
	s.mu.Lock()
	held := v.held
	if held != nil {
		v.pid, v.active, v.sub = 0, "deactivating", "stop-sigkill"
		s.changed(name)
	}
	s.mu.Unlock()
	if held != nil {
		<-held
	}
}

func (s *standIn) changed(name string) {
	_ = s.conn.Emit(unitPath(name), "org.freedesktop.DBus.Properties.PropertiesChanged", "org.freedesktop.systemd1.Unit",
		map[string]godbus.Variant{"SubState": godbus.MakeVariant("changed")}, []string{})
}

func unitPath(name string) godbus.ObjectPath {
	var b strings.Builder
	for _, c := range []byte(name) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return managerPath + "/unit/" + godbus.ObjectPath(b.String())
}

// props answers for the properties of units.
type props struct{ s *standIn }

// GetAll is a method of org.freedesktop.DBus.Properties.
func (p props) GetAll(msg godbus.Message, _ string) (map[string]godbus.Variant, *godbus.Error) {
	path, _ := msg.Headers[godbus.FieldPath].Value().(godbus.ObjectPath)
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	for name, v := range p.s.services {
		if unitPath(name) == path {
			return v.properties(name), nil
		}
	}
	return (&svc{active: "inactive", sub: "dead"}).properties("?"), nil
}

func (v *svc) properties(name string) map[string]godbus.Variant {
	out := map[string]godbus.Variant{}
	for key, value := range map[string]any{
		"Id": name, "ActiveState": v.active, "SubState": v.sub, "MainPID": v.pid, "NRestarts": v.restarts, "ExecMainCode": v.code, "ExecMainStatus": v.status,
		"ExecMainStartTimestamp": micro(v.started), "ExecMainExitTimestamp": micro(v.exited), "RestartUSec": uint64(v.delay.Microseconds()),
	} {
		out[key] = godbus.MakeVariant(value)
	}
	return out
}

func micro(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.UnixMicro())
}

// dial connects as a client of the test's own bus.
func dial(address string) func(ctx context.Context) (*godbus.Conn, error) {
	return func(ctx context.Context) (*godbus.Conn, error) {
		return godbus.Connect(address, godbus.WithContext(ctx))
	}
}
