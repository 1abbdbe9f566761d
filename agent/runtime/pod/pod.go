// Package pod runs daemons as pods of Kubernetes, for nodes of a Kubernetes cluster. The agent
// itself makes them: each is pinned to the agent's node, and its directories, devices and network
// are the host's.
//
// The kubelet restarts a container that ends, with or without an agent. What the kubelet does not
// do the runtime does: it makes another pod in the place of one that failed or was deleted by
// others, and never while a process of the old one lives. A file for each process has what the next
// agent must know when the pod is gone.
//
// The runtime reads its pods from a watch. What it writes itself it sees at once.
package pod

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/agent/runtime"
)

// DefaultPriorityClass spares daemons when a node is short of something.
const DefaultPriorityClass = "system-node-critical"

// DefaultManagedBy is the label app.kubernetes.io/managed-by of pods of daemons.
const DefaultManagedBy = "holdfast"

// Config is what New needs.
type Config struct {
	// REST leads to the API server of the Kubernetes cluster, with an identity that may keep the
	// pods of this node.
	REST *rest.Config
	// Dir holds a file for each process. It is made if missing.
	Dir string
	// Node is the name of the Node that the agent is on.
	Node string
	// Image is the agent's own image, which has the programs of the daemons; PullPolicy says when
	// it is pulled (empty: IfNotPresent) and PullSecrets with what, by names of Secrets in the
	// namespace of each daemon.
	Image       string
	PullPolicy  corev1.PullPolicy
	PullSecrets []string
	// ManagedBy tells the pods of one runtime on a node from those of another one; empty means
	// DefaultManagedBy. Namespace, when not empty, is where all of them are.
	ManagedBy, Namespace string
	// PriorityClass is that of the pods; empty means DefaultPriorityClass.
	PriorityClass string
	// Log receives what the runtime does by itself; nil means slog.Default.
	Log *slog.Logger
	// BackOff says how long to wait before another pod is made in the place of one that is gone;
	// the zero value means runtime.DefaultBackOff. In a pod, the kubelet has pauses of its own.
	BackOff runtime.BackOff
	// BeforeStart, when not nil, is called before each pod is made.
	BeforeStart func(runtime.Process)
	// Processes finds the processes of a pod; nil means in /proc, by their cgroups.
	Processes func(uid types.UID) ([]Process, error)
	// HostPID has pods see the processes of the host under the host's numbers: programs that look at
	// who uses them, and tests.
	HostPID bool
}

// Runtime is the runtime.Runtime of pods.
type Runtime struct {
	cfg     Config
	log     *slog.Logger
	api     pods
	changes *runtime.Notifier
	// ctx ends with Close.
	ctx    context.Context //nolint:containedctx // pods are watched for as long as the runtime is open
	cancel context.CancelFunc
	wg     sync.WaitGroup
	synced chan struct{}

	mu      sync.Mutex
	entries map[string]*entry
	// gone are pods of forgotten processes of which the watch may tell still.
	gone map[types.UID]bool

	turns runtime.Turns // calls for one name run one after the other
}

var (
	_ runtime.Runtime   = (*Runtime)(nil)
	_ runtime.Announcer = (*Runtime)(nil)
)

// New returns when the API server has said which pods of this node there are: before that an agent
// would take its own daemons for those of others. It waits for that until ctx ends.
func New(ctx context.Context, cfg Config) (*Runtime, error) {
	if cfg.Node == "" || cfg.Image == "" || cfg.Dir == "" || cfg.REST == nil {
		return nil, errors.New("the runtime of pods needs the name of its node, an image, a directory, " +
			"and a way to the API server")
	}
	cfg.setDefaults()
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("while making the runtime's directory: %w", err)
	}
	api, err := newPods(&cfg)
	if err != nil {
		return nil, err
	}
	r := &Runtime{
		cfg: cfg, log: cfg.Log, api: api, changes: runtime.NewNotifier(), synced: make(chan struct{}),
		entries: map[string]*entry{}, gone: map[types.UID]bool{},
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	for _, rec := range loadRecords(cfg.Dir, cfg.Log) {
		r.entries[rec.Process.Name] = newEntry(r, rec)
	}
	r.wg.Go(func() { r.api.follow(r.ctx, &store{rt: r}) })
	select {
	case <-r.synced:
		return r, nil
	case <-ctx.Done():
		err := fmt.Errorf("while asking for the pods of node %s: %w", cfg.Node, context.Cause(ctx))
		return nil, errors.Join(err, r.Close())
	}
}

func (c *Config) setDefaults() {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.PullPolicy == "" {
		c.PullPolicy = corev1.PullIfNotPresent
	}
	if c.ManagedBy == "" {
		c.ManagedBy = DefaultManagedBy
	}
	if c.PriorityClass == "" {
		c.PriorityClass = DefaultPriorityClass
	}
	if c.BackOff == (runtime.BackOff{}) {
		c.BackOff = runtime.DefaultBackOff
	}
	if c.BeforeStart == nil {
		c.BeforeStart = func(runtime.Process) {}
	}
	if c.Processes == nil {
		c.Processes = func(uid types.UID) ([]Process, error) { return processesOf("/proc", uid) }
	}
}

// settleTime is how long Start waits for the first state of a pod that says something.
const settleTime = 10 * time.Second

// Start implements runtime.Runtime.
func (r *Runtime) Start(ctx context.Context, p runtime.Process) error {
	if err := check(p); err != nil {
		return err
	}
	e, err := r.start(ctx, p)
	if err != nil {
		return fmt.Errorf("while starting %s: %w", p.Name, err)
	}
	e.settle(ctx)
	return nil
}

func (r *Runtime) start(ctx context.Context, p runtime.Process) (*entry, error) {
	done, err := r.turns.Take(ctx, r.ctx, p.Name)
	if err != nil {
		return nil, err
	}
	defer done()
	e := r.find(p.Name)
	if e != nil && e.mustEnd(p) {
		if err := e.end(ctx); err != nil {
			return nil, err
		}
		e = nil
	}
	if e == nil {
		return r.begin(ctx, p)
	}
	return e, e.setProcess(p)
}

// check refuses what would fail in a pod. A program that is missing here is missing there: it is
// the same image.
func check(p runtime.Process) error {
	switch {
	case p.Name == "" || len(p.Name) > 253 || strings.ContainsAny(p.Name, "/\x00") || strings.HasPrefix(p.Name, "."):
		return fmt.Errorf("%q cannot be the name of a process", p.Name)
	case p.Of.Namespace == "" || p.Of.Name == "":
		return fmt.Errorf("%s is of no daemon: a pod needs a namespace and a name", p.Name)
	case len(p.Command) == 0:
		return errors.New("no command")
	}
	_, err := exec.LookPath(p.Command[0])
	return err
}

// Stop implements runtime.Runtime.
func (r *Runtime) Stop(ctx context.Context, name string) error {
	done, err := r.turns.Take(ctx, r.ctx, name)
	if err != nil {
		return err
	}
	defer done()
	e := r.find(name)
	if e == nil {
		return nil
	}
	return e.end(ctx)
}

// State implements runtime.Runtime.
func (r *Runtime) State(name string) (runtime.State, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[name]
	if e == nil {
		return runtime.State{}, false
	}
	s := e.state(r.cfg.Image, time.Now())
	if s.LastExit != nil {
		exit := *s.LastExit
		s.LastExit = &exit
	}
	return s, true
}

// Names implements runtime.Runtime.
func (r *Runtime) Names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := make([]string, 0, len(r.entries))
	for name := range r.entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Changes implements runtime.Runtime.
func (r *Runtime) Changes() <-chan string { return r.changes.C() }

// Capabilities implements runtime.Runtime: the end of a container ends all of its processes.
func (r *Runtime) Capabilities() runtime.Capabilities { return runtime.Capabilities{Once: true} }

// Announce implements runtime.Announcer by the readiness gate of the pod.
func (r *Runtime) Announce(ctx context.Context, name string, serves bool) error {
	r.mu.Lock()
	e := r.entries[name]
	var pod *corev1.Pod
	if e != nil {
		pod = e.pod
	}
	r.mu.Unlock()
	if pod == nil || serving(pod) == serves {
		return nil
	}
	now, err := r.api.setServing(ctx, pod, serves)
	if now != nil {
		r.wrote(now)
	}
	return err
}

// Close implements runtime.Runtime.
func (r *Runtime) Close() error {
	r.cancel()
	r.wg.Wait()
	r.changes.Close()
	return nil
}

func (r *Runtime) find(name string) *entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entries[name]
}
