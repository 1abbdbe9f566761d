package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/plans"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/internal/waits"
	"github.com/holdfast-storage/holdfast/platform/bare"
)

// settled is how much later a person's plan is made: drivers wait a moment for more objects to be declared, and all of a
// manifest are here already.
const settled = time.Minute

// proposal is what would come of applying or deleting some objects.
type proposal struct {
	operation api.PlanOperation
	waits     waits.Waits
	targets   []target
	// follows are what the actions among the targets write themselves, and ends what they delete when all else is done.
	follows []target
	ends    []plans.Change
	// host and heir are those of an action that puts one in the place of the other, nil where there is none.
	host, heir *api.Host
	report     plans.Report
	basis      plans.Basis
	// refused says why it cannot be done.
	refused []string
	// silent are the clusters whose storage system does not answer, as plans name them, with the reason.
	silent map[string]string
	// foreseen says why actions would be refused by who carries them out: a plan is refused for it, and who applies it hears it from there.
	foreseen []string
	// early is set when a StorageNode is refused because its host is not there, which may have yet to join; hostless says which ones had none before.
	early    bool
	hostless []string
	// astray says what names a cluster that there is not.
	astray []string
	// anyway are the changes that destroy data whether or not this is done.
	anyway map[string]bool
	// blame are the objects of the basis, to tell who changed them.
	blame map[string]client.Object
}

// spec is the proposal as a Plan keeps it.
func (p *proposal) spec(manifest string, w *writer) api.PlanSpec {
	s := api.PlanSpec{Operation: p.operation, Conflicts: w.conflicts, Refusals: w.refusals, Manifest: manifest}
	p.basis.Store(&s)
	plans.Store(p.report.Changes, &s)
	return s
}

// who says who changed an object of the basis.
func (p *proposal) who(object string) string {
	if o := p.blame[object]; o != nil {
		return whoChanged(o)
	}
	return ""
}

// propose asks the drivers what they would do if the objects were applied or deleted, and changes nothing. It is what the leader
// will ask itself; the leader's answer counts.
func (g *globals) propose(ctx context.Context, c client.Client, operation api.PlanOperation, targets []target) (*proposal, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	before, err := bare.ReadObjects(ctx, c)
	if err != nil {
		return nil, err
	}
	p := &proposal{
		operation: operation, waits: g.waits, targets: targets, basis: plans.Basis{}, blame: map[string]client.Object{},
		anyway: map[string]bool{}, silent: map[string]string{},
	}
	if err := p.followActions(before); err != nil {
		return nil, err
	}
	after, all := copyOf(before), slices.Concat(targets, p.follows)
	if err := change(after, all); err != nil {
		return nil, err
	}
	p.addObjects(before)
	p.addWipes(before, after)
	p.addHostless(after.Hosts)
	for i := range after.Clusters {
		cluster := client.ObjectKeyFromObject(&after.Clusters[i])
		if !touches(before, all, cluster) && !touches(after, all, cluster) {
			continue
		}
		if err := p.addCluster(ctx, c, before, after, cluster); err != nil {
			return nil, err
		}
	}
	p.addAstray(after)
	return p, nil
}

// addObjects tells what changes in the objects themselves.
func (p *proposal) addObjects(before *bare.Objects) {
	for _, t := range slices.Concat(p.targets, p.follows) {
		name := plans.ObjectName(t.GetKind(), t.GetNamespace(), t.GetName())
		if t.live == nil && t.after == nil {
			continue // what is not there is not deleted
		}
		c := plans.ObjectChange(name, t.live, t.after)
		c.Risk = t.risk(before)
		p.report.Changes = append(p.report.Changes, c)
		p.basis[name] = plans.ObjectFacts(t.live)
		if t.live != nil {
			p.blame[name] = t.live
		}
	}
	p.report.Changes = append(p.report.Changes, p.ends...)
}

// risk is what the writing or deleting of an object does by itself, whatever the clusters make of it.
func (t target) risk(before *bare.Objects) api.Risk {
	switch {
	case t.GetKind() == engine.KindDaemon && t.after == nil:
		if i := slices.IndexFunc(before.Daemons, func(d api.Daemon) bool { return d.Namespace == t.GetNamespace() && d.Name == t.GetName() }); i >= 0 {
			return engine.RiskOfRemoval(&before.Daemons[i])
		}
	case t.GetKind() == engine.KindAction && t.live == nil:
		if kind, _, _ := unstructured.NestedString(t.after.Object, "spec", "kind"); kind == api.ActionDaemonRestart {
			return api.RiskRedundancy
		}
	}
	return ""
}

// addCluster tells what would happen to a cluster.
func (p *proposal) addCluster(ctx context.Context, c client.Client, before, after *bare.Objects, cluster types.NamespacedName) error {
	view, err := after.View(cluster)
	if err != nil {
		return err
	}
	all := drivers(answerIn, p.waits)
	i := slices.IndexFunc(all, func(d engine.Driver) bool { return d.Type() == view.Cluster.Spec.Type })
	if i < 0 {
		return fmt.Errorf("storagecluster/%s: this program does not know the storage system %q", cluster.Name, view.Cluster.Spec.Type)
	}
	driver := all[i]
	defer driver.Forget(cluster.Namespace, cluster.Name)
	// A storage system that does not answer is no reason to show no plan; the plan itself says that it waits for it.
	var failed error
	view.System, failed = driver.Observe(ctx, view, &secretsAfter{&bare.Secrets{Reader: c, Namespace: cluster.Namespace}, cluster.Namespace, p.targets})
	view.Gone = hosts.Gone(after.Hosts, after.Actions)
	now := time.Now().Add(settled)
	projection := engine.Project(driver, view, now)
	was := sync.OnceValue(func() *engine.Projection { return presentProjection(driver, before, view, now) })
	if projection.Risk() == api.RiskData {
		p.addAnyway(was())
	}
	p.addBasis(before, view)
	silence := p.addSilence(driver, view, failed)
	name := cluster.String()
	p.report.Clusters = append(p.report.Clusters, name)
	p.report.Changes = append(p.report.Changes, plans.FromProjection(projection)...)
	p.report.Notes = mergeNotes(p.report.Notes, name, notesOf(projection, view, silence))
	if view.Cluster.DeletionTimestamp == nil { // what is deleted as a whole has nothing to stay whole for
		now := refusals(projection.First, presentPlan(driver, before, view, now))
		p.refused = append(p.refused, now...)
		p.refused = append(p.refused, laterRefusals(projection, now, was)...)
	}
	return nil
}

func decisionText(d api.Decision) string { return d.Object + ": " + d.Message }

// untold are decisions to do something that no daemon and no request of the plan tells of: how disks are divided, and what is taken over
// as it is.
func untold(p *engine.Plan) (all []string) {
	groups := engine.ResourceObject(&api.DriveGroup{})
	for _, d := range p.Decisions {
		if d.Verdict == api.VerdictDo && (d.Reason == api.ReasonAdopted || strings.HasPrefix(d.Object, groups)) {
			all = append(all, decisionText(d))
		}
	}
	return all
}

// notesOf says what disks are divided for, what is refused, left alone or waited for, and how far the projection can be trusted.
func notesOf(p *engine.Projection, view *engine.View, silence string) []string {
	notes := untold(p.First)
	for _, d := range p.Last.Decisions {
		switch d.Verdict {
		case api.VerdictRefuse:
			notes = append(notes, "refused: "+decisionText(d))
		case api.VerdictSkip:
			notes = append(notes, "left alone: "+decisionText(d))
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
		notes = append(notes, fmt.Sprintf("steps 2 and later assume that hosts and %s do their part; each step is planned again after the one before it", system))
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

// addBasis adds the cluster, its nodes and volumes as they are now and as they would be, and what they depend on.
func (p *proposal) addBasis(before *bare.Objects, view *engine.View) {
	add := func(kind string, o client.Object) {
		name := plans.ObjectName(kind, o.GetNamespace(), o.GetName())
		if _, ok := p.basis[name]; ok {
			return // it is in the manifest
		}
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			panic(err) // our own types can be converted
		}
		p.basis[name] = plans.ObjectFacts(&unstructured.Unstructured{Object: u})
		p.blame[name] = o
	}
	if i := slices.IndexFunc(before.Clusters, func(c api.StorageCluster) bool {
		return client.ObjectKeyFromObject(&c) == client.ObjectKeyFromObject(view.Cluster)
	}); i >= 0 {
		add(engine.KindCluster, &before.Clusters[i])
	}
	for i := range before.Nodes {
		n := &before.Nodes[i]
		if n.Namespace == view.Cluster.Namespace && engine.ClusterOf(n, before.Clusters) == view.Cluster.Name {
			add(engine.KindNode, n)
		}
	}
	for _, r := range engine.ResourcesOf(before.Resources, client.ObjectKeyFromObject(view.Cluster)) {
		add(r.ResourceKind(), r)
	}
	p.basis.AddView(view)
	for i := range view.Hosts {
		name := plans.ObjectName(engine.KindHost, "", view.Hosts[i].Name)
		if p.blame[name] == nil {
			p.blame[name] = &view.Hosts[i]
		}
	}
}
