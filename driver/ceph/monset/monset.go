// Package monset reads who the mons of a cluster are from their Daemons. It is pure.
package monset

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
)

// The ports of a mon, as registered with IANA (Ceph docs, "Messenger v2").
const (
	PortV2 = "3300"
	PortV1 = "6789"
)

// Type is that of the Daemons of mons, and these are their parameters.
const (
	Type = "ceph-mon"
	// ParamAddress is the address that the daemon listens on, for all types.
	ParamAddress = "address"
	// ParamMonmap lists the mons of the cluster, which a new mon's store is made with:
	// "a=[v2:10.0.0.1:3300,v1:10.0.0.1:6789] b=…". A mon that is added later is not in its own list before it
	// is in the quorum: a store that was made without its own mon in the map can join the others, and never
	// found a cluster of its own.
	ParamMonmap = "monmap"
	// ParamMonHosts lists the hosts of these mons: "a=h1 b=h2 …".
	ParamMonHosts = "monHosts"
)

// Member is a mon of the cluster.
type Member struct {
	ID, Host, Address string
}

// Addrs is the member's address vector, as Ceph writes it: [v2:10.0.0.1:3300,v1:10.0.0.1:6789].
func (m Member) Addrs() string {
	ip := m.Address
	if IsIPv6(ip) {
		ip = "[" + ip + "]"
	}
	return "[v2:" + ip + ":" + PortV2 + ",v1:" + ip + ":" + PortV1 + "]"
}

// IsIPv6 says whether an address is one of IPv6.
func IsIPv6(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && ip.Unmap().Is6()
}

// MonHost is the option mon_host.
func MonHost(members []Member) string {
	addrs := make([]string, len(members))
	for i, m := range members {
		addrs[i] = m.Addrs()
	}
	return strings.Join(addrs, ",")
}

// InitialMembers is the option mon_initial_members.
func InitialMembers(members []Member) string {
	ids := make([]string, len(members))
	for i, m := range members {
		ids[i] = m.ID
	}
	return strings.Join(ids, ",")
}

// Params are the parameters of every mon. Each mon's Daemon lists all of them: whichever was written before a
// crash, the others are then made as they were meant.
func Params(members []Member) (monmap, hosts string) {
	var m, h []string
	for _, x := range members {
		m = append(m, x.ID+"="+x.Addrs())
		h = append(h, x.ID+"="+x.Host)
	}
	return strings.Join(m, " "), strings.Join(h, " ")
}

// Of reads the mons from the Daemons that there are. Each lists all of them; where they differ, because a
// change was cut off, the list with the newest mon counts. A mon that is on its way in stands in no list. One
// that is on its way out does not count any more, whatever is listed, and its own list is not kept up. A mon
// leaves only when there is another one in the quorum, so where nobody else is listed yet it is that one.
func Of(daemons []api.Daemon) []Member {
	var members, staying []Member
	leaving := map[string]bool{}
	for i := range daemons {
		d := &daemons[i]
		if d.Spec.Type != Type {
			continue
		}
		if leaving[d.Spec.ID] = memory.Of(d, memory.Drain) != ""; memory.Of(d, memory.Drain) != "" {
			continue
		}
		staying = append(staying, Member{ID: d.Spec.ID, Host: d.Spec.Host, Address: d.Spec.Parameters[ParamAddress]})
		if m := Parse(d.Spec.Parameters); len(m) > 0 && (len(members) == 0 || Older(Newest(members), Newest(m))) {
			members = m
		}
	}
	members = slices.DeleteFunc(members, func(m Member) bool { return leaving[m.ID] })
	if len(members) == 0 && len(leaving) > len(staying) {
		return staying
	}
	return members
}

// given are the names that Holdfast gives to mons. Those of a cluster that was adopted may be any.
var given = regexp.MustCompile(`^[a-z]{1,3}$`)

// Newest is the name that was given last; none is given twice.
func Newest(members []Member) string {
	newest := ""
	for _, m := range members {
		if given.MatchString(m.ID) && Older(newest, m.ID) {
			newest = m.ID
		}
	}
	return newest
}

// Older compares names in the order in which they are given: a … z, aa, ab …
func Older(a, b string) bool {
	return len(a) < len(b) || len(a) == len(b) && a < b
}

// Parse reads the members from the parameters of a mon.
func Parse(params map[string]string) []Member {
	hosts := map[string]string{}
	for pair := range strings.FieldsSeq(params[ParamMonHosts]) {
		id, host, _ := strings.Cut(pair, "=")
		hosts[id] = host
	}
	var members []Member
	for pair := range strings.FieldsSeq(params[ParamMonmap]) {
		id, addrs, _ := strings.Cut(pair, "=")
		v2, _, ok := strings.Cut(strings.TrimPrefix(addrs, "[v2:"), ":"+PortV2+",")
		if !ok || hosts[id] == "" {
			return nil
		}
		members = append(members, Member{ID: id, Host: hosts[id], Address: strings.Trim(v2, "[]")})
	}
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return members
}
