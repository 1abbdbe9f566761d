package conformance

import (
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// faultsOfPlans are drivers whose plans are not as plans have to be.
var faultsOfPlans = []fault{
	{"comes up and stays", "writes into its view", spoiling(func(v *engine.View, _ *engine.Plan) { v.Hosts[0].Spec.Reason += "x" }), "changed its view"},
	{"comes up and stays", "throws dice", spoiling(func(_ *engine.View, p *engine.Plan) {
		p.Decide(api.VerdictSkip, api.ReasonUnknown, "dice/1", "the number is %d", rand.Int64())
	}), "two plans of one view differ"},
	{"comes up and stays", "takes the first", spoiling(func(v *engine.View, p *engine.Plan) {
		p.Decide(api.VerdictSkip, api.ReasonUnknown, "cluster/c", "the first is %s", v.Hosts[0].Name)
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
		p.Decide(api.VerdictSkip, api.ReasonUnknown, "cluster/c", "it is %s now", now.Format(time.Kitchen))
		return p
	}), "another plan is made later"},
	{"comes up and stays", "tells secrets", spoiling(func(_ *engine.View, p *engine.Plan) {
		p.Decide(api.VerdictSkip, api.ReasonUnknown, "cluster/c", "it is key of c-key")
	}), "what secret c-key holds"},
	{"comes up and stays", "prints badly", spoiling(func(_ *engine.View, p *engine.Plan) {
		p.Decide(api.VerdictSkip, api.ReasonUnknown, "cluster/c", "%s", "%!d(string=x) daemons")
	}), "printed in the wrong way"},
	{"comes up and stays", "says nothing", spoiling(func(_ *engine.View, p *engine.Plan) { p.Decide(api.VerdictSkip, api.ReasonUnknown, "cluster/c", "") }), "is no sentence"},
	{"comes up and stays", "is done before it has begun", spoiling(func(_ *engine.View, p *engine.Plan) { p.Done = true }), "something is left to do"},
	{"comes up and stays", "removes what is not there", spoiling(func(_ *engine.View, p *engine.Plan) {
		p.Remove = append(p.Remove, engine.Removal{Name: "c-x", Reason: "it is not there"})
	}), "daemon c-x is removed, and is not there"},
	{"comes up and stays", "writes twice", spoiling(func(_ *engine.View, p *engine.Plan) { p.Daemons = append(p.Daemons, p.Daemons...) }), "is planned twice"},
	{"comes up and stays", "refuses and acts", spoiling(func(_ *engine.View, p *engine.Plan) { p.Refused = true }), "a refused plan has more in it"},
	{"comes up and stays", "has no plan", planning(func(*engine.View, time.Time, func(*engine.View) *engine.Plan) *engine.Plan { return nil }), "there is no plan"},
	{"comes up and stays", "writes in lines", spoiling(func(_ *engine.View, p *engine.Plan) {
		p.Decide(api.VerdictSkip, api.ReasonUnknown, "cluster/c", "one line\nand another")
	}), "has characters in it that no line has"},
	{"comes up and stays", "gives no reason", spoiling(func(_ *engine.View, p *engine.Plan) { p.Decide(api.VerdictSkip, "", "cluster/c", "it is as it is") }), `has the reason ""`},
	{"comes up and stays", "speaks of nothing", spoiling(func(_ *engine.View, p *engine.Plan) {
		p.Decide(api.VerdictSkip, api.ReasonUnknown, "", "it is as it is")
	}), `a decision is about ""`},
	{"comes up and stays", "has no type", spoiling(func(_ *engine.View, p *engine.Plan) { p.Status.Type = "" }), `the status is of type ""`},
	{"comes up and stays", "names its daemons as it likes", spoiling(func(_ *engine.View, p *engine.Plan) {
		for i := range p.Daemons {
			p.Daemons[i].Daemon.Name = "x-" + p.Daemons[i].Daemon.Name
		}
	}), "does not carry the name of its cluster"},
	{"comes up and stays", "asks whoever is not there", spoiling(func(_ *engine.View, p *engine.Plan) {
		p.Commands = append(p.Commands, engine.Command{Verb: "init", Object: "toy", Daemon: "c-x", Reason: "somebody has to"})
	}), "for the agent of daemon c-x"},
	{"comes up and stays", "asks for what it cannot do", spoiling(func(_ *engine.View, p *engine.Plan) {
		p.Commands = append(p.Commands, engine.Command{Verb: "polish", Object: "toy", Reason: "it is to shine"})
	}), "cannot be carried out"},
	{"comes up and stays", "speaks of nodes that are not there", spoiling(func(_ *engine.View, p *engine.Plan) {
		p.Nodes = append(p.Nodes, engine.NodeStatus{Name: "n9"})
	}), "a status is planned for node n9"},
	{"comes up and stays", "speaks of resources that are not there", spoiling(func(_ *engine.View, p *engine.Plan) {
		p.Resources = append(p.Resources, engine.ResourceChange{Resource: &api.Volume{ObjectMeta: metav1.ObjectMeta{Name: "w"}}})
	}), "a status is planned for volume/w"},
	{"comes up and stays", "lets go what is wanted", spoiling(func(v *engine.View, p *engine.Plan) { p.LetGo(v.Resources[0]) }), "volume/v is let go"},
	{"comes up and stays", "wants secrets that it cannot make", spoiling(func(_ *engine.View, p *engine.Plan) {
		p.Secrets = append(p.Secrets, engine.SecretWant{Name: "c-x", Kind: "none"})
	}), "the driver cannot make it"},
	{"comes up and stays", "takes the new for old", spoiling(func(_ *engine.View, p *engine.Plan) {
		for i := range p.Daemons {
			p.Daemons[i].New = false
		}
	}), "New is false"},
	{"comes up and stays", "writes what is there", spoiling(func(v *engine.View, p *engine.Plan) {
		for _, d := range v.Daemons {
			if p.Done {
				p.Daemons = append(p.Daemons, engine.DaemonChange{Daemon: d, Reason: "once more for luck"})
			}
		}
		p.Done = p.Empty() && p.Done
	}), "is written and does not change"},
	{"lets nodes go", "removes twice", spoiling(func(_ *engine.View, p *engine.Plan) { p.Remove = append(p.Remove, p.Remove...) }), "or removed twice"},
	{"lets nodes go", "removes what goes", spoiling(func(v *engine.View, p *engine.Plan) {
		for i := range v.Daemons {
			if d := &v.Daemons[i]; d.DeletionTimestamp != nil {
				p.Remove = append(p.Remove, engine.Removal{Name: d.Name, Reason: "it takes too long"})
			}
		}
	}), "is removed again"},
	{"lets nodes go", "writes to what goes", spoiling(func(v *engine.View, p *engine.Plan) {
		for _, d := range v.Daemons {
			if d.DeletionTimestamp != nil {
				d.Spec.StopOrder++
				p.Change("daemon/"+d.Name, engine.DaemonChange{Daemon: d, Reason: "it could still be better"})
			}
		}
	}), "is being deleted, and is written"},
}
