package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// TestSilentAgents stages why an agent does not report, one cause after the other: 'holdfast why' names each, and what
// Ceph says of the OSD of the host.
func TestSilentAgents(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 4, Disks: 1})
	b := &bed{t, home.StartServers(t, lab, binary, 1)}
	for n := 2; n <= 4; n++ {
		b.StartAgent(t, n, b.Token(t, "agent"))
	}
	b.AwaitHosts(t, 4)
	spec := home.SpecFor(lab, 3, 1, 1)
	delete(spec.Devices, lab.Host(1).Name)
	b.mustApply(spec.YAML())
	victim := lab.Host(4)
	s := &silenced{b, 4, victim, "osd." + strings.TrimPrefix(b.osdOn(victim.Disk(0).ID()), "ceph-osd-")}

	s.Server(4).Kill(t)
	s.tellsOf("agent-killed")
	s.back()

	s.Server(4).Stop(t, limit)
	s.tellsOf("agent-stopped")
	s.back()

	s.Server(4).Signal(t, syscall.SIGSTOP)
	s.tellsOf("agent-hangs")
	s.tellsOf("agent-hangs-osd")
	s.Server(4).Signal(t, syscall.SIGCONT)
	b.await("the agent to be connected", b.heard(1, s.host.Name, true))

	heal := lab.Partition(t, lab.Hosts()[:1], lab.Hosts()[3:])
	s.tellsOf("network-cut")
	heal()
	b.await("the agent to be connected", b.heard(1, s.host.Name, true))

	undo := s.endCertificate()
	s.tellsOf("host-certificate-ended")
	s.Server(4).Kill(t)
	undo()
	s.back()

	s.host.PowerOff(t)
	s.tellsOf("host-off")
	s.tellsOf("host-off-osd")
	s.host.PowerOn(t)
	s.back()
	b.await("Ceph to be well", func() error { return b.health(3, 3) })
}

// silenced is a host whose agent is silenced.
type silenced struct {
	*bed
	number int
	host   *hosts.Host
	osd    string
}

// tellsOf waits for the answer of a situation.
func (s *silenced) tellsOf(situation string) {
	s.Helper()
	s.tells(situation, "h2", s.host.Name, "osd.2", s.osd)
}

// back starts the agent again, and waits for it.
func (s *silenced) back() {
	s.Helper()
	s.StartAgent(s.T, s.number, "")
	s.await("the agent to be connected", s.heard(1, s.host.Name, true))
}

// endCertificate starts the agent with a certificate of its host that has ended. The returned
// function gives it back the one that it had.
func (s *silenced) endCertificate() (undo func()) {
	s.Helper()
	const dir = "/var/lib/holdfast"
	own := s.host.Path(dir + "/host")
	authority, err := pki.OpenAuthority(s.Lab.Host(1).Path(dir + "/pki"))
	if err != nil {
		s.Fatal(err)
	}
	good, err := pki.LoadPair(own, "host")
	if err != nil {
		s.Fatal(err)
	}
	leaf := pki.Leaf{User: good.Cert.Subject.CommonName, Groups: good.Cert.Subject.Organization}
	const valid = 5 * time.Minute // since the authority was made, which a certificate cannot be older than
	ended, err := authority.Signing(valid).Issue(leaf, good.Cert.PublicKey, time.Now().Add(-valid-time.Minute))
	if err != nil {
		s.Fatal(err)
	}
	s.Server(s.number).Kill(s.T)
	if err := pki.SaveCert(own, "host", ended); err != nil {
		s.Fatal(err)
	}
	s.StartAgent(s.T, s.number, "")
	return func() {
		if err := pki.SaveCert(own, "host", good.Cert); err != nil {
			s.Fatal(err)
		}
	}
}
