package agent

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// versionAge is for how long a program's answer about its version is believed: packages are upgraded under a running agent.
const versionAge = time.Minute

// serviceType is one type of daemon on this host.
type serviceType struct {
	agent service.ServiceAgent

	initMu      sync.Mutex
	initialized bool

	versionMu sync.Mutex
	known     string
	asked     time.Time
}

// initialize calls the service agent's Initialize until it has succeeded once.
func (t *serviceType) initialize(ctx context.Context, host string) error {
	t.initMu.Lock()
	defer t.initMu.Unlock()
	if t.initialized {
		return nil
	}
	err := t.agent.Initialize(ctx, &service.Host{Name: host})
	t.initialized = err == nil
	return err
}

// version is the release that is installed, or ""; what was found out within the last time may be believed.
func (t *serviceType) version(ctx context.Context, believed time.Duration) string {
	v, ok := t.agent.(service.Versioner)
	if !ok {
		return ""
	}
	t.versionMu.Lock()
	defer t.versionMu.Unlock()
	if t.asked.IsZero() || time.Since(t.asked) > believed {
		if got, err := v.Version(ctx); err == nil {
			t.known = got
		}
		t.asked = time.Now()
	}
	return t.known
}

// versionOf is the release of a daemon's program. What a running process was reported to be stays: packages may have been
// upgraded since it started.
func (a *agent) versionOf(ctx context.Context, d *api.Daemon) string {
	now, _ := a.Runtime.State(processNameOf(d))
	if s := a.told.last(d); s.Version != "" && s.PID != 0 && now.PID == int(s.PID) {
		return s.Version
	}
	t := a.types[d.Spec.Type]
	switch {
	case t == nil:
		return ""
	case now.PID != 0: // it stays for as long as the process runs, so it has to be right
		return t.version(ctx, 0)
	}
	return t.version(ctx, versionAge)
}
