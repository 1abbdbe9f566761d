// Package absence says why the agent of a host does not report, by what can be known from
// elsewhere: what the servers see of it, what it wrote last, whether its machine answers, and what
// the storage system says of its daemons. It is pure.
package absence

import (
	"fmt"
	"time"

	"github.com/holdfast-storage/holdfast/internal/words"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Path is where a server says what it has seen of the agents, to the other servers and to administrators.
const Path = "/holdfast/v1/agents"

// Refusal is why a server refuses an agent.
type Refusal string

// The refusals.
const (
	// Ended: the certificate of the host has ended.
	Ended Refusal = "Ended"
	// Stranger: the certificate is of an authority that the servers do not trust.
	Stranger Refusal = "Stranger"
	// Distrusts: the client ends its connections before it asks for anything, as it does not trust
	// the server's certificate.
	Distrusts Refusal = "Distrusts"
)

// Seen is what a server has seen of the agent of a host.
type Seen struct {
	// Open are the requests of the agent that are under way, such as watches.
	Open int `json:"open,omitempty"`
	// Refused is why its last request was refused; empty if it was let in. Certificate is when its certificate ends or
	// ended, and Ago how long ago, in seconds, the request was refused.
	Refused     Refusal   `json:"refused,omitempty"`
	Certificate time.Time `json:"certificate,omitzero"`
	Ago         float64   `json:"ago,omitempty"`
}

// With adds what another server, or another address of the host, has seen: the newest refusal counts.
func (s Seen) With(other Seen) Seen {
	open := s.Open + other.Open
	if other.Refused != "" && (s.Refused == "" || other.Ago < s.Ago) {
		s = other
	}
	s.Open = open
	return s
}

// Sightings is what a server has seen of all agents: by hosts, and by addresses of those that prove no name.
type Sightings struct {
	Hosts     map[string]Seen `json:"hosts,omitempty"`
	Addresses map[string]Seen `json:"addresses,omitempty"`
}

// Farewell is what an agent says at its end.
type Farewell string

// The farewells.
const (
	// Stopped: somebody stopped the agent, or its machine is being switched off.
	Stopped Farewell = "Stopped"
)

// Reply is how something answers to a connection.
type Reply string

// The replies. The zero Reply stands for something that was not asked.
const (
	// Accepts: it takes connections, and answers to what is asked.
	Accepts Reply = "Accepts"
	// Hangs: it takes connections, and answers nothing.
	Hangs Reply = "Hangs"
	// Closed: the machine answers that nothing listens there.
	Closed Reply = "Closed"
	// Silent: nothing comes back.
	Silent Reply = "Silent"
)

// Facts are what is known of a host whose agent does not report.
type Facts struct {
	// For is how long the agent has been disconnected.
	For time.Duration
	// Machine is the best reply to the leader from any port of the machine; Server that of the
	// server's port, where the host runs a server.
	Machine, Server Reply
	// Servers are how many servers were asked what they see, and Seen what they said, put together.
	Servers int
	Seen    Seen
	// Farewell is what the agent said at its end; empty if it said nothing.
	Farewell Farewell
	// Storage is what the storage systems say of its daemons.
	Storage Storage
	// Was is the reason that was given before, and holds where nothing speaks against it.
	Was api.Reason
}

// Cause is why an agent does not report.
type Cause struct {
	Reason  api.Reason
	Message string
}

// fresh is how long a refusal counts: an agent tries again every few seconds.
const fresh = 20

// Judge says why the agent of a host does not report.
func Judge(host *api.Host, f Facts) Cause {
	switch s := f.Seen; {
	case s.Refused == Ended && s.Ago < fresh:
		return Cause{api.ReasonCertificateEnded, "the agent runs, and the servers refuse it: its certificate ended at " +
			s.Certificate.UTC().Format(time.RFC3339)}
	case s.Refused == Stranger && s.Ago < fresh:
		return Cause{api.ReasonCertificateRefused, "the agent runs, and the servers refuse it: its certificate is of " +
			"an authority that they do not trust"}
	case s.Refused == Distrusts && s.Ago < fresh && f.Farewell == "":
		return Cause{api.ReasonServersNotTrusted, "the agent runs, and ends each connection to a server: it does not " +
			"trust the " +
			"certificate of the servers, because the clock of the host is wrong or it knows another authority"}
	case f.Machine == Silent:
		return unreachable(host, f)
	case f.Machine == "":
		return Cause{api.ReasonAgentDisconnected, "no heartbeat of the agent arrives"}
	case f.Server == Hangs, f.Server == "" && s.Open > 0:
		return hangs(f)
	case f.Farewell == Stopped:
		return Cause{api.ReasonAgentStopped, "the machine answers, and its agent was stopped"}
	}
	return notRunning(host, f)
}

// noticed is how long Ceph may take until it misses the daemons of a machine that is off, and the leader to report it.
const noticed = time.Minute

// unreachable is for a machine from which nothing comes back.
func unreachable(host *api.Host, f Facts) Cause {
	text := fmt.Sprintf("the machine does not answer the leader at %s", addresses(host))
	switch {
	case len(f.Storage.Up) > 0 && f.For < noticed:
		return Cause{api.ReasonMachineUnreachable, fmt.Sprintf("%s; Ceph still reports %s there as up, and may miss it "+
			"soon", text,
			words.Few(f.Storage.Up))}
	case len(f.Storage.Up) > 0:
		return Cause{api.ReasonNetworkCut, fmt.Sprintf("%s, but Ceph reports %s there as up: the network between the "+
			"servers "+
			"and the host is cut", text, words.Few(f.Storage.Up))}
	}
	if f.Farewell == Stopped {
		text += "; its agent was stopped before, as when a machine is switched off"
	}
	return Cause{api.ReasonMachineUnreachable, text}
}

// hangs is for an agent whose connections are there, and from which nothing comes.
func hangs(f Facts) Cause {
	text := "the machine answers, and the connections of its agent are open, but nothing comes from it: the process " +
		"hangs " +
		"or was stopped with SIGSTOP"
	if f.Server == Hangs {
		text = "the machine takes connections to its server, but the server does not answer: the process hangs or was " +
			"stopped with SIGSTOP"
	}
	return Cause{api.ReasonAgentHangs, text}
}

// notRunning is for a machine that answers, and no trace of an agent.
func notRunning(host *api.Host, f Facts) Cause {
	full := unwritable(host)
	switch {
	case f.Server == Closed:
		return Cause{api.ReasonAgentNotRunning, "the machine answers, and its server, which is also its agent, does not " +
			"run" + full}
	case f.Server == Accepts:
		return Cause{api.ReasonAgentDisconnected, "the server of the host answers, but no heartbeat of its agent arrives"}
	case f.Was == api.ReasonAgentHangs:
		return hangs(f)
	}
	return Cause{api.ReasonAgentNotRunning, "the machine answers, and no server has a connection of its agent: the " +
		"agent does " +
		"not run, or reaches no server" + full}
}
