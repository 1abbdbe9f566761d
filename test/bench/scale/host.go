package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph"
	"k8s.io/apimachinery/pkg/api/resource"
)

// restartAfter is how long a simulated process that has ended stays down, as with the runtime for plain processes at first.
const restartAfter = 10 * time.Second

// host is a simulated machine: its disks, and the processes on it.
type host struct {
	name  string
	cephs *cephs
	notes *runtime.Notifier

	mu      sync.Mutex
	disks   []api.Device
	known   map[string]*api.Daemon // by the name of the process
	process map[string]*runtime.State
}

var _ runtime.Runtime = (*host)(nil)

func newHost(number, disks int, c *cephs) *host {
	h := &host{
		name: hostName(number), cephs: c, notes: runtime.NewNotifier(),
		known: map[string]*api.Daemon{}, process: map[string]*runtime.State{},
	}
	for d := range disks {
		serial := fmt.Sprintf("%s-%02d", h.name, d)
		h.disks = append(h.disks, api.Device{
			ID: "scsi-" + serial, Path: fmt.Sprintf("/dev/sd%c", 'b'+d), Kind: api.DeviceDisk, Size: resource.MustParse("4Ti"),
			Media: api.MediaRotational, Model: "Simulated 4T", Serial: serial, Links: []string{"/dev/disk/by-id/scsi-" + serial},
			Availability: api.DeviceAvailable,
		})
	}
	return h
}

func hostName(number int) string { return fmt.Sprintf("h%04d", number) }

// pids are the numbers of simulated processes.
var pids atomic.Int64

// Start implements runtime.Runtime.
func (h *host) Start(_ context.Context, p runtime.Process) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.process[p.Name]; s != nil {
		return nil
	}
	h.process[p.Name] = &runtime.State{}
	h.begin(p.Name)
	return nil
}

// begin has a process run. The caller holds h.mu.
func (h *host) begin(name string) {
	s := h.process[name]
	s.Running, s.PID, s.Started, s.BackOffUntil = true, int(pids.Add(1)), time.Now(), time.Time{}
	h.cephs.set(h.known[name], true)
	h.notes.Notify(name)
}

// kill ends a process, as if it had crashed. It is started again after a while.
func (h *host) kill(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.process[name]
	now := time.Now()
	s.Running, s.PID, s.BackOffUntil = false, 0, now.Add(restartAfter)
	s.Restarts++
	s.LastExit = &runtime.Exit{Time: now, Reason: "signal: killed"}
	h.cephs.set(h.known[name], false)
	h.notes.Notify(name)
	time.AfterFunc(restartAfter, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.process[name] == s && !s.Running {
			h.begin(name)
		}
	})
}

// Stop implements runtime.Runtime.
func (h *host) Stop(_ context.Context, name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.process[name] != nil {
		delete(h.process, name)
		h.cephs.set(h.known[name], false)
	}
	return nil
}

// State implements runtime.Runtime.
func (h *host) State(name string) (runtime.State, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.process[name]
	if s == nil {
		return runtime.State{}, false
	}
	return *s, true
}

// Names implements runtime.Runtime.
func (h *host) Names() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	names := make([]string, 0, len(h.process))
	for name := range h.process {
		names = append(names, name)
	}
	return names
}

// Changes implements runtime.Runtime.
func (h *host) Changes() <-chan string { return h.notes.C() }

// Capabilities implements runtime.Runtime.
func (h *host) Capabilities() runtime.Capabilities { return runtime.Capabilities{KeepsChildren: true} }

// Close implements runtime.Runtime.
func (h *host) Close() error {
	h.notes.Close()
	return nil
}

// Devices implements agent.Inventory.
func (h *host) Devices(context.Context) ([]api.Device, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	devices := make([]api.Device, len(h.disks))
	for i := range h.disks {
		devices[i] = *h.disks[i].DeepCopy()
	}
	return devices, nil
}

// Rescan implements agent.Inventory.
func (h *host) Rescan(ctx context.Context) ([]api.Device, error) { return h.Devices(ctx) }

// services are the agents of the types of daemons that a host can run.
func (h *host) services() []service.ServiceAgent {
	return []service.ServiceAgent{serviceAgent{ceph.TypeMon, h}, serviceAgent{ceph.TypeMgr, h}, serviceAgent{ceph.TypeOSD, h}}
}

// serviceAgent prepares daemons of one type.
type serviceAgent struct {
	name string
	host *host
}

// Name implements service.ServiceAgent.
func (s serviceAgent) Name() string { return s.name }

// Initialize implements service.ServiceAgent.
func (s serviceAgent) Initialize(context.Context, *service.Host) error { return nil }

// Version implements service.Versioner.
func (s serviceAgent) Version(context.Context) (string, error) { return "16.2.15", nil }

// ConfigureLocalService writes an OSD's label on its device, as 'ceph-osd --mkfs' does.
func (s serviceAgent) ConfigureLocalService(_ context.Context, l *service.Local) error {
	h, d := s.host, l.Daemon
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known[d.Namespace+"."+d.Name] = d
	if d.Spec.Type != ceph.TypeOSD {
		return nil
	}
	number, err := strconv.Atoi(d.Spec.ID)
	if err != nil {
		return err
	}
	id := int32(number)
	for i := range h.disks {
		if disk := &h.disks[i]; disk.ID == d.Spec.Devices[0].ID {
			disk.Availability, disk.Reasons = api.DeviceUnavailable, []string{"it holds osd." + d.Spec.ID + " of a Ceph cluster"}
			disk.Ceph = &api.DeviceCeph{FSID: d.Spec.Parameters[ceph.ParamFSID], OSDUUID: d.Spec.Parameters[ceph.ParamOSDUUID], OSDID: &id}
		}
	}
	return nil
}

// DestroyLocalService implements service.ServiceAgent.
func (s serviceAgent) DestroyLocalService(context.Context, *service.Local) error { return nil }
