package drift

import (
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/internal/words"
)

// Bound is a daemon that runs, the address that it listens on, and the addresses of its host.
type Bound struct {
	Daemon, Address, Host string
	Has                   []string
	// Restart is set of a daemon that listens on another address when it is started again.
	Restart bool
	// ReplacedAfter is how long the host may be without the address before another daemon, which listens on
	// another one, replaces this one; 0 where none does.
	ReplacedAfter time.Duration
}

// Gone says whether the host does not have the address any more.
func (b *Bound) Gone() bool {
	const most = 64 // addresses in a report, which may leave out others
	if b.Address == "" || len(b.Has) == 0 || len(b.Has) == most || slices.Contains(b.Has, b.Address) {
		return false
	}
	ip, err := netip.ParseAddr(b.Address)
	same := func(text string) bool {
		other, err := netip.ParseAddr(text)
		return err == nil && other.Unmap() == ip.Unmap()
	}
	return err == nil && ip.Unmap().IsGlobalUnicast() && !slices.ContainsFunc(b.Has, same)
}

// addresses finds hosts whose address changed while their daemons ran.
func addresses(bound iter.Seq[Bound]) (all []Difference) {
	var gone map[string][]Bound
	if bound != nil {
		for b := range bound {
			if b.Gone() {
				if gone == nil {
					gone = map[string][]Bound{}
				}
				gone[b.Host] = append(gone[b.Host], b)
			}
		}
	}
	for _, host := range slices.Sorted(maps.Keys(gone)) {
		text := addressText(gone[host])
		all = append(all, Difference{Kind: Address, Object: "host/" + host, Remedy: AwaitsWord, Text: text})
	}
	return all
}

func addressText(gone []Bound) string {
	var names, restart, replaced []string
	var after time.Duration
	for _, b := range gone {
		names = append(names, b.Daemon)
		switch {
		case b.Restart:
			restart = append(restart, b.Daemon)
		case b.ReplacedAfter > 0:
			replaced, after = append(replaced, b.Daemon), b.ReplacedAfter
		}
	}
	first := gone[0]
	text := fmt.Sprintf("its address changed while daemons ran: %s, where Ceph and clients look for %s, is not among "+
		"its addresses (%s); give it back", first.Address, words.Few(names), strings.Join(first.Has, ", "))
	if len(restart)+len(replaced) < len(gone) {
		return text
	}
	var ways []string
	if len(restart) > 0 {
		ways = append(ways, fmt.Sprintf("'holdfast daemon restart %s --force', one after the other", restart[0]))
	}
	if len(replaced) > 0 {
		ways = append(ways, fmt.Sprintf("another mon replaces %s after %v", words.Few(replaced), after))
	}
	return text + ", or have them use the new one: " + strings.Join(ways, "; ")
}

// OtherNetwork says of mons that listen outside of the network that is declared.
const OtherNetwork = "it listens on %s, which is not in spec.network.public %s, and a mon keeps its address: set the " +
	"network that it is in again, or add hosts in the new one and drain the old hosts one after the other " +
	"('holdfast host drain %s')"

// IPOf is the address in what Ceph writes as 10.0.0.1:6801/2345; empty where there is none.
func IPOf(text string) string {
	text, _, _ = strings.Cut(text, "/")
	at, err := netip.ParseAddrPort(text)
	if err != nil || at.Addr().IsUnspecified() {
		return ""
	}
	return at.Addr().String()
}
