package ganesha

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
)

func TestParseVersion(t *testing.T) {
	if v, err := parseVersion("NFS-Ganesha Release = V4.3\nganesha compiled on Apr 28 2023\n"); err != nil || v != "4.3" {
		t.Errorf("%q, %v", v, err)
	}
	if _, err := parseVersion("something else"); err == nil {
		t.Error("no error")
	}
}

func local(t *testing.T) *service.Local {
	t.Helper()
	l := &service.Local{Daemon: &api.Daemon{}, Data: t.TempDir(), Run: t.TempDir(), Parameters: map[string]string{
		ganesha.ParamAddress: "192.0.2.1", ganesha.ParamFSAL: "none", ganesha.ParamStamp: "stamp",
	}}
	l.Daemon.Generation = 3
	write(t, filepath.Join(l.Data, ganesha.FileConf), conf("1 /a"))
	return l
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// conf is a configuration with exports, each "id pseudo".
func conf(exports ...string) string {
	text := fmt.Sprintf("# stamp\nLOG { destination = \"/run/%s/0\"; }\n", ganesha.DirReadings)
	for _, e := range exports {
		id, pseudo, _ := strings.Cut(e, " ")
		text += fmt.Sprintf("EXPORT { Export_Id = %s; Path = \"/\"; Pseudo = %q; }\n", id, pseudo)
	}
	return text
}

// loads writes what the process was given last, and what it says of it.
func loads(t *testing.T, l *service.Local, text string, number int, log string) {
	t.Helper()
	write(t, filepath.Join(l.Run, ganesha.FileLoaded), numbered(text, number))
	if err := os.MkdirAll(filepath.Join(l.Run, ganesha.DirReadings), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, readingFile(l, number), log)
}

func report(t *testing.T, l *service.Local) *ganesha.Report {
	t.Helper()
	text, err := Ganesha{}.Report(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ganesha.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestReload_killed: one that is killed before the server was told has told nothing.
func TestReload_killed(t *testing.T) {
	l := local(t)
	loads(t, l, conf("1 /a"), 4, complete)
	write(t, filepath.Join(l.Data, ganesha.FileConf), conf("1 /b"))
	l.PID = int32(os.Getpid())
	end := atomicfile.Watch("/proc", func(func() error) error { return errors.New("killed") })
	defer end()
	if _, err := (Ganesha{}).Perform(t.Context(), l, service.Command{Verb: ganesha.VerbReload}); err == nil {
		t.Error("it was told")
	}
	if r := report(t, l); r.Current {
		t.Error("what nobody was told of is served")
	}
	if r, err := lastReading(l); err != nil || r.number != 5 || r.text != conf("1 /b") {
		t.Errorf("the server would read %+v, %v", r, err)
	}
}

// A report tells whether the process serves what is wanted, by what the process says of the very text that it was given.
func TestReport_isCurrent(t *testing.T) {
	for _, tt := range []struct {
		name, loaded, log string
		number            int
		want              bool
	}{
		{"it serves it", conf("1 /a"), "x " + complete + "\n", 2, true},
		{"it has ended no reading", conf("1 /a"), "x :CRIT :Export block error\n", 2, false},
		{"it serves another one", conf("1 /b"), complete, 2, false},
		{"it has just started and does not listen", conf("1 /a"), complete, 0, false},
		{"an older Holdfast started it", "EXPORT { }\n", complete, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := local(t)
			write(t, filepath.Join(l.Data, ganesha.FileConf), conf("1 /a"))
			loads(t, l, tt.loaded, tt.number, tt.log)
			if r := report(t, l); r.Current != tt.want || r.Generation != 3 || !r.Starting {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestReport_oldFiles: while the files of a new generation are not written, the old ones tell nothing of it.
func TestReport_oldFiles(t *testing.T) {
	l := local(t)
	write(t, filepath.Join(l.Data, ganesha.FileConf), conf("1 /a"))
	loads(t, l, conf("1 /a"), 1, complete)
	if r := report(t, l); !r.Current {
		t.Errorf("%+v", r)
	}
	l.Parameters[ganesha.ParamStamp] = "new"
	if r := report(t, l); r.Current {
		t.Errorf("%+v", r)
	}
	if _, err := (Ganesha{}).Perform(t.Context(), l, service.Command{Verb: ganesha.VerbReload}); err == nil || !strings.Contains(err.Error(), "not written") {
		t.Error(err)
	}
}

// TestReload_olderServer: the Daemon of an older server has no stamp, and its configuration no place where the process tells what it has
// read. The agent believes that the process reads what it is told of, and nothing before.
func TestReload_olderServer(t *testing.T) {
	l, loaded := local(t), func(l *service.Local) string { return filepath.Join(l.Run, ganesha.FileLoaded) }
	delete(l.Parameters, ganesha.ParamStamp)
	old := func(id string) string {
		return "LOG { }\nEXPORT { Export_Id = " + id + "; Path = \"/\"; Pseudo = \"/a\"; }\n"
	}
	write(t, loaded(l), old("1"))
	write(t, filepath.Join(l.Data, ganesha.FileConf), old("1"))
	if r := report(t, l); !r.Current {
		t.Errorf("what the process read at its start: %+v", r)
	}
	write(t, filepath.Join(l.Data, ganesha.FileConf), old("2"))
	hangups := make(chan os.Signal, 8)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	l.PID = int32(os.Getpid())
	end := atomicfile.Watch("/proc", func(func() error) error { return errors.New("killed") })
	if _, err := (Ganesha{}).Perform(t.Context(), l, service.Command{Verb: ganesha.VerbReload}); err == nil || report(t, l).Current {
		t.Errorf("what nobody was told of is served (%v)", err)
	}
	end()
	write(t, loaded(l), old("2")+untold) // killed before the last signal
	if report(t, l).Current {
		t.Error("what nobody was told of is served")
	}
	if _, err := (Ganesha{}).Perform(t.Context(), l, service.Command{Verb: ganesha.VerbReload}); err != nil {
		t.Fatal(err)
	}
	if r := report(t, l); !r.Current {
		t.Errorf("what the process was told of: %+v", r)
	}
	select {
	case <-hangups:
	case <-time.After(10 * time.Second):
		t.Error("the process was not told")
	}
}

// TestReload_container: in a container the server writes a number into its file that is another
// process's on the host. That one is left alone.
func TestReload_container(t *testing.T) {
	l := local(t)
	delete(l.Parameters, ganesha.ParamStamp)
	const conf = "LOG { }\nEXPORT { Export_Id = 1; Path = \"/\"; Pseudo = \"/a\"; }\n"
	write(t, filepath.Join(l.Data, ganesha.FileConf), conf)
	stranger, server := bystander(t), bystander(t)
	write(t, filepath.Join(l.Run, ganesha.FilePID), strconv.Itoa(stranger.Process.Pid))
	l.PID = int32(server.Process.Pid)
	if _, err := (Ganesha{}).Perform(t.Context(), l, service.Command{Verb: ganesha.VerbReload}); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err == nil || err.Error() != "signal: hangup" {
		t.Errorf("the server: %v", err)
	}
	if err := stranger.Process.Signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if err := stranger.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the other process: %v", err)
	}
}

// bystander is a process that a SIGHUP ends.
func bystander(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// TestSteps: the server is never given a new export at the pseudo path of another one.
func TestSteps(t *testing.T) {
	for _, tt := range []struct {
		name   string
		from   []string
		ended  bool
		wanted []string
		want   [][]string
	}{
		{"clients change", []string{"1 /a"}, true, []string{"1 /a"}, [][]string{{"1 /a"}}},
		{"another directory", []string{"1 /a", "2 /b"}, true, []string{"7 /a", "2 /b"}, [][]string{{"2 /b"}, {"7 /a", "2 /b"}}},
		{"one more", []string{"1 /a"}, true, []string{"1 /a", "2 /b"}, [][]string{{"1 /a", "2 /b"}}},
		{"one takes the place of another", []string{"1 /a"}, true, []string{"1 /c", "2 /a"}, [][]string{{"1 /c"}, {"1 /c", "2 /a"}}},
		{"nobody knows whether it was read", []string{"2 /b"}, false, []string{"7 /a", "2 /b"}, [][]string{{"2 /b"}, {"7 /a", "2 /b"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var want []string
			for _, exports := range tt.want {
				want = append(want, conf(exports...))
			}
			got := steps(reading{text: conf(tt.from...), ended: tt.ended}, conf(tt.wanted...))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	l := local(t)
	if err := (Ganesha{}).ConfigureLocalService(t.Context(), l); err == nil || !strings.Contains(err.Error(), "apt-get install nfs-ganesha-none") {
		t.Error(err)
	}
	if _, err := (Ganesha{}).Perform(t.Context(), l, service.Command{Verb: "x"}); err == nil || !strings.Contains(err.Error(), "upgrade Holdfast") {
		t.Error(err)
	}
	_, err := (Ganesha{}).Perform(t.Context(), l, service.Command{Verb: ganesha.VerbReload})
	if err == nil || !strings.Contains(err.Error(), "no process of the server runs") {
		t.Error(err)
	}
	if r := report(t, l); r.Current {
		t.Error("what nobody has read counts as read")
	}
}
