package sim

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// System is a simulated storage system. The driver under test observes it and asks it for things; the World moves it on.
type System interface {
	// Step lets the system move on by one tick. daemons are those that run now, sorted by name.
	Step(now time.Time, daemons []api.Daemon)
}

// ServiceAgent is what the agents know of a storage system's daemons. A System that is one, too, is asked by the agents.
type ServiceAgent interface {
	// Prepare makes a daemon's data and changes its host as that does; an error keeps the daemon from being prepared. It is
	// called again when a daemon is prepared again, and finds what it made.
	Prepare(d *api.Daemon, host *api.HostStatus) error
	// Remove does with a daemon's data what its spec.onRemoval says.
	Remove(d *api.Daemon, host *api.HostStatus)
}

// World is a set of hosts with their agents and storage systems around a Memory. It is safe for concurrent use.
type World struct {
	*Memory
	// Systems are moved on with each tick.
	Systems []System

	mu     sync.Mutex
	down   map[string]bool
	silent map[string]bool
	broken map[string]string
	serial int
}

// NewWorld returns a world without hosts.
func NewWorld(systems ...System) *World {
	w := &World{
		Memory: NewMemory(), Systems: systems, down: map[string]bool{}, silent: map[string]bool{}, broken: map[string]string{},
	}
	w.Carry = w.carry
	return w
}

// AddHost lets a host join that has the given disks. Its addresses are made up, unless some are given.
func (w *World) AddHost(ctx context.Context, name string, disks []string, addresses ...string) error {
	w.mu.Lock()
	w.serial++
	if len(addresses) == 0 {
		addresses = []string{"10.0.0." + strconv.Itoa(w.serial)}
	}
	w.mu.Unlock()
	h := &api.Host{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{api.LabelHostname: name}},
		Status: api.HostStatus{
			Addresses: addresses, AgentVersion: "sim", BootID: "boot-" + name, Runtime: api.RuntimeDetached,
			Packages: map[string]api.Release{"ceph": firstRelease},
		},
	}
	for i, d := range disks {
		h.Status.Devices = append(h.Status.Devices, Disk(d, fmt.Sprintf("/dev/sd%c", 'b'+i)))
	}
	setAgent(h, metav1.ConditionTrue)
	status := h.Status
	if err := w.Create(ctx, h); err != nil {
		return err
	}
	h.Status = status
	return w.UpdateStatus(ctx, h)
}

// Disk is an empty disk of 10 GiB.
func Disk(id, path string) api.Device {
	return api.Device{
		ID: id, Path: path, Kind: api.DeviceDisk, Size: resource.MustParse("10Gi"), Media: api.MediaSolidState,
		Availability: api.DeviceAvailable,
	}
}

func setAgent(h *api.Host, status metav1.ConditionStatus) {
	c := metav1.Condition{
		Type: api.HostAgentConnected, Status: status, Reason: "Connected", LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second)),
	}
	was := meta.FindStatusCondition(h.Status.Conditions, api.HostAgentConnected)
	switch {
	case status == metav1.ConditionFalse:
		c.Reason, c.Message = "Silent", "no heartbeat"
	case was != nil && was.Status == metav1.ConditionFalse:
		c.Message = api.HostAgentReturned
	}
	meta.SetStatusCondition(&h.Status.Conditions, c)
}

// ChangeHost edits the status of a host, as its agent would.
func (w *World) ChangeHost(ctx context.Context, name string, edit func(*api.HostStatus)) error {
	h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := w.Get(ctx, h); err != nil {
		return err
	}
	edit(&h.Status)
	return w.UpdateStatus(ctx, h)
}

// SetMode gives a host a mode, as an administrator does.
func (w *World) SetMode(ctx context.Context, name string, mode api.HostMode) error {
	h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := w.Get(ctx, h); err != nil || h.Spec.Mode == mode {
		return err
	}
	h.Spec.Mode = mode
	return w.Update(ctx, h)
}

// FailHost powers a host off: its agent falls silent and its daemons do nothing any more. What the store says of them stays
// as it was.
func (w *World) FailHost(ctx context.Context, name string) error {
	return w.power(ctx, name, true)
}

// RestoreHost powers a host on again.
func (w *World) RestoreHost(ctx context.Context, name string) error {
	return w.power(ctx, name, false)
}

func (w *World) power(ctx context.Context, name string, down bool) error {
	w.mu.Lock()
	w.down[name] = down
	w.mu.Unlock()
	return w.judge(ctx, name)
}

// judge writes whether the agent of a host is heard, as the leader does from its heartbeat.
func (w *World) judge(ctx context.Context, name string) error {
	h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := w.Get(ctx, h); err != nil {
		return err
	}
	setAgent(h, map[bool]metav1.ConditionStatus{true: metav1.ConditionFalse, false: metav1.ConditionTrue}[w.unheard(name)])
	return w.UpdateStatus(ctx, h)
}

func (w *World) unheard(host string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.down[host] || w.silent[host]
}

// SilenceAgent stops the agent of a host, or starts it again. The daemons on the host run on meanwhile.
func (w *World) SilenceAgent(ctx context.Context, name string, silent bool) error {
	w.mu.Lock()
	w.silent[name] = silent
	w.mu.Unlock()
	return w.judge(ctx, name)
}

// RemoveDisk pulls a disk out of a host.
func (w *World) RemoveDisk(ctx context.Context, host, id string) error {
	return w.ChangeHost(ctx, host, func(s *api.HostStatus) {
		s.Devices = slices.DeleteFunc(s.Devices, func(d api.Device) bool { return d.ID == id })
	})
}

// AddDisk puts an empty disk into a host.
func (w *World) AddDisk(ctx context.Context, host, id, path string) error {
	return w.ChangeHost(ctx, host, func(s *api.HostStatus) { s.Devices = append(s.Devices, Disk(id, path)) })
}

// Break lets a daemon fail with a message from now on; an empty message mends it.
func (w *World) Break(daemon, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken[daemon] = message
}

// Tick lets each agent bring each of its daemons one step on, and then the storage systems move.
func (w *World) Tick(ctx context.Context) error {
	w.Memory.mu.Lock()
	daemons := list(w.Memory, func(*api.Daemon) bool { return true })
	w.Memory.mu.Unlock()
	var running []api.Daemon
	for i := range daemons {
		d := &daemons[i]
		if err := w.step(ctx, d); err != nil {
			return err
		}
		if w.alive(d) {
			running = append(running, *d)
		}
	}
	for i := range running {
		if err := w.report(ctx, &running[i]); err != nil {
			return err
		}
	}
	for _, s := range w.Systems {
		s.Step(time.Now(), running)
	}
	return nil
}

// Run ticks at this interval for this long.
func (w *World) Run(ctx context.Context, interval, long time.Duration) error {
	for range long / interval {
		time.Sleep(interval)
		if err := w.Tick(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *World) alive(d *api.Daemon) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return d.Status.State == api.DaemonRunning && !w.down[d.Spec.Host]
}
