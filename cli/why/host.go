package why

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/absence"
)

func twins(h *api.Host) bool {
	_, twins := h.Twins()
	return twins
}

func silent(h *api.Host) *metav1.Condition {
	if c := meta.FindStatusCondition(h.Status.Conditions, api.HostAgentConnected); c != nil && c.Status == metav1.ConditionFalse {
		return c
	}
	return nil
}

func (w *World) host(h *api.Host) Answer {
	if text, twins := h.Twins(); twins {
		return answered(
			sentence(upper(text)+". Running daemons keep running; neither machine starts, stops or removes anything"),
			"decide which machine is the right one, and run 'systemctl disable --now holdfast' on the other. The right one continues by itself. "+
				"If you cannot reach the other, switch it off or disconnect it.").because(api.ReasonTwoMachines)

	}
	if c := silent(h); c != nil {
		return w.absent(h, c)
	}
	d, of := w.decisionOn("host/" + h.Name)
	if mode := h.ModeOf(); mode != api.HostActive {
		text := upper(maintenance(h))
		switch {
		case d == nil:
			return answered(sentence(text+"; all clusters have done their part"), leaveMaintenance(h))
		case d.Verdict == api.VerdictRefuse && mode == api.HostMaintenance:
			return answered(join(text, "Refused; its daemons keep running", d.Message),
				fmt.Sprintf("wait until the cause is over, which is checked again by itself, or run 'holdfast host maintenance exit %s'.", h.Name)).
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
	return answered(fmt.Sprintf("Host %s is active, its agent is connected, and its daemons are in their desired state.", h.Name),
		"")
}

// absent answers for a host whose agent does not report: why, and what the storage system says of its daemons.
func (w *World) absent(h *api.Host, c *metav1.Condition) Answer {
	reason := absence.Reason(h)
	text := fmt.Sprintf("The agent of host %s has been disconnected since %s",
		h.Name, c.LastTransitionTime.UTC().Format(time.RFC3339))
	if reason != api.ReasonAgentDisconnected {
		text = join(text, c.Message)
	}
	storage := cmp.Or(w.storageOn(h), "Whether the storage on the host serves is not known; the leader stops nothing there")
	if reason == api.ReasonNetworkCut {
		storage = "" // the cause says it
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
