package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/failpoint"
)

// victim is a program that kills itself, in a process of its own: what it does is what a user starts.
type victim struct {
	// Does is "restore", "server" or "agent".
	Does    string
	Config  control.Config
	File    string
	Replace bool
	// Deaths is a file of the places that a victim died at, to which it writes where it dies itself.
	Deaths string
	// At is the effect before which it dies, from 1. With 0 it dies before each that is come to in a way in which nobody died yet.
	At int
	// Before names functions, the innermost first: it dies before the first effect that they lead to in this way, and before no other.
	Before string
	// Amid is a path, as for filepath.Glob: it dies when that is made.
	Amid string
	// Immortal has it never die.
	Immortal bool
}

const victimEnv = "HOLDFAST_TEST_VICTIM"

// effects are what the package does that lasts. What packages that it calls do so passes by package atomicfile, but for what etcd and a backup that is read
// do, which is amid something.
func controlEffects() []string {
	effects := strings.Fields("etcd.Start etcd.Restore etcd.Salvage backup.Verify backup.Prune member.Snapshot endpoints.Save endpoints.Key host.Set authority.Save next.Save " +
		"SaveNamed pki.SaveChain authority.Ensure pki.WriteKubeconfig")
	for _, name := range strings.Fields("Mkdir MkdirAll Write WriteFile Create CreateTemp OpenFile Remove RemoveAll Rename Link Symlink Guarded") {
		effects = append(effects, "os."+name, "atomicfile."+name)
	}
	return effects
}

func controlPlaces() (*failpoint.Points, error) { return failpoint.List(".", controlEffects()...) }

// runVictim is the main function of a victim.
func runVictim(text string) error {
	v := &victim{}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return err
	}
	code, err := controlPlaces()
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3) // The test is gone.
	}()
	if !v.Immortal {
		atomicfile.Watch("", v.guard(code))
	}
	if v.Amid != "" {
		v.dieAmid()
	}
	v.Config.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	return v.live()
}

func (v *victim) live() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	switch v.Does {
	case "restore":
		_, err := control.Restore(ctx, control.RestoreConfig{Config: v.Config, File: v.File, Replace: v.Replace})
		return err
	case "agent":
		a, err := control.OpenAgent(ctx, control.AgentConfig{DataDir: v.Config.DataDir, Name: v.Config.Name, JoinToken: v.Config.JoinToken, Log: v.Config.Log})
		if err == nil {
			a.Close()
		}
		return err
	}
	s, err := control.Start(ctx, v.Config)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return s.Wait(context.Background())
}

// guard ends the victim before an effect, as kill -9 does.
func (v *victim) guard(code *failpoint.Points) atomicfile.Guard {
	var mu sync.Mutex
	count, came := 0, map[string]int{}
	dead, _ := os.ReadFile(v.Deaths) // none yet
	known := strings.Split(string(dead), "\n")
	return func(effect func() error) error {
		here := code.Here()
		mu.Lock()
		count++
		came[here]++
		where := fmt.Sprintf("%s #%d", here, came[here])
		dies := v.At == count || v.At == 0 && !slices.Contains(known, where)
		if v.Before != "" {
			dies = strings.HasPrefix(functionsOf(code, here), v.Before+" ")
		}
		if dies {
			v.die(where)
		}
		mu.Unlock()
		return effect()
	}
}

// functionsOf are the functions that lead to an effect, the innermost first.
func functionsOf(code *failpoint.Points, here string) (names string) {
	for _, place := range strings.Fields(here) {
		if name := code.In(place); name != "" {
			names += name + " "
		}
	}
	return names
}

func (v *victim) die(here string) {
	f, err := os.OpenFile(v.Deaths, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, here)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the place of a death could not be written down:", err)
		os.Exit(4)
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// dieAmid ends the victim when a file is there that was not there before, since it started.
func (v *victim) dieAmid() {
	there := func() bool {
		paths, _ := filepath.Glob(v.Amid)
		return len(paths) > 0
	}
	was := there()
	go func() {
		for now := was; was || !now; now = there() {
			was = was && now
			time.Sleep(time.Millisecond)
		}
		v.die("")
	}()
}

// process is a victim that runs.
type process struct {
	cmd    *exec.Cmd
	ready  chan struct{}
	ended  chan struct{}
	output strings.Builder
	err    error
}

func (v victim) start(t *testing.T) *process {
	t.Helper()
	v.Config.Log = nil
	text, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	p := &process{cmd: exec.Command(os.Args[0]), ready: make(chan struct{}), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), victimEnv+"="+string(text))
	p.cmd.Stderr = &p.output
	in, err1 := p.cmd.StdinPipe() // The victim ends when it is closed.
	out, err2 := p.cmd.StdoutPipe()
	if p.err = errors.Join(err1, err2, p.cmd.Start()); p.err != nil {
		close(p.ended)
		return p
	}
	go func() {
		defer close(p.ended)
		defer in.Close()
		if text, _ := io.ReadAll(io.LimitReader(out, int64(len("ready")))); string(text) == "ready" {
			close(p.ready)
		}
		p.err = p.cmd.Wait()
	}()
	return p
}

// kill ends the process as kill -9 does.
func (p *process) kill() {
	if p.cmd.Process != nil {
		_ = p.cmd.Process.Kill() // it may have ended
	}
	<-p.ended
}

// died says, of a process that ended, whether it was by a kill; the error is that of one that ended in another way, and not well.
func (p *process) died() (killed bool, err error) {
	exit := &exec.ExitError{}
	if errors.As(p.err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true, nil
	}
	if p.err != nil {
		return false, fmt.Errorf("the program ended: %w\n%s", p.err, p.output.String())
	}
	return false, nil
}

// run runs a victim that ends, or is ready, and says whether it was killed before.
func (v victim) run(t *testing.T) (killed bool) {
	t.Helper()
	p := v.start(t)
	select {
	case <-p.ready:
		p.kill()
		return false
	case <-p.ended:
	case <-time.After(2 * time.Minute):
		p.kill()
		t.Fatalf("the program does not end\n%s", p.output.String())
	}
	killed, err := p.died()
	if err != nil {
		t.Fatal(err)
	}
	return killed
}

// keep starts a victim again whenever it has died, as an init system does, until stop is called.
func (v victim) keep(t *testing.T) (stop func()) {
	t.Helper()
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			p := v.start(t)
			select {
			case <-quit:
				if p.kill(); t.Failed() {
					t.Logf("%s said:\n%s", v.Config.Name, p.output.String())
				}
				return
			case <-p.ended:
			}
			if killed, err := p.died(); !killed {
				t.Errorf("%s ended by itself: %v", v.Config.Name, err)
				return
			}
		}
	}()
	stop = sync.OnceFunc(func() { close(quit); <-done })
	t.Cleanup(stop)
	return stop
}
