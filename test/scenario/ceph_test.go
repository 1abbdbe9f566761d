package scenario

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/driver/ceph/radostest"
	"github.com/holdfast-storage/holdfast/engine/sim"
)

// cephs are the Ceph clusters of a world, by fsid, and what the agents do for Ceph's daemons.
type cephs struct {
	gate *gate

	mu       sync.Mutex
	clusters map[string]*radostest.Cluster
	// damage tells of data that was written over.
	damage []string
}

var (
	_ sim.System       = (*cephs)(nil)
	_ sim.ServiceAgent = (*cephs)(nil)
)

func newCephs(g *gate) *cephs { return &cephs{gate: g, clusters: map[string]*radostest.Cluster{}} }

func (c *cephs) cluster(fsid string) *radostest.Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.clusters[fsid]
	if x == nil {
		x = radostest.New()
		c.clusters[fsid] = x
	}
	return x
}

// dial connects a leader.
func (c *cephs) dial(cfg rados.Config) rados.Client {
	return gatedClient{c.cluster(cfg.FSID).Dial(cfg), c.gate}
}

// Step lets each cluster follow which of its daemons run.
func (c *cephs) Step(_ time.Time, daemons []api.Daemon) {
	running := map[string][]api.Daemon{}
	for _, d := range daemons {
		fsid := d.Spec.Parameters[ceph.ParamFSID]
		c.cluster(fsid)
		running[fsid] = append(running[fsid], d)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for fsid, x := range c.clusters {
		x.Sync(running[fsid])
	}
}

// Prepare writes an OSD's label on its device, as 'ceph-osd --mkfs' does. Like the real agent it refuses a device with
// anything else on it; that it was asked is a fault of the engine all the same.
func (c *cephs) Prepare(d *api.Daemon, host *api.HostStatus) error {
	for i := range host.Devices {
		if device := &host.Devices[i]; d.Spec.Type == ceph.TypeOSD && device.ID == d.Spec.Devices[0].ID {
			return c.makeOSD(d, device)
		}
	}
	return nil
}

func (c *cephs) makeOSD(d *api.Daemon, device *api.Device) error {
	uuid := d.Spec.Parameters[ceph.ParamOSDUUID]
	if device.Availability != api.DeviceAvailable && (device.Ceph == nil || device.Ceph.OSDUUID != uuid) {
		c.mu.Lock()
		c.damage = append(c.damage, fmt.Sprintf("%s was to be made on %s of %s, which is in use", d.Name, device.ID, d.Spec.Host))
		c.mu.Unlock()
		return fmt.Errorf("device %s is in use", device.ID)
	}
	number, err := strconv.Atoi(d.Spec.ID)
	if err != nil {
		return err
	}
	id := int32(number)
	device.Availability, device.Reasons = api.DeviceUnavailable, []string{"it holds osd." + d.Spec.ID + " of a Ceph cluster"}
	device.Ceph = &api.DeviceCeph{FSID: d.Spec.Parameters[ceph.ParamFSID], OSDUUID: uuid, OSDID: &id}
	return nil
}

// Remove wipes an OSD's device, where that was asked for.
func (c *cephs) Remove(d *api.Daemon, host *api.HostStatus) {
	for i := range host.Devices {
		device := &host.Devices[i]
		if d.Spec.Type != ceph.TypeOSD || device.ID != d.Spec.Devices[0].ID || d.Spec.OnRemoval != api.DeletionWipe {
			continue
		}
		if device.Ceph != nil && device.Ceph.OSDUUID == d.Spec.Parameters[ceph.ParamOSDUUID] {
			device.Availability, device.Reasons, device.Ceph = api.DeviceAvailable, nil, nil
		}
	}
}

func (c *cephs) damaged() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.damage
}
