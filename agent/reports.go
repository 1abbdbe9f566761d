package agent

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

const (
	// reportEvery is how often a service is asked what it says of itself, where nothing asks before.
	reportEvery = 5 * time.Second
	// reportTimeout bounds one report.
	reportTimeout = 30 * time.Second
	// commandReport bounds the report that a command waits for, so that whoever asked for the command sees what came of it.
	commandReport = 5 * time.Second
)

// reports asks the service agents what their services say of themselves, of the daemons whose driver wants to know. Each daemon is
// asked by one goroutine at a time.
type reports struct {
	agent *agent
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu    sync.Mutex
	about map[types.NamespacedName]about
}

// about is what is known of the reports of a daemon.
type about struct {
	generation generation
	process    process
	// problem is why there is no report, a sentence. reported is set when there was one of this process.
	problem  string
	reported bool
}

func newReports(a *agent) *reports {
	return &reports{
		agent: a, about: map[types.NamespacedName]about{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]()),
	}
}

// wantsReport says whether the driver asks for the daemon's reports.
func wantsReport(d *api.Daemon) bool {
	return d != nil && d.DeletionTimestamp == nil && d.Spec.Parameters[api.ParameterReport] != ""
}

// sees has a daemon asked when its process or its spec is another one than at the last time.
func (r *reports) sees(d *api.Daemon, s runtime.State) {
	key := client.ObjectKeyFromObject(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := about{generation: generationOf(d), process: processOf(s)}
	was := r.about[key]
	if now.generation == was.generation && now.process == was.process {
		return
	}
	r.about[key] = now
	r.agent.gate.Look(processName(key))
	if wantsReport(d) {
		r.queue.Add(key)
	}
}

func (r *reports) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.about, key)
}

// serves says whether a process does its part: by its own word where its service agent can ask for that, and else
// by its first report, where reports are wanted.
func (r *reports) serves(ctx context.Context, name string) (bool, error) {
	key := keyOf(name)
	d, _ := r.agent.work.daemons.get(key)
	if text, err := (&restart{r.agent}).awaits(ctx, key); d == nil || err != nil || text != "" {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return !wantsReport(d) || r.about[key].reported, nil
}

// problemOf is why there is no report of a daemon; empty where there is one or none is wanted.
func (r *reports) problemOf(d *api.Daemon) string {
	if !wantsReport(d) {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.about[client.ObjectKeyFromObject(d)].problem
}

// setProblem keeps why there is no report, and returns what it was before.
func (r *reports) setProblem(d *api.Daemon, problem string) (was string) {
	key := client.ObjectKeyFromObject(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.about[key]
	was, x.problem, x.reported = x.problem, problem, problem == ""
	r.about[key] = x
	return was
}

// runReports asks for reports until ctx ends, and then waits for those under way.
func (a *agent) runReports(ctx context.Context) {
	r := a.reports
	release := context.AfterFunc(ctx, r.queue.ShutDown)
	defer release()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		key, down := r.queue.Get()
		if down {
			return
		}
		wg.Go(func() {
			defer r.queue.Done(key)
			r.look(ctx, key)
		})
	}
}

// look asks for one report, and has it asked for again later. Of a process that does not run there is none; its next start asks.
func (r *reports) look(ctx context.Context, key types.NamespacedName) {
	d, _ := r.agent.work.daemons.get(key)
	if !wantsReport(d) {
		return
	}
	if s, _ := r.agent.Runtime.State(processName(key)); !s.Running {
		return
	}
	if err := r.take(ctx, d); err != nil && ctx.Err() == nil {
		r.agent.log.Debug("cannot write a report; retrying", "daemon", key, "error", err)
	}
	r.queue.AddAfter(key, cmp.Or(r.agent.reportEvery, reportEvery))
}

// take asks for a report of a daemon, and tells it or why there is none. The error says that it could not be told.
func (r *reports) take(ctx context.Context, d *api.Daemon) error {
	text, err := r.ask(ctx, d)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	problem := ""
	if err != nil {
		problem = fitMessage("it runs, but reports no state: " + err.Error())
	}
	was := r.setProblem(d, problem)
	return r.agent.edit(ctx, d, func(s *api.DaemonStatus) {
		if now, _ := r.agent.work.daemons.get(client.ObjectKeyFromObject(d)); !wantsReport(now) || now.UID != d.UID {
			return // it was asked for before, and is not any more
		}
		if err == nil {
			s.Report = text
		}
		if s.State == api.DaemonRunning && (s.Message == "" || s.Message == was) {
			s.Message = problem
		}
	})
}

// ask asks the service agent. A fault in it must not end the agent, which looks after all other daemons.
func (r *reports) ask(ctx context.Context, d *api.Daemon) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.agent.log.Error("panic while a report is made", "daemon", client.ObjectKeyFromObject(d), "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("a fault in the agent (its log has more): %v", p)
		}
	}()
	t := r.agent.types[d.Spec.Type]
	if t == nil {
		return "", fmt.Errorf("this agent (version %s) does not know daemons of type %q: upgrade Holdfast on this host", r.agent.Version, d.Spec.Type)
	}
	reporter, ok := t.agent.(service.Reporter)
	if !ok {
		return "", fmt.Errorf("this agent (version %s) reports nothing of daemons of type %q: upgrade Holdfast on this host", r.agent.Version, d.Spec.Type)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, reportTimeout, fmt.Errorf("no answer for %s", reportTimeout))
	defer cancel()
	l, err := r.agent.localNow(ctx, d)
	if err != nil {
		return "", err
	}
	text, err = reporter.Report(ctx, l)
	r.watchDevices(t.agent, l)
	if err != nil {
		return "", err
	}
	return fitReport(text)
}

// watchDevices has a daemon's devices made ready again that are not as they were left. While they are being worked on, or come to be
// after a pause because that failed, nothing has to be asked for.
func (r *reports) watchDevices(agent service.ServiceAgent, l *service.Local) {
	key, w := client.ObjectKeyFromObject(l.Daemon), r.agent.work
	warden, ok := agent.(service.DeviceWarden)
	if !ok || w.busy(key) || w.hasFailed(key) || !w.isReady(key, generationOf(l.Daemon)) || warden.DevicesKept(l) {
		return
	}
	r.agent.log.Warn("devices of a daemon changed: preparing them again", "daemon", key)
	w.forget(key)
	w.add(key)
}

// afterCommand takes a report for whoever asked for a command, and waits for it a little: a report that takes longer is told later.
func (r *reports) afterCommand(ctx context.Context, d *api.Daemon) {
	if !wantsReport(d) {
		return
	}
	short, cancel := context.WithTimeout(ctx, commandReport)
	defer cancel()
	if r.take(short, d) != nil {
		r.queue.Add(client.ObjectKeyFromObject(d))
	}
}
