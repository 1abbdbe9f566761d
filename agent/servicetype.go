package agent

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

const (
	// versionAge is for how long a program's answer about its version is believed: packages are upgraded under a running agent.
	versionAge = time.Minute
	// upgradeTime is how long another release is there before it is told of: while packages are being upgraded a program and its libraries may
	// be of different ones, and what is told of leads to restarts.
	upgradeTime = 20 * time.Second
)

// serviceType is one type of daemon on this host.
type serviceType struct {
	agent service.ServiceAgent

	initMu      sync.Mutex
	initialized bool

	versionMu sync.Mutex
	known     string
	asked     time.Time
	// told is the release that was last told of as the host's, and since is when another one was first seen beside it.
	told  string
	since time.Time
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

// installed is the release that is installed, as it is told of.
func (t *serviceType) installed(ctx context.Context) string {
	v := t.version(ctx, versionAge)
	t.versionMu.Lock()
	defer t.versionMu.Unlock()
	switch {
	case v == "" || v == t.told:
		t.since = time.Time{}
	case t.told == "" || !t.since.IsZero() && time.Since(t.since) >= upgradeTime:
		t.told, t.since = v, time.Time{}
	case t.since.IsZero():
		t.since = time.Now()
	}
	return t.told
}

// versionOf is the release of a daemon's program. What a running process was reported to be stays: packages may have been
// upgraded since it started, or it runs in another image than the agent.
func (a *agent) versionOf(ctx context.Context, d *api.Daemon) string {
	now, _ := a.Runtime.State(processNameOf(d))
	if s := a.told.last(d); s.Version != "" && (s.PID != 0 && now.PID == int(s.PID) || now.Outdated) {
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
