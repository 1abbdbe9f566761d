package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// recorder notes what a check finds.
type recorder struct {
	*testing.T
	found []string
}

type stop struct{}

func (r *recorder) Errorf(format string, args ...any) {
	r.found = append(r.found, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(stop{})
}

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

// finds are the faults that one check finds in a driver.
func finds(t *testing.T, c check, fault func(engine.Driver) engine.Driver) []string {
	r, s := &recorder{T: t}, subject(fault)
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(stop{}) {
				panic(p)
			}
		}()
		c.run(newBench(r, &s))
	}()
	return r.found
}

// bad is a driver of which something is wrong.
type bad struct {
	engine.Driver
	plan    func(v *engine.View, now time.Time, plan func(*engine.View) *engine.Plan) *engine.Plan
	observe func(context.Context) error
	perform func(engine.Command) error
	foresee func(before *engine.View) any
	secrets bool
}

func (b *bad) Plan(v *engine.View, now time.Time) *engine.Plan {
	next := func(v *engine.View) *engine.Plan { return b.Driver.Plan(v, now) }
	if b.plan == nil {
		return next(v)
	}
	return b.plan(v, now, next)
}

func (b *bad) Observe(ctx context.Context, v *engine.View, s engine.SecretReader) (any, error) {
	if b.observe != nil {
		if err := b.observe(ctx); err != nil {
			return nil, err
		}
	}
	return b.Driver.Observe(ctx, v, s)
}

func (b *bad) Perform(ctx context.Context, v *engine.View, c engine.Command, s engine.SecretReader) error {
	if b.perform != nil {
		if err := b.perform(c); err != nil || c.Verb == "no such verb" {
			return err
		}
	}
	return b.Driver.Perform(ctx, v, c, s)
}

// patient is a driver that goes on with a command after its context has ended.
type patient struct{ engine.Driver }

func (p patient) Perform(ctx context.Context, v *engine.View, c engine.Command, s engine.SecretReader) error {
	if ctx.Err() != nil && c.Verb == "init" {
		time.Sleep(4 * impatient)
	}
	return p.Driver.Perform(ctx, v, c, s)
}

func (b *bad) Foresee(before, after *engine.View, commands []engine.Command) any {
	if b.foresee != nil {
		return b.foresee(before)
	}
	return b.Driver.Foresee(before, after, commands)
}

func (b *bad) MakeSecret(w engine.SecretWant) (map[string][]byte, error) {
	if b.secrets {
		return map[string][]byte{"x": []byte("x")}, nil
	}
	return b.Driver.MakeSecret(w)
}

// planning makes a driver that plans in a bad way.
func planning(plan func(v *engine.View, now time.Time, plan func(*engine.View) *engine.Plan) *engine.Plan) func(engine.Driver) engine.Driver {
	return func(d engine.Driver) engine.Driver { return &bad{Driver: d, plan: plan} }
}

// spoiling makes a driver that plans well and then spoils its plan.
func spoiling(spoil func(v *engine.View, p *engine.Plan)) func(engine.Driver) engine.Driver {
	return planning(func(v *engine.View, _ time.Time, plan func(*engine.View) *engine.Plan) *engine.Plan {
		p := plan(v)
		spoil(v, p)
		return p
	})
}

// blind makes a driver that plans as if the hosts were otherwise.
func blind(change func(*api.Host)) func(engine.Driver) engine.Driver {
	return planning(func(v *engine.View, _ time.Time, plan func(*engine.View) *engine.Plan) *engine.Plan {
		x := *v
		x.Hosts = slices.Clone(v.Hosts)
		for i := range x.Hosts {
			change(&x.Hosts[i])
		}
		return plan(&x)
	})
}

// refusing makes a driver that never lets a host have a mode.
func refusing(mode api.HostMode) func(engine.Driver) engine.Driver {
	return spoiling(func(v *engine.View, p *engine.Plan) {
		for _, h := range v.Hosts {
			if h.ModeOf() == mode {
				p.Daemons, p.Remove, p.Done = nil, nil, false
				without(p, func(d api.Decision) bool { return d.Object == "host/"+h.Name })
				p.Decide(api.VerdictRefuse, "host/"+h.Name, "it is never a good time")
			}
		}
	})
}

func without(p *engine.Plan, drop func(api.Decision) bool) {
	p.Decisions = slices.DeleteFunc(p.Decisions, drop)
}

var errAgain = errors.New("it is there already")

// How many drivers were made, and how many plan at this moment.
var drivers, planned atomic.Int64

// faults are drivers with one fault each, the check that is to find it, and words of what it says then.
var faults = []struct {
	check, name string
	fault       func(engine.Driver) engine.Driver
	want        string
}{
	{"waits without nodes", "waits without a word", spoiling(func(v *engine.View, p *engine.Plan) {
		if len(v.Nodes) == 0 {
			p.Status.Reasons = nil
		}
	}), "not OFFLINE with a reason"},
	{"comes up and stays", "writes into its view", spoiling(func(v *engine.View, _ *engine.Plan) { v.Hosts[0].Spec.Reason += "x" }), "changed its view"},
	{"comes up and stays", "throws dice", spoiling(func(_ *engine.View, p *engine.Plan) {
		p.Decide(api.VerdictSkip, "dice/1", "the number is %d", rand.Int64())
	}), "two plans of one view differ"},
	{"comes up and stays", "takes the first", spoiling(func(v *engine.View, p *engine.Plan) {
		p.Decide(api.VerdictSkip, "cluster/c", "the first is %s", v.Hosts[0].Name)
	}), "order of the view's lists"},
	{"comes up and stays", "never rests", spoiling(func(v *engine.View, p *engine.Plan) {
		for _, d := range v.Daemons {
			d.Spec.StopOrder++
			if p.Done {
				p.Done = false
				p.Change("daemon/"+d.Name, engine.DaemonChange{Daemon: d, Reason: "it could be better"})
			}
		}
	}), "there is no end"},
	{"comes up and stays", "tells the time", planning(func(v *engine.View, now time.Time, plan func(*engine.View) *engine.Plan) *engine.Plan {
		p := plan(v)
		p.Decide(api.VerdictSkip, "cluster/c", "it is %s now", now.Format(time.Kitchen))
		return p
	}), "another plan is made later"},
	{"comes up and stays", "tells secrets", spoiling(func(_ *engine.View, p *engine.Plan) { p.Decide(api.VerdictSkip, "cluster/c", "it is key of c-key") }), "what secret c-key holds"},
	{"comes up and stays", "prints badly", spoiling(func(_ *engine.View, p *engine.Plan) {
		p.Decide(api.VerdictSkip, "cluster/c", "%s", "%!d(string=x) daemons")
	}), "printed in the wrong way"},
	{"comes up and stays", "says nothing", spoiling(func(_ *engine.View, p *engine.Plan) { p.Decide(api.VerdictSkip, "cluster/c", "") }), "is no sentence"},
	{"comes up and stays", "is done before it has begun", spoiling(func(_ *engine.View, p *engine.Plan) { p.Done = true }), "something is left to do"},
	{"comes up and stays", "removes what is not there", spoiling(func(_ *engine.View, p *engine.Plan) {
		p.Remove = append(p.Remove, engine.Removal{Name: "c-x", Reason: "it is not there"})
	}), "daemon c-x is removed, and is not there"},
	{"comes up and stays", "writes twice", spoiling(func(_ *engine.View, p *engine.Plan) { p.Daemons = append(p.Daemons, p.Daemons...) }), "is planned twice"},
	{"comes up and stays", "refuses and acts", spoiling(func(_ *engine.View, p *engine.Plan) { p.Refused = true }), "a refused plan has more in it"},
	{"is the same at any time", "remembers", func(d engine.Driver) engine.Driver {
		n := drivers.Add(1)
		return &bad{Driver: d, plan: func(v *engine.View, _ time.Time, plan func(*engine.View) *engine.Plan) *engine.Plan {
			p := plan(v)
			p.Decide(api.VerdictSkip, "cluster/c", "driver %d says so", n)
			return p
		}}
	}, "another driver plans otherwise"},
	{"resumes after a crash", "begins once", spoiling(func(v *engine.View, p *engine.Plan) {
		if len(v.Daemons) > 0 {
			p.Daemons = slices.DeleteFunc(p.Daemons, func(c engine.DaemonChange) bool { return c.New })
		}
	}), "after a crash"},
	{"repeats are harmless", "does it once", func(d engine.Driver) engine.Driver {
		done := false
		return &bad{Driver: d, perform: func(engine.Command) error {
			if done {
				return errAgain
			}
			done = true
			return nil
		}}
	}, "it is there already"},
	{"foresees what it does", "foresees nothing", func(d engine.Driver) engine.Driver {
		return &bad{Driver: d, foresee: func(before *engine.View) any { return before.System }}
	}, "it is not foreseen that it is ONLINE"},
	{"foresees what it does", "acts on what it foresees", func(d engine.Driver) engine.Driver {
		return &bad{Driver: d, foresee: func(before *engine.View) any {
			before.Cluster.Generation++
			return before.System
		}}
	}, "changed something"},
	{"heeds maintenance", "stops without a word", spoiling(func(_ *engine.View, p *engine.Plan) {
		without(p, func(d api.Decision) bool { return strings.HasPrefix(d.Object, "host/") })
	}), "nothing is said of host"},
	{"heeds maintenance", "knows no maintenance", blind(func(h *api.Host) { h.Spec.Mode = "" }), "nothing is said of host"},
	{"heeds maintenance", "refuses all", refusing(api.HostMaintenance), "no host can be had in maintenance"},
	{"heeds drains", "knows no drains", blind(func(h *api.Host) { h.Spec.Mode = "" }), "nothing is said of host"},
	{"heeds drains", "refuses all", refusing(api.HostDrain), "(anchored: false), is refused"},
	{"tells silent agents nothing", "hears voices", blind(func(h *api.Host) { h.Status.Conditions = nil }), "is told to stop"},
	{"does no harm unknowing", "takes silence for emptiness", spoiling(func(v *engine.View, p *engine.Plan) {
		if v.System == nil && len(v.Daemons) > 0 {
			p.Remove = append(p.Remove, engine.Removal{Name: v.Daemons[len(v.Daemons)-1].Name, Reason: "nobody needs it"})
		}
	}), "with no answer"},
	{"does no harm unknowing", "takes silence for consent", spoiling(func(v *engine.View, p *engine.Plan) {
		if v.System == nil {
			p.Status.Status = api.StorageOnline
		}
	}), "taken for well"},
	{"refuses with a reason", "refuses without a word", spoiling(func(_ *engine.View, p *engine.Plan) {
		without(p, func(d api.Decision) bool { return d.Verdict == api.VerdictRefuse })
	}), "is not refused"},
	{"lets nodes go", "falls with a node", spoiling(func(v *engine.View, p *engine.Plan) {
		if len(v.Nodes) == 3 {
			p.Done, p.Status.Status, p.Status.Message = false, api.StorageOffline, "a node is missing"
		}
	}), "the cluster is OFFLINE"},
	{"lets nodes go", "keeps what nobody wants", spoiling(func(v *engine.View, p *engine.Plan) {
		if len(v.Nodes) == 3 {
			p.Remove = nil
			without(p, func(d api.Decision) bool { return strings.HasPrefix(d.Object, "node/") })
		}
	}), "nothing is said of why"},
	{"plans alike in all modes", "looks away", planning(func(v *engine.View, _ time.Time, plan func(*engine.View) *engine.Plan) *engine.Plan {
		if v.Cluster.ModeOf() == api.ClusterObserved {
			return &engine.Plan{Status: api.StorageStatusStatus{Type: v.Cluster.Spec.Type, Message: "nobody looks"}}
		}
		return plan(v)
	}), "is planned otherwise"},
	{"ends", "never ends", spoiling(func(_ *engine.View, p *engine.Plan) { p.Finished = false }), "does not end"},
	{"ends", "destroys what is kept", spoiling(func(v *engine.View, p *engine.Plan) {
		if p.Remove = nil; v.Cluster.DeletionTimestamp != nil && len(p.Daemons) == 0 {
			for _, d := range v.Daemons {
				d.Spec.StopOrder, d.Spec.OnRemoval = d.Spec.StopOrder+1, api.DeletionWipe
				p.Change("daemon/"+d.Name, engine.DaemonChange{Daemon: d, Reason: "all has to go"})
			}
		}
	}), "is told to destroy its own"},
	{"ends", "ends too early", spoiling(func(v *engine.View, p *engine.Plan) { p.Finished = v.Cluster.DeletionTimestamp != nil }), "of a cluster that is not"},
	{"can be used at once", "is one at a time", spoiling(func(_ *engine.View, p *engine.Plan) {
		if planned.Add(1) > 1 {
			p.Decide(api.VerdictSkip, "cluster/c", "somebody else plans")
		}
		time.Sleep(time.Millisecond)
		planned.Add(-1)
	}), "made at once"},
	{"heeds contexts", "waits for ever", func(d engine.Driver) engine.Driver {
		return &bad{Driver: d, observe: func(ctx context.Context) error {
			if ctx.Err() != nil {
				time.Sleep(4 * impatient)
			}
			return nil
		}}
	}, "Observe goes on"},
	{"heeds contexts", "carries out what was cancelled", func(d engine.Driver) engine.Driver { return patient{d} }, `Perform of "init" goes on`},
	{"knows its limits", "does anything", func(d engine.Driver) engine.Driver {
		return &bad{Driver: d, perform: func(engine.Command) error { return nil }}
	}, "does not exist is carried out"},
	{"knows its limits", "makes any secret", func(d engine.Driver) engine.Driver { return &bad{Driver: d, secrets: true} }, "does not exist is made"},
}

// impatient is how promptly the wrong drivers have to answer. Some of them do so after the test has ended.
const impatient = 50 * time.Millisecond

// TestFaults: each check finds the drivers that it is there for.
func TestFaults(t *testing.T) {
	defer func(was time.Duration) { promptly = was }(promptly)
	promptly = impatient
	found := map[string]bool{}
	for _, test := range faults {
		c := checks[slices.IndexFunc(checks, func(c check) bool { return c.name == test.check })]
		if all := finds(t, c, test.fault); !slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, test.want) }) {
			t.Errorf("%q finds nothing like %q in a driver that %s: %q", test.check, test.want, test.name, all)
		}
		found[test.check] = true
	}
	for _, c := range checks {
		if !found[c.name] {
			t.Errorf("nothing shows that %q can find anything", c.name)
		}
	}
}
