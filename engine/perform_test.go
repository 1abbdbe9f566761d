package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// runsIn counts the cluster's runs within d, after a while.
func (l *lab) runsIn(t *testing.T, d time.Duration) int {
	r := &recorder{do: l.orch.HandleRefresh}
	_, stop := runScheduler(t, l, r)
	defer stop()
	time.Sleep(time.Minute)
	before := r.countOf("t")
	time.Sleep(d)
	return r.countOf("t") - before
}

// TestPerform_silentAfterFailure: a command that failed waits for its agent, which fell silent. The runs do not follow each other without a
// pause for it.
func TestPerform_silentAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.settle()
		l.Fail = func(op, object string) error {
			if op == "Ask" && strings.Contains(object, "v1") {
				return errors.New("the disk is full")
			}
			return nil
		}
		l.must(l.Create(t.Context(), &api.Volume{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "v1"}, Spec: api.VolumeSpec{Cluster: "t", Size: resource.MustParse("1Gi")},
		}))
		for range 5 {
			_, err := l.refresh()
			l.must(err)
			l.must(l.Tick(t.Context()))
		}
		l.must(l.SilenceAgent(t.Context(), "h1", true))
		if n := l.runsIn(t, 10*time.Second); n > 20 {
			t.Errorf("%d runs in 10 s", n)
		}
	})
}

// twoOfALine is a driver that asks for two things of one volume, of which one fails.
type twoOfALine struct {
	engine.Driver
	fails string
}

func (d *twoOfALine) Plan(v *engine.View, now time.Time) *engine.Plan {
	p := d.Driver.Plan(v, now)
	for _, verb := range []string{"start", "set"} {
		p.Commands = append(p.Commands, engine.Command{Verb: verb, Object: "v", Line: "volume/v", Reason: "it is wanted so"})
	}
	return p
}

func (d *twoOfALine) Perform(_ context.Context, _ *engine.View, c engine.Command, _ engine.SecretReader) error {
	if c.Verb == d.fails {
		return errors.New("no luck")
	}
	return nil
}

// TestPerform_heldUpAfterFailure: the same of a command that failed and then waits for another one of its line.
func TestPerform_heldUpAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.settle()
		d := &twoOfALine{Driver: l.toy, fails: "set"}
		l.orch.Driver = d
		_, err := l.refresh()
		l.must(err)
		d.fails = "start"
		if n := l.runsIn(t, time.Second); n > 5 {
			t.Errorf("%d runs in 1 s", n)
		}
	})
}

// relying is a driver that has every Daemon wait for its commands.
type relying struct {
	twoOfALine
	takes time.Duration
}

func (d *relying) Perform(ctx context.Context, v *engine.View, c engine.Command, s engine.SecretReader) error {
	time.Sleep(d.takes)
	return d.twoOfALine.Perform(ctx, v, c, s)
}

func (d *relying) Plan(v *engine.View, now time.Time) *engine.Plan {
	p := d.twoOfALine.Plan(v, now)
	for _, c := range p.Daemons {
		p.RelyOnCommands(c.Daemon.Name)
	}
	return p
}

// TestPerform_daemonsRely: a Daemon that relies on the commands is written when all of them were carried out, in the same run, and not before.
func TestPerform_daemonsRely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		d := &relying{twoOfALine: twoOfALine{Driver: l.toy, fails: "set"}}
		l.orch.Driver = d
		written := func() int {
			_, err := l.refresh()
			l.must(err)
			v, err := l.View(t.Context(), toyKey)
			l.must(err)
			return len(v.Daemons)
		}
		if n := written(); n != 0 {
			t.Errorf("%d Daemons were written though a command failed", n)
		}
		d.fails, d.takes = "", 6*time.Second
		time.Sleep(time.Hour) // past the pause of what failed
		if n := written(); n != 0 {
			t.Errorf("%d Daemons were written though what the run saw was 12 s old", n)
		}
		d.takes = 0
		if n := written(); n == 0 {
			t.Error("no Daemon was written though all commands were carried out")
		}
	})
}
