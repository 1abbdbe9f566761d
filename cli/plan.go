package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/platform/bare"
)

// drivers are the storage systems that this program knows.
func drivers() []engine.Driver { return []engine.Driver{&ceph.Driver{}} }

func newPlan(g *globals) *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "plan -f FILE",
		Short: "Show what applying the files would do, and change nothing",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return g.plan(cmd.Context(), files) },
	}
	cmd.Flags().StringSliceVarP(&files, "filename", "f", nil, "a file with objects in YAML or JSON, - for standard input; may be repeated")
	return cmd
}

func (g *globals) plan(ctx context.Context, files []string) error {
	objects, err := readManifests(files, g.in, g.namespace)
	if err != nil {
		return err
	}
	c, err := g.client()
	if err != nil {
		return err
	}
	checked, err := dryRun(ctx, c, objects)
	if err != nil {
		return err
	}
	plans, err := g.plansFor(ctx, c, checked)
	if err != nil {
		return err
	}
	if len(plans) == 0 {
		fmt.Fprintln(g.out, "no storage cluster would change")
	}
	for _, p := range plans {
		p.print(g.out)
	}
	return refusedPlans(plans)
}

// settled is how much later a person's plan is made: drivers wait a moment for more objects to be declared, and all of a
// manifest are here already.
const settled = time.Minute

// clusterPlan is what the engine would do first for one cluster.
type clusterPlan struct {
	cluster types.NamespacedName
	view    *engine.View
	plan    *engine.Plan
}

// plansFor asks the drivers what they would do if the objects were applied, and changes nothing. It is what the leader will
// ask itself; the leader's answer counts.
func (g *globals) plansFor(ctx context.Context, c client.Client, objects []object) ([]clusterPlan, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	world, err := bare.ReadObjects(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := overlay(world, objects); err != nil {
		return nil, err
	}
	var plans []clusterPlan
	for i := range world.Clusters {
		cluster := client.ObjectKeyFromObject(&world.Clusters[i])
		if !touches(world, objects, cluster) {
			continue
		}
		p, err := planOne(ctx, c, world, cluster)
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	return plans, nil
}

func planOne(ctx context.Context, c client.Client, world *bare.Objects, cluster types.NamespacedName) (clusterPlan, error) {
	view, err := world.View(cluster)
	if err != nil {
		return clusterPlan{}, err
	}
	for _, driver := range drivers() {
		if driver.Type() != view.Cluster.Spec.Type {
			continue
		}
		defer driver.Forget(cluster.Namespace, cluster.Name)
		// A storage system that does not answer is no reason to show no plan; the plan itself says that it waits for it.
		view.System, err = driver.Observe(ctx, view, &bare.Secrets{Reader: c, Namespace: cluster.Namespace})
		if err != nil {
			view.Errors = append(view.Errors, engine.NodeError{Object: "cluster/" + cluster.Name, Message: err.Error()})
		}
		return clusterPlan{cluster, view, driver.Plan(view, time.Now().Add(settled))}, nil
	}
	return clusterPlan{}, fmt.Errorf("storagecluster/%s: this program does not know the storage system %q", cluster.Name, view.Cluster.Spec.Type)
}

// overlay puts the objects of a manifest in the place of those that are there.
func overlay(world *bare.Objects, objects []object) error {
	for _, o := range objects {
		var err error
		switch o.GetKind() {
		case "StorageCluster":
			world.Clusters, err = replace(world.Clusters, o)
		case "StorageNode":
			world.Nodes, err = replace(world.Nodes, o)
		}
		if err != nil {
			return explain(o, err)
		}
	}
	return nil
}

func replace[T any, P interface {
	*T
	client.Object
}](list []T, o object) ([]T, error) {
	var fresh T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &fresh); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(have T) bool {
		return P(&have).GetNamespace() == o.GetNamespace() && P(&have).GetName() == o.GetName()
	})
	if i < 0 {
		return append(list, fresh), nil
	}
	list[i] = fresh
	return list, nil
}

// touches says whether one of the objects is the cluster or a node of it.
func touches(world *bare.Objects, objects []object, cluster types.NamespacedName) bool {
	return slices.ContainsFunc(objects, func(o object) bool {
		if o.GetNamespace() != cluster.Namespace {
			return false
		}
		switch o.GetKind() {
		case "StorageCluster":
			return o.GetName() == cluster.Name
		case "StorageNode":
			i := slices.IndexFunc(world.Nodes, func(n api.StorageNode) bool {
				return n.Namespace == o.GetNamespace() && n.Name == o.GetName()
			})
			return engine.ClusterOf(&world.Nodes[i], world.Clusters) == cluster.Name
		}
		return false
	})
}

// refuseImpossible returns an error that says why, if one of the objects' clusters would be refused.
func (g *globals) refuseImpossible(ctx context.Context, c client.Client, objects []object) error {
	plans, err := g.plansFor(ctx, c, objects)
	if err != nil {
		return err
	}
	return refusedPlans(plans)
}

func refusedPlans(plans []clusterPlan) error {
	var all []error
	for _, p := range plans {
		for _, d := range p.plan.Decisions {
			if d.Verdict == api.VerdictRefuse {
				all = append(all, fmt.Errorf("%s: %s", d.Object, d.Message))
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &exitError{exitRefused, fmt.Errorf("nothing was changed:\n%w", errors.Join(all...))}
}

// print shows a plan for people.
func (p *clusterPlan) print(w io.Writer) {
	fmt.Fprintf(w, "cluster %s in namespace %s:\n", p.cluster.Name, p.cluster.Namespace)
	if p.plan.Empty() && !p.plan.Refused {
		fmt.Fprintln(w, "  nothing changes")
	}
	for _, c := range p.plan.Daemons {
		p.printDaemon(w, c)
	}
	for _, r := range p.plan.Remove {
		fmt.Fprintf(w, "  - remove %s: %s\n", r.Name, r.Reason)
	}
	for _, c := range p.plan.Commands {
		fmt.Fprintf(w, "  > %s %s: %s\n", c.Verb, c.Object, c.Reason)
	}
	for _, d := range p.plan.Decisions {
		if d.Verdict != api.VerdictDo {
			fmt.Fprintf(w, "  %s %s: %s\n", strings.ToLower(string(d.Verdict)), d.Object, d.Message)
		}
	}
}

func (p *clusterPlan) printDaemon(w io.Writer, c engine.DaemonChange) {
	sign, reason := "~ change", ": "+c.Reason
	if c.New {
		sign, reason = "+ start ", ""
	}
	fmt.Fprintf(w, "  %s %s on %s", sign, shortName(&c.Daemon), c.Daemon.Spec.Host)
	for _, d := range c.Daemon.Spec.Devices {
		fmt.Fprintf(w, ", on device %s%s", d.ID, p.describe(c.Daemon.Spec.Host, d.ID))
	}
	fmt.Fprintln(w, reason)
}

// describe tells a device's path and size, so that a person can recognize it.
func (p *clusterPlan) describe(host, id string) string {
	for _, h := range p.view.Hosts {
		for _, d := range h.Status.Devices {
			if h.Name == host && d.ID == id {
				return " (" + strings.Join(strings.Fields(d.Path+" "+d.Size.String()+" "+d.Model+" "+d.Serial), " ") + ")"
			}
		}
	}
	return ""
}
