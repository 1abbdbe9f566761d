// Package deviceaction carries out the actions of an agent on the hardware of its host: it looks
// for new disks (host.rescan), wipes a disk (device.wipe), and switches the lights of a disk's slot
// (device.light).
package deviceaction

import (
	"context"
	"time"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/hostaction"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Host is what the actions need of the agent.
type Host struct {
	Name string
	// Root is prefixed to /sys.
	Root string
	// Devices are all devices, and Scan looks at them anew.
	Devices, Scan func(ctx context.Context) ([]api.Device, error)
	// Report has the server know the devices when it returns.
	Report func(ctx context.Context) error
	// Daemons are those of the host; known is false before the server has said which.
	Daemons func() (all []*api.Daemon, known bool)
	// Busy says why a disk at a path may not be wiped, by what the kernel knows of it.
	Busy func(ctx context.Context, path string) ([]string, error)
	// Working says what the agent itself is doing with a device, and Hold says it of devices until
	// release is called.
	Working func(id string) string
	Hold    func(ids []string, reason string) (release func())
}

// timeout bounds the actions. What a disk or an adapter does not answer in this time it will not
// answer.
const timeout = 15 * time.Minute

// The kinds. What is done to hardware cannot be taken back.
var (
	rescanKind = action.Kind{
		Name: hostaction.Rescan, Executor: api.ByAgent, Mode: action.Beside, Steps: []string{"scan"},
		Final: true, Timeout: timeout,
		Summary: "makes the SCSI adapters of a host look for new disks, and scans its devices anew (target host/NAME)",
	}
	// wipeKind takes no redundancy away: nothing that a cluster needs is wiped. So it delays no
	// cluster.
	wipeKind = action.Kind{
		Name: hostaction.Wipe, Executor: api.ByAgent, Mode: action.Shared, Steps: []string{"wipe", "look"},
		Final: true, Asks: true, Timeout: timeout,
		Summary: "wipes a disk that no cluster uses; its data is lost (target device/ID, parameter confirm: ID)",
	}
	lightKind = action.Kind{
		Name: hostaction.Light, Executor: api.ByAgent, Mode: action.Beside, Steps: []string{"switch"},
		Final: true, Timeout: timeout,
		Summary: "switches a light of a disk's slot (target device/ID, parameters light: ident|fault, state: on|off)",
	}
)

// Kinds are those of Handlers.
func Kinds() []action.Kind { return []action.Kind{rescanKind, wipeKind, lightKind} }

// Handlers carry out each kind.
func Handlers(h Host) []action.Handler { return []action.Handler{&rescan{h}, &wipe{h}, &light{h}} }

// undone is what is left to undo of a kind of which nothing can be undone.
func undone() (action.Progress, error) { return action.Progress{Done: true}, nil }
