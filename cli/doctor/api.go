package doctor

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/holdfast-storage/holdfast/control/apiserver"
)

func checkAPI(f *Facts) []Finding {
	switch {
	case f.Unreachable == nil:
		return ok("the API answers")
	case f.AsHost && ready(f.Servers) > 0:
		return ok("this machine runs an agent and has no kubeconfig: %d of the %d servers that it knows are ready, and a standby never is; "+
			"'holdfast doctor' on one of them checks the rest", ready(f.Servers), len(f.Servers))
	case apierrors.IsForbidden(f.Unreachable), apierrors.IsUnauthorized(f.Unreachable):
		return finding(Fail, fmt.Sprintf("the API refuses to be read: %v; %s", f.Unreachable, checkedInstead(f)),
			"use --kubeconfig with the kubeconfig of a user who may read everything")
	}
	found := finding(Fail, fmt.Sprintf("the API cannot be reached: %v; %s", f.Unreachable, checkedInstead(f)), reachAgain(f))
	for _, s := range f.Servers {
		if s.Err != nil {
			found = append(found, Finding{Level: Warn, Message: fmt.Sprintf("the server at %s is not ready: %v", s.Address, s.Err), Remedy: s.orWait(
				"start it ('systemctl start holdfast' there), or repair the network to it; a running server may wait for the others, or be a standby, which serves nothing")})
		}
	}
	return found
}

// checkedInstead says what is checked where the API cannot be. How many servers there are says nothing of the quorum: standbys are among them.
func checkedInstead(f *Facts) string {
	if len(f.Servers) == 0 {
		return "checking only this machine"
	}
	return fmt.Sprintf("checking this machine and the servers: %d of %d are ready, and a standby never is", ready(f.Servers), len(f.Servers))
}

// reachAgain says what to do where the API cannot be reached. A server is ready only with a quorum: while one is, a restore would throw away what they have.
func reachAgain(f *Facts) string {
	const look = "check that the servers run ('systemctl status holdfast' and 'journalctl -u holdfast' on each), and that this machine reaches port 7440 there; " +
		"storage daemons keep running"
	const restore = "; if more than half of the members of etcd are lost for good, run 'holdfast restore --from-data' on one that is left"
	switch {
	case f.Role == "agent":
		return "run 'holdfast doctor' on a server, or use --kubeconfig ('holdfast kubeconfig create NAME' on a server creates one): " +
			"an agent's machine has no kubeconfig"
	case f.Role != "server":
		return look
	case ready(f.Servers) > 0:
		return "the control plane works: another server is ready. Only the server of this machine is down or disconnected. " +
			"Start it ('systemctl start holdfast' here); 'journalctl -u holdfast' has the cause of its end, or what it waits for"
	case cutOff(f.Servers):
		return "first check that this machine is connected to the network ('ip address', and 'ping' to another server): no other server can be dialled, " +
			"and they may work without this one. If it is not, " + look + restore
	}
	return look + restore
}

// ready counts the servers that are.
func ready(servers []Server) (n int) {
	for _, s := range servers {
		if s.Err == nil {
			n++
		}
	}
	return n
}

// orWait is what to do about a server that is not ready: nothing, where it has only just begun to run.
func (s *Server) orWait(remedy string) string {
	if strings.HasPrefix(s.Err.Error(), apiserver.Starting) {
		return "wait some seconds, and run 'holdfast doctor' again: it has just started"
	}
	return remedy
}

// cutOff says whether the machines of other servers are known, and none of them can be reached, as where the network of this one is down.
func cutOff(servers []Server) bool {
	other := func(s Server) bool { return !s.Own }
	return slices.ContainsFunc(servers, other) && !slices.ContainsFunc(servers, func(s Server) bool { return other(s) && s.Reached })
}
