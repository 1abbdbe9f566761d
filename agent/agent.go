// Package agent makes Daemons real on one host: it tells what the host has (Host, its devices and its heartbeat), and for
// each Daemon of this host it writes files, has a service agent prepare the data, and keeps the process running.
//
// Daemons outlive the agent. What runs is adopted before the API is asked for anything, and goes on while the API cannot be
// reached; nothing is ever stopped because of an answer that did not come.
//
// Below the data directory the agent keeps:
//
//	agent/daemons/<namespace>.<name>/data   ${DATA}: the files of the Daemon and what its program stores
//	agent/daemons/<namespace>.<name>/log    ${LOG}: daemon.log, what the process writes to standard output and error
//	agent/retired/<namespace>.<name>-<time> what is left of a Daemon that was deleted with its data retained
//	agent/actions/<uid>.json                which process a restart that is under way is to end
//	agent/machine.json                      the machine that the directory was used on last, and another one that runs as this host
//	agent/runtime                           the records of the runtime for plain processes
//	agent/pods                              those of the runtime for pods
//
// and below the run directory <namespace>.<name>, ${RUN}, for sockets.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	coordv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/agent/clock"
	"github.com/holdfast-storage/holdfast/agent/farewell"
	"github.com/holdfast-storage/holdfast/agent/lastwords"
	"github.com/holdfast-storage/holdfast/agent/prepare"
	"github.com/holdfast-storage/holdfast/agent/relay"
	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/serving"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/foreign"
)

// Inventory tells which block devices the host has. It is safe for concurrent use.
type Inventory interface {
	// Devices is the inventory; what did not change since the last time need not be looked at again.
	Devices(ctx context.Context) ([]api.Device, error)
	// Rescan is Devices with everything looked at anew.
	Rescan(ctx context.Context) ([]api.Device, error)
}

// Config is what the agent of a host needs.
type Config struct {
	// Name is the name of the Host.
	Name string
	// DataDir and RunDir are Holdfast's directories on the host; RunDir may be gone after a boot.
	DataDir, RunDir string
	// REST leads to the servers, with the host's own identity.
	REST *rest.Config
	// Address is the host's address that servers and other hosts know it by. When it is empty, it is the one by which the
	// host reaches the servers, or a default route.
	Address string
	// Servers are the servers that the host knows, as IP:port. When it is nil, it is the one of
	// REST.
	Servers func() []string
	// OfNode says that the Host is made from a Node of Kubernetes, and not by the agent.
	OfNode bool
	// Machine is the id of the machine, which a copy of its disks does not carry, see instance.Machine.
	Machine string
	// FormerMachine is the id that earlier versions gave the machine, see instance.FormerMachine.
	FormerMachine string
	// Version is the version of the holdfast binary.
	Version string
	// Runtime keeps the processes; RuntimeKind says which one it is. The caller closes it after Run has returned.
	Runtime     runtime.Runtime
	RuntimeKind api.RuntimeKind
	Inventory   Inventory
	// Claims tells the inventory what the agent is working on; nil when the inventory does not ask.
	Claims *prepare.Claims
	// Mounts is the file with the host's mounts; empty means the agent's own
	// (/proc/self/mountinfo).
	Mounts string
	// Alone, when not nil, is called whenever the agent comes to know that it is the only one of its host.
	Alone func()
	// Services are the types of daemons that the agent knows.
	Services []service.ServiceAgent
	// Log is slog.Default when nil.
	Log *slog.Logger

	// client takes the place of REST in tests, reportEvery and retryMax those of the constants, proc that of /proc, sys is
	// prefixed to /sys, now takes the place of time.Now, and ticks those of BeatInterval.
	client      client.WithWatch
	reportEvery time.Duration
	retryMax    time.Duration
	proc, sys   string
	now         func() time.Time
	ticks       <-chan time.Time
}

type agent struct {
	Config
	log    *slog.Logger
	client client.WithWatch
	paths  paths
	clock  *clock.Server
	types  map[string]*serviceType
	// preparer and secrets make daemons ready.
	preparer *prepare.Preparer
	secrets  *prepare.Secrets
	work     *work
	told     *told
	acts     *actions
	reports  *reports
	gate     *serving.Gate
	foreign  foreign.Finder
	sole     *sole
	twin     twinNote
	words    *lastwords.Notes
	// lease is the Lease as this agent wrote it last; nil when it has to be read. It is the beat's alone.
	lease *coordv1.Lease
	// report asks for a new look at the host, and reporting is held during one.
	report    chan struct{}
	reporting sync.Mutex
}

// Run is the agent's whole life. It returns when ctx ends, after everything that it does came to rest; daemons go on.
// While no server can be reached it goes on trying. An error means that the configuration cannot work.
func Run(ctx context.Context, cfg Config) error {
	a, err := newAgent(cfg)
	if err != nil {
		return fmt.Errorf("while starting the agent: %w", err)
	}
	orch := relay.Relay{REST: a.REST, Daemons: a.work.daemons.all, RunDir: a.paths.runOf, Log: a.log}
	var wg sync.WaitGroup
	for _, loop := range []func(context.Context){
		a.followDaemons, a.watchProcesses, a.runWork, a.beat, a.reportHost, a.watchDevices, a.watchMounts,
		a.followActions, a.runActions, a.runReports, a.gate.Run, orch.Run,
	} {
		wg.Go(func() { loop(ctx) })
	}
	wg.Wait()
	if a.sole.holds() == "" { // else another agent speaks as the host
		farewell.Say(a.client, a.lease, a.log)
	}
	a.preparer.Scans.Wait()
	return nil
}

func newAgent(cfg Config) (*agent, error) {
	if cfg.Name == "" || cfg.Runtime == nil || cfg.Inventory == nil || cfg.DataDir == "" || cfg.RunDir == "" {
		return nil, errors.New("it needs a name, a runtime, an inventory and directories")
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.now == nil {
		cfg.now = time.Now
	}
	if cfg.Claims == nil {
		cfg.Claims = &prepare.Claims{}
	}
	a := &agent{
		Config: cfg, log: cfg.Log, clock: &clock.Server{}, types: map[string]*serviceType{},
		paths: paths{data: filepath.Join(cfg.DataDir, "agent"), run: cfg.RunDir},
		told:  &told{}, report: make(chan struct{}, 1),
	}
	a.preparer = &prepare.Preparer{
		Devices: cfg.Inventory.Devices, Scans: prepare.NewScans(cfg.Inventory.Rescan), Claims: cfg.Claims, Changed: a.askReport,
	}
	for _, s := range cfg.Services {
		a.types[s.Name()] = &serviceType{agent: s}
	}
	a.foreign.Proc = cfg.proc
	a.words = &lastwords.Notes{Log: a.paths.logFile}
	a.client = cfg.client
	if a.client == nil {
		cl, err := newClient(cfg.REST, a.clock)
		if err != nil {
			return nil, err
		}
		a.client = cl
	}
	a.secrets = &prepare.Secrets{Client: a.client, OfNode: cfg.OfNode, Timeout: callTimeout}
	a.work = newWork(a)
	a.acts = newActions(a)
	a.reports = newReports(a)
	a.gate = serving.New(a.Runtime, a.reports.serves, a.log)
	if err := os.MkdirAll(a.paths.data, 0o700); err != nil {
		return nil, err
	}
	if err := a.openSole(); err != nil {
		return nil, err
	}
	return a, nil
}

// askReport has the host looked at again soon.
func (a *agent) askReport() {
	select {
	case a.report <- struct{}{}:
	default:
	}
}
