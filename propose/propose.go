package propose

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/hostaction"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// settled is how much later a person's plan is made: drivers wait a moment for more objects to be
// declared, and all of a manifest are here already.
const settled = time.Minute

// Home is how things are, and what a home knows.
type Home struct {
	// Objects are all objects as they are. Nobody writes to them.
	Objects *engine.Objects
	// Drivers are the storage systems, and Kinds all kinds of actions, by name.
	Drivers []engine.Driver
	Kinds   map[string]action.Kind
	// Secrets reads the Secrets of a namespace.
	Secrets func(namespace string) engine.SecretReader
	// Observe asks a storage system for its state, several at one time; nil asks the driver.
	Observe func(context.Context, engine.Driver, *engine.View, engine.SecretReader) (any, error)
	// Now is the time that plans are made for.
	Now time.Time
}

// Request is a change that somebody wants.
type Request struct {
	Operation api.PlanOperation
	Targets   []Target
}

// Target is an object that a request is about, as it was given.
type Target struct {
	*unstructured.Unstructured
	// Live is the object as it was found, nil if there was none; After is what the request makes of
	// it, nil if it is deleted.
	Live, After *unstructured.Unstructured
}

// String names the object as people write it: storagecluster/ceph.
func (t Target) String() string { return strings.ToLower(t.GetKind()) + "/" + t.GetName() }

// Proposal is what would come of a request.
type Proposal struct {
	Operation api.PlanOperation
	Targets   []Target
	// Report is what a person is shown.
	Report plans.Report
	// Basis is what all of it depends on.
	Basis plans.Basis
	// Refused says why it cannot be done.
	Refused []string
	// Silent are the clusters whose storage system does not answer, as plans name them, with the
	// reason.
	Silent map[string]string
	// Foreseen says why actions would be refused by who carries them out: a plan is refused for it,
	// and who applies it hears it from there.
	Foreseen []string
	// Early are refusals of StorageNodes whose host is not there, which may have yet to join;
	// Hostless says which ones had none before.
	Early, Hostless []string
	// Astray says what names a cluster that there is not.
	Astray []string
	// Host and Heir are those of an action that puts one in the place of the other, nil where there
	// is none.
	Host, Heir *api.Host

	home Home
	// follows are what the actions among the targets write themselves, and ends what they delete
	// when all else is done.
	follows []Target
	ends    []plans.Change
	// anyway are the changes that destroy data whether or not this is done.
	anyway map[string]bool
}

// Make asks the drivers what they would do if a request were carried out. It changes nothing.
func Make(ctx context.Context, home Home, r Request) (*Proposal, error) {
	before := home.Objects
	p := &Proposal{
		Operation: r.Operation, Targets: r.Targets, Basis: plans.Basis{}, Silent: map[string]string{}, home: home,
		anyway: map[string]bool{},
	}
	if err := p.followActions(before); err != nil {
		return nil, err
	}
	after, all := copyOf(before), slices.Concat(p.Targets, p.follows)
	if err := change(after, all); err != nil {
		return nil, err
	}
	p.addObjects(before)
	p.addWipes(before, after)
	p.addHostless(after.Hosts)
	questions, err := p.questions(before, after, all)
	if err != nil {
		return nil, err
	}
	home.ask(ctx, questions)
	for _, q := range questions {
		p.addCluster(before, after, q)
	}
	p.addAstray(after)
	return p, nil
}

// addObjects tells what changes in the objects themselves.
func (p *Proposal) addObjects(before *engine.Objects) {
	for _, t := range slices.Concat(p.Targets, p.follows) {
		name := plans.NameOf(t.Unstructured)
		if t.Live == nil && t.After == nil {
			continue // what is not there is not deleted
		}
		c := plans.ObjectChange(name, t.Live, t.After)
		c.Risk = t.risk(before)
		p.Report.Changes = append(p.Report.Changes, c)
		p.Basis[name] = plans.ObjectFacts(t.Live)
		if IsSecret(t.Unstructured) && t.Live != nil { // others may read what an answer is based on
			p.Basis[name] = plans.Facts{UID: string(t.Live.GetUID()), Fields: map[string]string{"version": t.Live.GetResourceVersion()}}
		}
	}
	p.Report.Changes = append(p.Report.Changes, p.ends...)
}

// risk is what the writing or deleting of an object does by itself, whatever the clusters make of
// it.
func (t Target) risk(before *engine.Objects) api.Risk {
	switch {
	case t.kind() == engine.KindDaemon && t.After == nil:
		if i := slices.IndexFunc(before.Daemons, func(d api.Daemon) bool { return d.Namespace == t.GetNamespace() && d.Name == t.GetName() }); i >= 0 {
			return engine.RiskOfRemoval(&before.Daemons[i])
		}
	case t.kind() == engine.KindAction && t.Live == nil:
		switch kind, _, _ := unstructured.NestedString(t.After.Object, "spec", "kind"); kind {
		case api.ActionDaemonRestart:
			return api.RiskRedundancy
		case hostaction.Wipe:
			return api.RiskData
		}
	}
	return ""
}

// addCluster tells what would happen to a cluster, of which the storage system has said how it is.
func (p *Proposal) addCluster(before, after *engine.Objects, q *question) {
	view, driver, failed := q.view, q.driver, q.failed
	view.Gone = hosts.Gone(after.Hosts, after.Actions)
	now := p.home.Now.Add(settled)
	projection := engine.Project(driver, view, now)
	was := sync.OnceValue(func() *engine.Projection { return presentProjection(driver, before, view, now) })
	if projection.Risk() == api.RiskData {
		p.addAnyway(was())
	}
	p.addBasis(before, view)
	silence := p.addSilence(driver, view, failed)
	name := nameOf(view.Cluster).String()
	p.Report.Clusters = append(p.Report.Clusters, name)
	p.Report.Changes = append(p.Report.Changes, plans.FromProjection(projection)...)
	p.Report.Notes = mergeNotes(p.Report.Notes, name, notesOf(projection, view, silence))
	if view.Cluster.DeletionTimestamp == nil { // what is deleted as a whole has nothing to stay whole for
		now := refusals(projection.First, presentPlan(driver, before, view, now))
		p.Refused = append(p.Refused, now...)
		p.Refused = append(p.Refused, laterRefusals(projection, now, was)...)
	}
}

// driver is that of a storage system, nil where it is not known.
func (h Home) driver(of api.StorageType) engine.Driver {
	i := slices.IndexFunc(h.Drivers, func(d engine.Driver) bool { return d.Type() == of })
	if i < 0 {
		return nil
	}
	return h.Drivers[i]
}

// object is an object of the API.
type object interface {
	metav1.Object
	runtime.Object
}

// nameOf is the namespace and the name of an object.
func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func decisionText(d api.Decision) string { return d.Object + ": " + d.Message }

// untold are decisions to do something that no daemon and no request of the plan tells of: how
// disks are divided, and what is taken over as it is.
func untold(p *engine.Plan) (all []string) {
	groups := engine.ResourceObject(&api.DriveGroup{})
	for _, d := range p.Decisions {
		if d.Verdict == api.VerdictDo && (d.Reason == api.ReasonAdopted || strings.HasPrefix(d.Object, groups)) {
			all = append(all, decisionText(d))
		}
	}
	return all
}

// notesOf says what disks are divided for, what is refused, left alone or waited for, and how far
// the projection can be trusted.
func notesOf(p *engine.Projection, view *engine.View, silence string) []string {
	notes := untold(p.First)
	for _, d := range p.Last.Decisions {
		switch d.Verdict {
		case api.VerdictRefuse:
			notes = append(notes, "refused: "+decisionText(d))
		case api.VerdictSkip:
			notes = append(notes, "left unchanged: "+decisionText(d))
		default: // what is done stands in the plan, and what is waited for comes below
		}
	}
	for _, text := range p.Open {
		notes = append(notes, "waits: "+text)
	}
	system := string(view.Cluster.Spec.Type)
	if silence != "" {
		notes = append(notes, fmt.Sprintf("%s does not answer (%s): the plan ends here", system, silence))
	}
	if len(p.Steps) > 1 {
		notes = append(notes, fmt.Sprintf("steps 2 and later assume that hosts and %s carry out the steps before; each "+
			"step is planned again after the one before it", system))
	}
	return notes
}

func mergeNotes(all map[string][]string, cluster string, notes []string) map[string][]string {
	if all == nil {
		all = map[string][]string{}
	}
	all[cluster] = notes
	return all
}

// addBasis adds the cluster, its nodes and volumes as they are now and as they would be, and what
// they depend on.
func (p *Proposal) addBasis(before *engine.Objects, view *engine.View) {
	add := func(kind string, o object) {
		name := plans.ObjectName(kind, o.GetNamespace(), o.GetName())
		if _, ok := p.Basis[name]; ok {
			return // it is in the manifest
		}
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			panic(err) // our own types can be converted
		}
		p.Basis[name] = plans.ObjectFacts(&unstructured.Unstructured{Object: u})
	}
	if i := slices.IndexFunc(before.Clusters, func(c api.StorageCluster) bool {
		return nameOf(&c) == nameOf(view.Cluster)
	}); i >= 0 {
		add(engine.KindCluster, &before.Clusters[i])
	}
	for i := range before.Nodes {
		n := &before.Nodes[i]
		if n.Namespace == view.Cluster.Namespace && engine.ClusterOf(n, before.Clusters) == view.Cluster.Name {
			add(engine.KindNode, n)
		}
	}
	for _, r := range engine.ResourcesOf(before.Resources, nameOf(view.Cluster)) {
		add(r.ResourceKind(), r)
	}
	p.Basis.AddView(view)
}
