package conformance

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/sim"
)

// How many drivers were made, and how many plan at this moment.
var drivers, planned atomic.Int64

// deface has the first resource look otherwise for good.
func deface(v *engine.View, p *engine.Plan) {
	for _, r := range engine.OfKind[*api.Volume](v.Resources) {
		if r.Status.Layout == "" && r.Status.State == api.ResourceOnline {
			next := r.DeepCopy()
			next.Status.Layout = "twice"
			p.PutResource(r, next)
		}
	}
}

// second makes drivers of which the first of each storage system is sound, and the others spoil their plans.
func second(spoil func(*engine.View, *engine.Plan)) func(engine.Driver) engine.Driver {
	made := map[engine.Driver]bool{}
	return func(d engine.Driver) engine.Driver {
		if made[d] {
			return spoiling(spoil)(d)
		}
		made[d] = true
		return d
	}
}

// hopeful is a driver that finds a cluster worse than it foresaw.
type hopeful struct {
	engine.Driver
	seen any
}

func (h *hopeful) Observe(ctx context.Context, v *engine.View, s engine.SecretReader) (any, error) {
	var err error
	h.seen, err = h.Driver.Observe(ctx, v, s)
	return h.seen, err
}

func (h *hopeful) Plan(v *engine.View, now time.Time) *engine.Plan {
	p := h.Driver.Plan(v, now)
	if v.System != nil && v.System == h.seen && p.Done {
		p.Done, p.Status.Status, p.Status.Message = false, api.StorageDegraded, "it could be better"
	}
	return p
}

// forgetful is a driver that cannot be used any more for what it forgot.
type forgetful struct {
	engine.Driver
	gone bool
}

func (f *forgetful) Forget(string, string) { f.gone = true }

func (f *forgetful) Observe(ctx context.Context, v *engine.View, s engine.SecretReader) (any, error) {
	if f.gone {
		return nil, errAgain
	}
	return f.Driver.Observe(ctx, v, s)
}

// faultsOfChecks are drivers that go wrong in time: from run to run, from leader to leader, and to the end.
var faultsOfChecks = []fault{
	{"waits without nodes", "waits without a word", spoiling(func(v *engine.View, p *engine.Plan) {
		if len(v.Nodes) == 0 {
			p.Status.Reasons = nil
		}
	}), "not OFFLINE with a reason"},
	{"waits without nodes", "does not wait", spoiling(func(v *engine.View, p *engine.Plan) {
		if len(v.Nodes) == 0 && len(v.Daemons) == 0 {
			d := api.Daemon{ObjectMeta: metav1.ObjectMeta{Name: "c-x"}, Spec: api.DaemonSpec{Cluster: "c", Host: "h1", State: api.WantRunning}}
			p.Change("daemon/c-x", engine.DaemonChange{Daemon: d, New: true, Reason: "it may be of use"})
		}
	}), "without nodes daemons are made"},
	{"comes up and stays", "cannot ask", func(d engine.Driver) engine.Driver {
		return &bad{Driver: d, observe: func(context.Context) error { return errAgain }}
	}, "Observe: it is there already"},
	{"comes up and stays", "is never well", spoiling(func(_ *engine.View, p *engine.Plan) { p.Done = false }), "and not ONLINE"},
	{"comes up and stays", "has no health", spoiling(func(_ *engine.View, p *engine.Plan) { p.Status.Health = "" }), `and the health ""`},
	{"comes up and stays", "is restless", planning(func(v *engine.View, now time.Time, plan func(*engine.View) *engine.Plan) *engine.Plan {
		p := plan(v)
		if p.Done && now.Second()%5 == 0 {
			for _, n := range v.Nodes {
				p.Nodes = append(p.Nodes, engine.NodeStatus{Name: n.Name, Status: n.Status})
			}
		}
		return p
	}), "a cluster that is well is changed again"},
	{"is the same at any time", "remembers", func(d engine.Driver) engine.Driver {
		n := drivers.Add(1)
		return &bad{Driver: d, plan: func(v *engine.View, _ time.Time, plan func(*engine.View) *engine.Plan) *engine.Plan {
			p := plan(v)
			p.Decide(api.VerdictSkip, api.ReasonUnknown, "cluster/c", "driver %d says so", n)
			return p
		}}
	}, "another driver plans otherwise"},
	{"resumes after a crash", "begins once", spoiling(func(v *engine.View, p *engine.Plan) {
		if len(v.Daemons) > 0 {
			p.Daemons = slices.DeleteFunc(p.Daemons, func(c engine.DaemonChange) bool { return c.New })
		}
	}), "after a crash"},
	{"resumes after a crash", "does otherwise what others began", second(deface), "all ends otherwise"},
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
	{"repeats are harmless", "does it twice", func(d engine.Driver) engine.Driver {
		times := 0
		return &bad{Driver: d, perform: func(c engine.Command) error {
			if c.Verb == "init" {
				times++
			}
			return nil
		}, plan: func(v *engine.View, _ time.Time, plan func(*engine.View) *engine.Plan) *engine.Plan {
			p := plan(v)
			if times > 1 {
				deface(v, p)
			}
			return p
		}}
	}, "all ends otherwise"},
	{"foresees what it does", "foresees nothing", func(d engine.Driver) engine.Driver {
		return &bad{Driver: d, foresee: func(before, _ *engine.View, _ []engine.Command) any { return before.System }}
	}, "it is not foreseen that it is ONLINE"},
	{"foresees what it does", "acts on what it foresees", func(d engine.Driver) engine.Driver {
		return &bad{Driver: d, foresee: func(before, _ *engine.View, _ []engine.Command) any {
			before.Cluster.Generation++
			return before.System
		}}
	}, "changed something"},
	{"foresees what it does", "does not foresee what its commands do", func(d engine.Driver) engine.Driver {
		return &bad{Driver: d, foresee: func(before, after *engine.View, _ []engine.Command) any { return d.Foresee(before, after, nil) }}
	}, "it is shown again in the next step"},
	{"foresees what it does", "foresees more than there is", func(d engine.Driver) engine.Driver {
		return &bad{Driver: d, foresee: func(before, after *engine.View, commands []engine.Command) any {
			next := d.Foresee(before, after, commands)
			if state, ok := next.(*sim.ToyState); ok && state != nil {
				state.Initialized = true
			}
			return next
		}}
	}, `and these were given: ["init"`},
	{"foresees what it does", "is too hopeful", func(d engine.Driver) engine.Driver { return &hopeful{Driver: d} }, "the end is foreseen as ONLINE"},
	{"foresees what it does", "never ends", spoiling(func(_ *engine.View, p *engine.Plan) { p.Finished = false }), "it is not foreseen that it ends"},
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
	{"ends", "ends without a word", spoiling(func(v *engine.View, p *engine.Plan) {
		if v.Cluster.DeletionTimestamp == nil {
			return
		}
		p.Daemons, p.Remove = nil, nil
		for i := range v.Daemons {
			if d := &v.Daemons[i]; d.DeletionTimestamp == nil {
				p.Remove = append(p.Remove, engine.Removal{Name: d.Name, Reason: "the cluster is deleted"})
			}
		}
	}), "goes before it was told"},
	{"can be used at once", "is one at a time", spoiling(func(_ *engine.View, p *engine.Plan) {
		if planned.Add(1) > 1 {
			p.Decide(api.VerdictSkip, api.ReasonUnknown, "cluster/c", "somebody else plans")
		}
		time.Sleep(time.Millisecond)
		planned.Add(-1)
	}), "made at once"},
	{"knows its silence", "is content with none", func(d engine.Driver) engine.Driver { return constant{d, ""} }, "with no answer none is missed"},
	{"knows its silence", "hears nothing", func(d engine.Driver) engine.Driver { return constant{d, "no answer"} }, "nothing was ever started, and yet an answer is missing"},
	{"heeds contexts", "waits for ever", func(d engine.Driver) engine.Driver {
		return &bad{Driver: d, observe: func(ctx context.Context) error {
			if ctx.Err() != nil {
				select {} // for ever
			}
			return nil
		}}
	}, "Observe goes on"},
	{"heeds contexts", "carries out what was cancelled", func(d engine.Driver) engine.Driver { return patient{d} }, `Perform of "init" goes on`},
	{"knows its limits", "does anything", func(d engine.Driver) engine.Driver {
		return &bad{Driver: d, perform: func(engine.Command) error { return nil }}
	}, "does not exist is carried out"},
	{"knows its limits", "makes any secret", func(d engine.Driver) engine.Driver { return &bad{Driver: d, secrets: true} }, "does not exist is made"},
	{"knows its limits", "forgets all clusters", func(d engine.Driver) engine.Driver { return &forgetful{Driver: d} }, "cannot be asked again"},
}

// constant is a driver that says the same of each view that is, or is not, without an answer.
type constant struct {
	engine.Driver
	unanswered string
}

func (c constant) Unanswered(*engine.View) string { return c.unanswered }
