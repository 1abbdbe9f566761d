// Package servicetest holds the suite that every service.ServiceAgent passes, on real directories and devices and with the real programs where the host
// has them. It needs root.
package servicetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/failpoint"
)

// Subject is one kind of daemon as a service agent gets it, and what the suite has to know of it. One agent may be several subjects.
type Subject struct {
	// Agents are those of a package, as the program has them. Type names the one that is looked at.
	Agents []service.ServiceAgent
	Type   string
	// Code are packages whose places in the code are noted at which an agent was killed.
	Code []*failpoint.Points
	// New places a daemon on this host as an agent does before it calls the service agent: its directories (Dirs), files and devices. It is another one
	// each time, and cleared away with the test.
	New func(t *testing.T) *service.Local
	// Look finds the daemon's devices as they are now; nil where it has none.
	Look func(t *testing.T, l *service.Local)
	// Install are words that Initialize must say where no program is installed.
	Install []string
	// Outside are the paths outside of the daemon's directories that it may make, and that are gone with it.
	Outside func(l *service.Local) []string
	// Varies are files and directories whose content is another one each time that they are made, as of a database, as patterns (path.Match):
	// "data/store/store.db".
	Varies []string
	// Secrets are texts that must not be among the arguments of a program, nor in a file that others may read.
	Secrets []string
	// Whole fails the test unless all is there that the daemon needs to start; Gone, unless nothing of it is left outside of its directories. nil where
	// the files tell.
	Whole, Gone func(t *testing.T, l *service.Local)
	// Mounts says that file systems are mounted, which the suite cannot see to be the only thing that is done elsewhere.
	Mounts bool
	// StandIns are directories in which stand-ins for programs keep what they know.
	StandIns func(l *service.Local) []string
	// Serve has the daemon serve, so that its report is steady; nil where the agent makes no reports.
	Serve func(t *testing.T, l *service.Local)
	// Commands are carried out one after the other while it serves.
	Commands func(l *service.Local) []service.Command
	// Brief leaves out all but that it is killed, where another subject of the agent has shown the rest.
	Brief bool
}

// prompt is how soon a call has to return when its context ended. Programs that are killed and their children are waited for by then.
const prompt = 10 * time.Second

// Run runs the suite.
func Run(t *testing.T, s Subject) {
	if s.Brief {
		testKilled(t, &s)
		return
	}
	for _, c := range []struct {
		name string
		test func(t *testing.T, s *Subject)
	}{
		{"its name is its own and stays", testName},
		{"it says how to get what is not installed", testInitialize},
		{"to configure again changes nothing", testAgain},
		{"it writes to its own places alone", testSealed},
		{"secrets are for their owner alone", testSecrets},
		{"to destroy what was never configured changes nothing", testDestroyNothing},
		{"to destroy leaves nothing elsewhere and may be repeated", testDestroy},
		{"a device that is not Available stays as it is", testTaken},
		{"an ended context ends it", testEnded},
		{"killed anywhere it is brought to the same end and so is its removal", testKilled},
		{"cut off anywhere it is cleared away", testCutOff},
		{"reports are steady and short and change nothing", testReport},
		{"commands that are killed anywhere come to their end", testCommands},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, &s) })
	}
}

// agent is the one that is looked at.
func (s *Subject) agent(t *testing.T) service.ServiceAgent {
	t.Helper()
	for _, a := range s.Agents {
		if a.Name() == s.Type {
			return a
		}
	}
	t.Fatalf("there is no agent of the type %s", s.Type)
	return nil
}

func testName(t *testing.T, s *Subject) {
	seen := map[string]bool{}
	for _, a := range s.Agents {
		name := a.Name()
		if seen[name] || name == "" || name != strings.ToLower(name) || a.Name() != name {
			t.Errorf("an agent has the name %q", name)
		}
		seen[name] = true
	}
	if l := s.New(t); l.Daemon.Spec.Type != s.agent(t).Name() {
		t.Errorf("%s gets daemons of the type %s", s.Type, l.Daemon.Spec.Type)
	}
}

func testInitialize(t *testing.T, s *Subject) {
	a := s.agent(t)
	for range 2 {
		if err := a.Initialize(t.Context(), &service.Host{Name: "h"}); err != nil {
			t.Errorf("with its programs: %v", err)
		}
	}
	if v, ok := a.(service.Versioner); ok {
		text := ""
		all := &life{t: t, code: s.Code}
		if _, err := all.run(func() (err error) {
			text, err = v.Version(t.Context())
			return err
		}); err != nil || !strings.ContainsAny(text, "0123456789") || len(all.effects) > 0 {
			t.Errorf("version %q, %v; it did %v", text, err, all.effects)
		}
	}
	for _, name := range []string{"PATH", "TORUS_BIN"} {
		t.Setenv(name, t.TempDir())
	}
	err := a.Initialize(t.Context(), &service.Host{Name: "h"})
	for _, want := range s.Install {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without any program it says %v, not %q", err, want)
		}
	}
	if len(s.Install) == 0 {
		t.Error("nothing is said to be missing")
	}
}

func testAgain(t *testing.T, s *Subject) {
	l := s.New(t)
	s.mustBring(t, l)
	before := s.tree(t, l, true)
	if _, err := s.live(t, l, &life{}, func() error { return s.bring(t.Context(), t, l) }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, s.tree(t, l, true)); diff != "" {
		t.Errorf("the second time changed something (-before +after):\n%s", diff)
	}
}

// testEnded: with a context that has ended nothing is begun; what had nothing to do may say so.
func testEnded(t *testing.T, s *Subject) {
	l := s.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for what, do := range map[string]func(context.Context, *testing.T, *service.Local) error{"configure": s.bring, "destroy": s.destroy} {
		begin := time.Now()
		_, err := s.live(t, l, &life{}, func() error { return do(ctx, t, l) })
		if took := time.Since(begin); took > prompt {
			t.Errorf("to %s took %s", what, took)
		}
		if err == nil && what == "configure" {
			s.isWhole(t, l)
		}
	}
	s.mustBring(t, l)
}
