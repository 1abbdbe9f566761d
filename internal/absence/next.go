package absence

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// explained are the reasons of the condition AgentConnected that say more than that the agent is disconnected.
var explained = map[api.Reason]bool{
	api.ReasonMachineUnreachable: true, api.ReasonAgentStopped: true, api.ReasonAgentNotRunning: true,
	api.ReasonServersNotTrusted: true, api.ReasonNetworkCut: true, api.ReasonAgentHangs: true,
	api.ReasonCertificateEnded: true, api.ReasonCertificateRefused: true,
}

// Reason is why the agent of a host does not report, by its condition AgentConnected;
// AgentDisconnected where nothing more is known.
func Reason(h *api.Host) api.Reason {
	c := meta.FindStatusCondition(h.Status.Conditions, api.HostAgentConnected)
	if c != nil && explained[api.Reason(c.Reason)] {
		return api.Reason(c.Reason)
	}
	return api.ReasonAgentDisconnected
}

// Next is the next step for a host whose agent does not report, without a full stop.
func Next(h *api.Host) string {
	const look = "check that the machine is on and reaches a server; on it, run 'systemctl status holdfast'"
	at := "on host " + h.Name
	_, server := h.Labels[api.LabelServer]
	switch Reason(h) {
	case api.ReasonMachineUnreachable:
		return fmt.Sprintf("switch the machine of host %s on, or repair the network to it ('ping %s' from a server); if "+
			"it is "+
			"gone for good, run 'holdfast host remove %s --gone'", h.Name, first(h), h.Name)
	case api.ReasonNetworkCut:
		return fmt.Sprintf("repair the network between the servers and host %s ('ping %s' from a server), or the "+
			"firewall in between; do not remove the host, whose storage serves", h.Name, first(h))
	case api.ReasonAgentStopped:
		return fmt.Sprintf("run 'systemctl start holdfast' %s", at)
	case api.ReasonAgentNotRunning:
		if server {
			return fmt.Sprintf("run 'systemctl start holdfast' %s; if it ends again, 'journalctl -u holdfast' there has the "+
				"cause", at)
		}
		return fmt.Sprintf("run 'systemctl status holdfast' %[1]s: if it does not run, 'systemctl start holdfast'; if it "+
			"runs, 'holdfast doctor' there says which server it does not reach", at)
	case api.ReasonAgentHangs:
		return fmt.Sprintf("run 'systemctl restart holdfast' %s; running daemons keep running", at)
	case api.ReasonServersNotTrusted:
		return fmt.Sprintf("check the clock of host %s ('date' there); if it is right, %s", h.Name, joinAgain(h, server))
	case api.ReasonCertificateEnded, api.ReasonCertificateRefused:
		return joinAgain(h, server)
	default:
		return hearAgain(h, look)
	}
}

// hearAgain says what to do about a silent agent: bare on a machine of its own, else what
// Kubernetes knows of its pod.
func hearAgain(h *api.Host, bare string) string {
	pod := meta.FindStatusCondition(h.Status.Conditions, api.HostAgentPod)
	switch {
	case pod != nil:
		return pod.Message
	case meta.FindStatusCondition(h.Status.Conditions, api.HostNodeReady) != nil:
		return "look at the agent's pod: 'kubectl -n " + api.SystemNamespace + " get pods -o wide --field-selector " +
			"spec.nodeName=" + h.Name + "'"
	}
	return bare
}

// joinAgain is how a host gets a new certificate.
func joinAgain(h *api.Host, server bool) string {
	if server {
		return fmt.Sprintf("run 'holdfast token create --role server' on another server, then 'holdfast server --join "+
			"TOKEN' on host %s", h.Name)
	}
	return fmt.Sprintf("run 'holdfast token create' on a server, then stop the agent of host %[1]s, start 'holdfast "+
		"agent --join TOKEN' there, and check its clock", h.Name)
}

// addresses names where a machine was looked for.
func addresses(h *api.Host) string {
	if len(h.Status.Addresses) > 2 {
		return strings.Join(h.Status.Addresses[:2], ", ") + " and others"
	}
	return cmp.Or(strings.Join(h.Status.Addresses, ", "), "any address")
}

func first(h *api.Host) string {
	if len(h.Status.Addresses) == 0 {
		return h.Name
	}
	return h.Status.Addresses[0]
}

// unwritable continues a message where the agent reported last that it cannot write to its directory.
func unwritable(h *api.Host) string {
	c := meta.FindStatusCondition(h.Status.Conditions, api.HostDirectoryWritable)
	if c == nil || c.Status != metav1.ConditionFalse {
		return ""
	}
	return "; it reported last that " + c.Message
}
