// Package sight notes what a server sees of the agents: which of them it refuses, and why. The
// leader asks for it when an agent does not report.
package sight

import (
	"crypto/x509"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/doors"
	"github.com/holdfast-storage/holdfast/internal/absence"
)

const (
	// kept is how long a refusal is remembered.
	kept = 10 * time.Minute
	// most bounds what is remembered of addresses: anybody may come from them.
	most = 1024
)

// Book notes refusals. It is safe for concurrent use.
type Book struct {
	// Running counts the requests of hosts that are under way.
	Running func() map[string]int
	// Verify says how certificates of clients are verified.
	Verify func() (x509.VerifyOptions, bool)
	// Now is time.Now, but in tests.
	Now func() time.Time

	mu sync.Mutex
	// broken counts the connections that an address ended before its first request.
	broken    map[string]breaks
	hosts     map[string]refusal
	addresses map[string]refusal
}

type refusal struct {
	why absence.Refusal
	end time.Time
	at  time.Time
}

// Refused notes that a request was refused for its certificate. The name in a certificate counts
// only where the servers' authority gave it; of others the address is noted.
func (b *Book) Refused(r *http.Request) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return
	}
	cert, now := r.TLS.PeerCertificates[0], b.Now()
	options, ok := b.Verify()
	if !ok {
		return
	}
	options.CurrentTime = cert.NotAfter.Add(-time.Second)
	_, err := cert.Verify(options)
	host, named := access.HostOf(cert.Subject.CommonName)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil && named && now.After(cert.NotAfter):
		b.hosts = note(b.hosts, host, refusal{absence.Ended, cert.NotAfter, now})
	case err != nil:
		group, _ := doors.Group(r.RemoteAddr)
		b.addresses = note(b.addresses, group, refusal{absence.Stranger, cert.NotAfter, now})
	}
}

// often is how many connections an address ends before it counts: one alone may be given up for another reason.
const often = 3

// Broken notes that a client ended a connection before its first request.
func (b *Book) Broken(address string) {
	group, near := doors.Group(address)
	if near {
		return
	}
	now := b.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.broken[group]
	if now.Sub(one.at) > recent {
		one.count = 0
	}
	one.count, one.at = one.count+1, now
	if b.broken == nil || len(b.broken) >= most {
		b.broken = map[string]breaks{}
	}
	b.broken[group] = one
	if one.count >= often {
		b.addresses = note(b.addresses, group, refusal{why: absence.Distrusts, at: now})
	}
}

// recent is how soon after one another connections must end to be counted together.
const recent = 30 * time.Second

// breaks are how many connections an address ended, and when the last.
type breaks struct {
	count int
	at    time.Time
}

// note adds a refusal, and drops those that are old.
func note(all map[string]refusal, of string, new refusal) map[string]refusal {
	if all == nil {
		all = map[string]refusal{}
	}
	for name, old := range all {
		if new.at.Sub(old.at) > kept {
			delete(all, name)
		}
	}
	if _, known := all[of]; known || len(all) < most {
		all[of] = new
	}
	return all
}

// Sightings are what was seen of late.
func (b *Book) Sightings() absence.Sightings {
	s := absence.Sightings{Hosts: map[string]absence.Seen{}, Addresses: map[string]absence.Seen{}}
	for host, n := range b.Running() {
		s.Hosts[host] = absence.Seen{Open: n}
	}
	now := b.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	for host, r := range b.hosts {
		seen := r.seen(now)
		seen.Open = s.Hosts[host].Open
		s.Hosts[host] = seen
	}
	for address, r := range b.addresses {
		s.Addresses[address] = r.seen(now)
	}
	return s
}

func (r refusal) seen(now time.Time) absence.Seen {
	return absence.Seen{Refused: r.why, Certificate: r.end, Ago: now.Sub(r.at).Seconds()}
}

// ServeHTTP says what was seen.
func (b *Book) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(b.Sightings()) // an error means that the client is gone
}
