package why

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/absence"
)

func twins(h *api.Host) bool {
	_, twins := h.Twins()
	return twins
}

func silent(h *api.Host) *metav1.Condition {
	if c := meta.FindStatusCondition(h.Status.Conditions, api.HostAgentConnected); c != nil &&
		c.Status == metav1.ConditionFalse {
		return c
	}
	return nil
}

func (w *World) host(h *api.Host) Answer {
	if text, twins := h.Twins(); twins {
		return answered(
			sentence(upper(text)+". Running daemons keep running; neither machine starts, stops or removes anything"),
			"decide which machine is the right one, and run 'systemctl disable --now holdfast' on the other. The right one "+
				"continues by itself. "+
				"If you cannot reach the other, switch it off or disconnect it.").because(api.ReasonTwoMachines)
	}
	if c := silent(h); c != nil {
		return w.absent(h, c)
	}
	if c := h.Status.Conditions; meta.IsStatusConditionFalse(c, api.HostDirectoryWritable) {
		return unwritable(h)
	}
	d, of := w.decisionOn("host/" + h.Name)
	if mode := h.ModeOf(); mode != api.HostActive {
		text := upper(maintenance(h))
		switch {
		case d == nil:
			return answered(sentence(text+"; all clusters have done their part"), leaveMode(h)).because(api.ReasonHostNotActive)
		case d.Verdict == api.VerdictRefuse && mode == api.HostMaintenance:
			return answered(join(text, "Refused; its daemons keep running", d.Message),
				fmt.Sprintf("wait until the cause is over, which is checked again by itself, or run 'holdfast host maintenance "+
					"exit %s'.", h.Name)).
				because(d.Reason)

		}
		return decided(join(text, d.Message), d, of)
	}
	if d != nil {
		return decided(join(fmt.Sprintf("Host %s is active", h.Name), d.Message), d, of)
	}
	for i := range w.Daemons {
		if x := &w.Daemons[i]; x.Spec.Host == h.Name && !asWanted(x) {
			a := w.daemon(x)
			return answered(join(fmt.Sprintf("Host %s is active and its agent is connected", h.Name), a.Text), a.Next).
				because(a.Reason)
		}
	}
	if c := meta.FindStatusCondition(h.Status.Conditions, api.HostClockInSync); c != nil &&
		c.Status == metav1.ConditionFalse {
		return skewed(h, c)
	}
	if w.unused(h) {
		return notSelected(h)
	}
	return answered(fmt.Sprintf("Host %s is active, its agent is connected, and its daemons are in their desired "+
		"state.", h.Name),
		"")
}

// unwritable answers for a host whose agent cannot write to its directory.
func unwritable(h *api.Host) Answer {
	c := meta.FindStatusCondition(h.Status.Conditions, api.HostDirectoryWritable)
	next := fmt.Sprintf("free space on host %s ('du -xh --max-depth=3 /var | sort -h | tail' there shows what uses "+
		"it); the agent "+
		"continues by itself.", h.Name)
	if c.Reason == string(api.ReasonReadOnly) {
		next = fmt.Sprintf("look at 'dmesg' on host %s for errors of the disk, then mount the file system writable "+
			"('mount -o "+
			"remount,rw') or replace the disk.", h.Name)
	}
	return answered(join(fmt.Sprintf("The agent of host %s is connected, and cannot start or change daemons",
		h.Name), c.Message), next).
		because(api.Reason(c.Reason))
}

// skewed answers for a host whose clock differs from the servers'.
func skewed(h *api.Host, c *metav1.Condition) Answer {
	text := fmt.Sprintf("Host %s is active and its agent is connected, but its clock is wrong", h.Name)
	return answered(join(text, c.Message), fmt.Sprintf("set up time synchronization on host %s ('apt-get install chrony', "+
		"then "+
		"'chronyc tracking' there).", h.Name)).because(api.ReasonClockSkewed)
}

// unused says whether nothing of a cluster is or will be on a host.
func (w *World) unused(h *api.Host) bool {
	has := func(d api.Daemon) bool { return d.Spec.Host == h.Name }
	selects := func(n api.StorageNode) bool {
		return n.Status.Host == h.Name || engine.SelectsHost(n.Spec.NodeSelector, []api.Host{*h})
	}
	return !slices.ContainsFunc(w.Daemons, has) && !slices.ContainsFunc(w.Nodes, selects)
}

// notSelected answers for a host that no cluster uses.
func notSelected(h *api.Host) Answer {
	text := fmt.Sprintf("Host %s is active and its agent is connected. No StorageNode in this namespace selects it, "+
		"so that no daemon "+
		"runs there.", h.Name)
	return answered(text, fmt.Sprintf("to use its devices, apply a StorageNode with nodeSelector {%s: %s}; 'holdfast "+
		"host show %s' "+
		"has the devices.", api.LabelHostname, h.Hostname(), h.Name)).because(api.ReasonNotSelected)
}

// leaveMode is how a host gets back into service.
func leaveMode(h *api.Host) string {
	if h.ModeOf() == api.HostDrain {
		return fmt.Sprintf("to remove the host, run 'holdfast host remove %s'; to return it to service, run 'holdfast "+
			"host maintenance "+
			"exit %[1]s'.", h.Name)
	}
	return leaveMaintenance(h)
}

// absent answers for a host whose agent does not report: why, and what the storage system says of its daemons.
func (w *World) absent(h *api.Host, c *metav1.Condition) Answer {
	reason := absence.Reason(h)
	text := fmt.Sprintf("The agent of host %s has been disconnected since %s",
		h.Name, c.LastTransitionTime.UTC().Format(time.RFC3339))
	if reason != api.ReasonAgentDisconnected {
		text = join(text, c.Message)
	}
	storage := cmp.Or(w.storageOn(h), "Whether the storage on the host serves is not known; the leader stops nothing "+
		"there")
	if reason == api.ReasonNetworkCut || !slices.ContainsFunc(w.Daemons,
		func(d api.Daemon) bool { return d.Spec.Host == h.Name }) {
		storage = "" // the cause says it, or there is none
	}
	return answered(join(text, storage), sentence(absence.Next(h))).because(reason)
}

// storageOn is what the storage systems say of the daemons of a host.
func (w *World) storageOn(h *api.Host) string {
	var daemons []*api.Daemon
	for i := range w.Daemons {
		daemons = append(daemons, &w.Daemons[i])
	}
	return absence.StorageOf(h.Name, daemons, w.Statuses).String()
}
