package agent

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/agent/facts"
	"github.com/holdfast-storage/holdfast/agent/room"
	"github.com/holdfast-storage/holdfast/agent/service/luks"
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
		if a.sole.holds() != "" {
			// Two machines would take turns in saying what the host is. goOn has it reported afterwards.
		} else if err := a.reportOnce(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("cannot report the host; retrying", "error", lockedOut(err), "after", pause)
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
	a.reporting.Lock()
	defer a.reporting.Unlock()
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
	for {
		err := a.applyHostStatus(ctx, want)
		// A server of an earlier version takes only the conditions that it knows.
		refused := apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
		if !refused || !meta.RemoveStatusCondition(&want.Conditions, api.HostDirectoryWritable) {
			return err
		}
	}
}

// remembered has the API answer from what it has in memory, which may be a moment old, instead of from etcd: a thousand hosts that ask for
// what they have said cost the server a third of its garbage otherwise.
var remembered = &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}}

// ownHost returns the Host of this agent, which it creates when there is none and it is not one of a Node. What was written a moment ago may be missing in it:
// then it is written again, and changes nothing.
func (a *agent) ownHost(ctx context.Context) (*api.Host, error) {
	h := &api.Host{}
	err := a.client.Get(ctx, client.ObjectKey{Name: a.Name}, h, remembered)
	if !apierrors.IsNotFound(err) {
		return h, err
	}
	if a.OfNode {
		return nil, fmt.Errorf("there is no Host %s yet: the operator makes one of each Node", a.Name)
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
	others, err := a.foreign.Find(a.ownProcesses())
	if err != nil {
		return nil, err
	}
	s := &api.HostStatus{
		Addresses: a.addresses(ctx, have.Status.Addresses), AgentVersion: a.Version,
		BootID: strings.TrimSpace(string(boot)), Runtime: a.RuntimeKind,
		Packages: a.packages(ctx), Devices: devices, Foreign: others, Facts: facts.Reader{}.Read(have.Status.Facts),
	}
	conditions := []metav1.Condition{encryption()}
	if cond, ok := a.clock.Condition(); ok {
		conditions = append(conditions, cond)
	}
	if cond, ok := room.Condition(a.DataDir); ok {
		conditions = append(conditions, cond)
	}
	for _, cond := range conditions {
		if old := meta.FindStatusCondition(have.Status.Conditions, cond.Type); old != nil {
			s.Conditions = append(s.Conditions, *old)
		}
		meta.SetStatusCondition(&s.Conditions, cond)
	}
	fitHost(s)
	return s, nil
}

// encryption is what the host says of the encryption of its devices.
func encryption() metav1.Condition {
	if err := luks.Available(); err != nil {
		return metav1.Condition{Type: api.HostEncryption, Status: metav1.ConditionFalse, Reason: "NotAvailable", Message: err.Error()}
	}
	return metav1.Condition{Type: api.HostEncryption, Status: metav1.ConditionTrue, Reason: "Available"}
}

// sameStatus compares what the agent alone writes.
func sameStatus(have, want *api.HostStatus) bool {
	mine := have.DeepCopy()
	mine.ObservedGeneration, mine.Conditions = 0, nil
	for _, name := range []string{api.HostEncryption, api.HostClockInSync, api.HostDirectoryWritable} {
		if c := meta.FindStatusCondition(have.Conditions, name); c != nil {
			mine.Conditions = append(mine.Conditions, *c)
		}
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

// packages asks the programs of all types of daemons for their versions. A storage system has that of the first of its programs: that of
// ceph-mon, say, stands for ceph, too.
func (a *agent) packages(ctx context.Context) map[string]api.Release {
	found := map[string]api.Release{}
	for _, name := range slices.Sorted(maps.Keys(a.types)) {
		t := a.types[name]
		if t.initialize(ctx, a.Name) != nil {
			continue
		}
		v := t.installed(ctx)
		if v == "" {
			continue
		}
		found[name] = api.Release(token(v, maxToken))
		if system, _, _ := strings.Cut(name, "-"); found[system] == "" {
			found[system] = found[name]
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}
