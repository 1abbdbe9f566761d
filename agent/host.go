package agent

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

const (
	// fieldOwner is the agent's name in managed fields.
	fieldOwner = "holdfast-agent"
	// reportInterval is how often the host is looked at when nothing tells of a change. Of a device that is written to while
	// no udevd runs, the kernel sends no message; a look at devices that nobody wrote to costs next to nothing.
	reportInterval = 30 * time.Second
	// reportRetry and reportRetryMax bound the pause after a report that did not come through.
	reportRetry, reportRetryMax = time.Second, 30 * time.Second
	// settle is how long the agent waits for more changes of devices before it looks.
	settle = 300 * time.Millisecond
)

// reportHost keeps Host.status true until ctx ends.
func (a *agent) reportHost(ctx context.Context) {
	pause := reportRetry
	for {
		next := reportInterval
		if err := a.reportOnce(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("the host could not be reported; trying again", "error", err, "after", pause)
			next, pause = pause, min(2*pause, reportRetryMax)
		} else {
			pause = reportRetry
		}
		if !sleep(ctx, next, a.report) || !sleep(ctx, settle, nil) {
			return
		}
	}
}

// sleep returns when the time has passed or wake receives; false when ctx has ended.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-wake:
	}
	return true
}

// reportOnce looks at the host and writes what differs from what the server has.
func (a *agent) reportOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	have, err := a.ownHost(ctx)
	if err != nil {
		return err
	}
	want, err := a.hostStatus(ctx, have)
	if err != nil {
		return err
	}
	if sameStatus(&have.Status, want) {
		return nil
	}
	return a.applyHostStatus(ctx, want)
}

// ownHost returns the Host of this agent, which it creates when there is none.
func (a *agent) ownHost(ctx context.Context) (*api.Host, error) {
	h := &api.Host{}
	err := a.client.Get(ctx, client.ObjectKey{Name: a.Name}, h)
	if !apierrors.IsNotFound(err) {
		return h, err
	}
	h = &api.Host{ObjectMeta: metav1.ObjectMeta{Name: a.Name, Labels: map[string]string{api.LabelHostname: a.Name}}}
	if err := a.client.Create(ctx, h); err != nil {
		return nil, fmt.Errorf("while registering the host: %w", err)
	}
	a.log.Info("the host is registered", "host", a.Name)
	return h, nil
}

// hostStatus is what the agent says of its host; of the conditions, only its own.
func (a *agent) hostStatus(ctx context.Context, have *api.Host) (*api.HostStatus, error) {
	devices, err := a.Inventory.Devices(ctx)
	if err != nil {
		return nil, fmt.Errorf("while looking at the devices: %w", err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, err
	}
	s := &api.HostStatus{
		Addresses: addresses(a.preferredAddress(ctx)), AgentVersion: a.Version, BootID: strings.TrimSpace(string(boot)), Runtime: a.RuntimeKind,
		Packages: a.packages(ctx), Devices: devices,
	}
	if cond, ok := a.clock.condition(); ok {
		if old := meta.FindStatusCondition(have.Status.Conditions, cond.Type); old != nil {
			s.Conditions = []metav1.Condition{*old}
		}
		meta.SetStatusCondition(&s.Conditions, cond)
	}
	return s, nil
}

// sameStatus compares what the agent alone writes.
func sameStatus(have, want *api.HostStatus) bool {
	mine := have.DeepCopy()
	mine.Conditions = nil
	if c := meta.FindStatusCondition(have.Conditions, api.HostClockInSync); c != nil {
		mine.Conditions = []metav1.Condition{*c}
	}
	return equality.Semantic.DeepEqual(mine, want)
}

// applyHostStatus writes by server-side apply: the list of conditions has two writers, the agent and the leader, and neither
// may take away what the other one says.
func (a *agent) applyHostStatus(ctx context.Context, want *api.HostStatus) error {
	status, err := kruntime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	u.SetGroupVersionKind(api.GroupVersion.WithKind("Host"))
	u.SetName(a.Name)
	err = a.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(fieldOwner), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("while reporting the host: %w", err)
	}
	return nil
}

// packages asks one program of each storage system for its version: "ceph-mon" speaks for ceph.
func (a *agent) packages(ctx context.Context) map[string]string {
	found := map[string]string{}
	for name, t := range a.types {
		system, _, _ := strings.Cut(name, "-")
		if found[system] != "" || t.initialize(ctx, a.Name) != nil {
			continue
		}
		if v := t.version(ctx, versionAge); v != "" {
			found[system] = v
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}
