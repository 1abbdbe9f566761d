// Package devices says, for the leader, why a disk may not be wiped: who claims it, and which
// storage system needs what is on it.
package devices

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/hostaction"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/internal/devicename"
)

// Store is what is read. An engine.Store is one.
type Store interface {
	engine.ClusterReader
	// Host is that of engine.HostStore, and Resources that of engine.ResourceStore.
	Host(ctx context.Context, name string) (*engine.HostView, error)
	Resources(ctx context.Context) ([]api.Resource, error)
}

// Config is what is asked.
type Config struct {
	Store Store
	// Planners make the view of a cluster, with the word of its storage system, and Labelers read
	// the labels of devices.
	Planners map[api.StorageType]hosts.Planner
	Labelers map[api.StorageType]engine.Labeler
}

// Knows says whether an action is of a kind that this package looks at.
func Knows(a *api.Action) bool { return hostaction.Knows(a) }

// Accept refuses an action on the hardware of a host that is impossible. Who cannot be asked now is
// asked again before the action begins (Ask).
func (c Config) Accept(ctx context.Context, a *api.Action) error {
	if err := hostaction.Check(a); err != nil || !hostaction.OnDevice(a) {
		return err
	}
	on, err := c.Store.Host(ctx, a.Spec.Host)
	if errors.Is(err, engine.ErrNotFound) {
		return nil // that the host is gone is said elsewhere
	}
	if err != nil {
		return fmt.Errorf("while reading host %s: %w", a.Spec.Host, err)
	}
	clusters, err := c.Store.Clusters(ctx)
	if err != nil {
		return fmt.Errorf("while reading the clusters: %w", err)
	}
	resources, err := c.Store.Resources(ctx)
	if err != nil {
		return fmt.Errorf("while reading the DriveGroups: %w", err)
	}
	if err := Precheck(a, on, clusters, resources); err != nil || a.Spec.Kind != hostaction.Wipe {
		return err
	}
	d, err := hostaction.Device(a, on.Host.Status.Devices)
	if err != nil {
		return err
	}
	return c.unneeded(ctx, clusters, hostaction.Disk(d, on.Host.Status.Devices))
}

// Ask says what is against an action whose turn has come; empty when it may begin. A disk may have
// been claimed since it was accepted, and its agent knows no more than its own host.
func (c Config) Ask(ctx context.Context, a *api.Action) (string, error) {
	err := c.Accept(ctx, a)
	if errors.Is(err, action.ErrRefused) {
		return "the device to be free: " + err.Error(), nil
	}
	return "", err
}

// Precheck refuses what can be seen to be impossible without asking a storage system. It is pure.
// The error wraps action.ErrRefused.
func Precheck(a *api.Action, on *engine.HostView, clusters []api.StorageCluster, resources []api.Resource) error {
	if err := hostaction.Check(a); err != nil || !hostaction.OnDevice(a) {
		return err
	}
	inventory := on.Host.Status.Devices
	d, err := hostaction.Device(a, inventory)
	if err != nil || a.Spec.Kind != hostaction.Wipe {
		return err
	}
	if err := hostaction.Wipeable(d); err != nil {
		return err
	}
	disk := hostaction.Disk(d, inventory)
	for _, part := range disk {
		if len(part.MountPoints) > 0 {
			return hostaction.Refuse("device %s (%s) is mounted at %s", part.ID, part.Path, part.MountPoints[0])
		}
		if len(part.Holders) > 0 {
			return hostaction.Refuse("device %s (%s) is part of %s", part.ID, part.Path, part.Holders[0])
		}
	}
	daemons := make([]*api.Daemon, len(on.Daemons))
	for i := range on.Daemons {
		daemons[i] = &on.Daemons[i]
	}
	if err := hostaction.ClaimedBy(daemons, disk); err != nil {
		return err
	}
	if err := claimedByNode(on, clusters, disk); err != nil {
		return err
	}
	return claimedByGroup(on.Host.Name, resources, disk)
}

// claimedByNode refuses a disk that a StorageNode names. One that the node excludes, or wants
// another disk for, is the node's no more once no Daemon has it.
func claimedByNode(on *engine.HostView, clusters []api.StorageCluster, disk []*api.Device) error {
	for _, c := range engine.ClaimsOf(on.Nodes, nil, []api.Host{*on.Host}, clusters) {
		i := slices.IndexFunc(disk, func(d *api.Device) bool { return c.Host == on.Host.Name && c.DeviceID == d.ID })
		if i < 0 {
			continue
		}
		n := slices.IndexFunc(on.Nodes, func(n api.StorageNode) bool {
			return n.Namespace == c.Node.Namespace && n.Name == c.Node.Name
		})
		if n >= 0 && gives(&on.Nodes[n].Spec, on.Host.Status.Devices, disk[i]) {
			continue
		}
		return hostaction.Refuse("StorageNode %s claims device %s: take it out of spec.devices, "+
			"or name it in spec.exclude", c.Node, c.DeviceID)
	}
	return nil
}

// gives says whether a StorageNode gives a device up.
func gives(spec *api.StorageNodeSpec, inventory []api.Device, d *api.Device) bool {
	return slices.ContainsFunc(slices.Concat(spec.Exclude, spec.Replace), func(name string) bool {
		found := devicename.Match(inventory, name)
		return len(found) == 1 && found[0].ID == d.ID
	})
}

// claimedByGroup refuses a disk that a DriveGroup has taken, with the disks of databases and logs.
func claimedByGroup(host string, resources []api.Resource, disk []*api.Device) error {
	for _, r := range resources {
		g, ok := r.(*api.DriveGroup)
		if !ok {
			continue
		}
		for i := range g.Status.Devices {
			x := &g.Status.Devices[i]
			if x.Host != host {
				continue
			}
			uses := func(d *api.Device) bool { return slices.Contains(partsOf(x), d.ID) }
			if k := slices.IndexFunc(disk, uses); k >= 0 {
				return hostaction.Refuse("DriveGroup %s/%s has taken device %s: name it in spec.exclude of the group",
					g.Namespace, g.Name, disk[k].ID)
			}
		}
	}
	return nil
}

// partsOf are the devices of an entry of a DriveGroup.
func partsOf(x *api.GroupDevice) []string {
	ids := []string{x.ID}
	for _, slot := range []*api.DeviceSlot{x.Data, x.DB, x.WAL} {
		if slot != nil {
			ids = append(ids, slot.ID)
		}
	}
	return ids
}

// unneeded refuses a disk whose label, or that of a partition, a storage system still counts on.
// The error wraps action.ErrRefused, unless a storage system cannot say so now.
func (c Config) unneeded(ctx context.Context, clusters []api.StorageCluster, disk []*api.Device) error {
	for i := range clusters {
		labeler := c.Labelers[clusters[i].Spec.Type]
		if labeler == nil {
			continue
		}
		key := types.NamespacedName{Namespace: clusters[i].Namespace, Name: clusters[i].Name}
		if err := c.unneededBy(ctx, key, labeler, c.Planners[clusters[i].Spec.Type], disk); err != nil {
			return err
		}
	}
	return nil
}

// unneededBy asks one cluster. Its storage system is asked only if what Holdfast knows of it does
// not say so already.
func (c Config) unneededBy(
	ctx context.Context, cluster types.NamespacedName, labeler engine.Labeler, planner hosts.Planner,
	disk []*api.Device,
) error {
	view, err := c.Store.View(ctx, cluster)
	if errors.Is(err, engine.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("while reading cluster %s: %w", cluster.Name, err)
	}
	asked := false
	for _, d := range disk {
		why, unknown := labeler.Needs(view, d)
		if unknown && !asked && planner != nil {
			if view, _, err = planner.Suppose(ctx, cluster, func(*engine.View) {}); err != nil {
				return fmt.Errorf("while asking cluster %s: %w", cluster.Name, err)
			}
			asked = true
			why, unknown = labeler.Needs(view, d)
		}
		if why != "" {
			return hostaction.Refuse("cluster %s needs device %s: %s", cluster, d.ID, why)
		}
		if unknown {
			return fmt.Errorf("the label of device %s is of cluster %s, which does not answer", d.ID, cluster)
		}
	}
	return nil
}
