package doctor

import (
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/apiserver"
)

func checkAPI(f *Facts) []Finding {
	switch {
	case f.Unreachable == nil:
		return ok("the API answers")
	case f.AsHost && refused(f.Servers):
		return finding(Fail, "the servers run, and refuse the certificate of this host"+endedOf(f, "host.crt"), rejoin)
	case f.AsHost && ready(f.Servers) > 0:
		return ok("this machine runs an agent and has no kubeconfig: %d of the %d servers that it knows are ready, and a standby never is; "+
			"'holdfast doctor' on one of them checks the rest", ready(f.Servers), len(f.Servers))
	case apierrors.IsUnauthorized(f.Unreachable), refused(f.Servers):
		return finding(Fail, "the servers run, and refuse the certificate of the kubeconfig"+endedOf(f,
			ownCertificate)+"; checking only this machine",
			newKubeconfig(f))
	case errors.As(f.Unreachable, new(x509.UnknownAuthorityError)):
		return finding(Fail, "the servers run, and the kubeconfig does not trust their certificate: 'holdfast ca rotate' "+
			"replaced the authority, or "+
			"it is of other servers; checking only this machine", newKubeconfig(f))
	case apierrors.IsForbidden(f.Unreachable):
		return finding(Fail, fmt.Sprintf("the API refuses the request: %v; %s", f.Unreachable, checkedInstead(f)),
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

// rejoin lets a host in again.
const rejoin = "run 'holdfast token create' on a server, then stop the agent here and start 'holdfast agent --join " +
	"TOKEN'; check the clock of this machine"

// newKubeconfig gives a user access again.
func newKubeconfig(f *Facts) string {
	return fmt.Sprintf("on a server, run 'holdfast kubeconfig create NAME' for a new one, or copy %s from a server; "+
		"check the clock of this machine",
		control.AdminKubeconfig(f.DataDir))
}

// ownCertificate is what the certificate of the questions is called.
const ownCertificate = "kubeconfig"

// refused says whether a server runs and does not accept the certificate of the questions. None
// that is ready accepts it, either.
func refused(servers []Server) bool {
	return ready(servers) == 0 && slices.ContainsFunc(servers, func(s Server) bool { return s.Refuses })
}

// endedOf continues a sentence with when a certificate of this machine ended, or will begin.
func endedOf(f *Facts, name string) string {
	for _, c := range f.Local.Certificates {
		switch {
		case filepath.Base(c.Path) != name:
		case f.Now.After(c.Ends):
			return ", which ended at " + c.Ends.UTC().Format(time.RFC3339)
		case f.Now.Before(c.Begins):
			return ", which begins at " + c.Begins.UTC().Format(time.RFC3339) + " by the clock of this machine"
		}
	}
	return ": 'holdfast ca rotate' replaced its authority, or it was revoked"
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
