package ceph

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// The ports of a mon, as registered with IANA (Ceph docs, "Messenger v2").
const (
	portV2 = "3300"
	portV1 = "6789"
)

// member is a mon of the cluster.
type member struct {
	ID, Host, Address string
}

// addrs is the member's address vector, as Ceph writes it: [v2:10.0.0.1:3300,v1:10.0.0.1:6789].
func (m member) addrs() string {
	ip := m.Address
	if isIPv6(ip) {
		ip = "[" + ip + "]"
	}
	return "[v2:" + ip + ":" + portV2 + ",v1:" + ip + ":" + portV1 + "]"
}

func isIPv6(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && ip.Unmap().Is6()
}

// monHost is the option mon_host.
func monHost(members []member) string {
	addrs := make([]string, len(members))
	for i, m := range members {
		addrs[i] = m.addrs()
	}
	return strings.Join(addrs, ",")
}

// initialMembers is the option mon_initial_members.
func initialMembers(members []member) string {
	ids := make([]string, len(members))
	for i, m := range members {
		ids[i] = m.ID
	}
	return strings.Join(ids, ",")
}

// monParams are the parameters of every mon. Each mon's Daemon lists all of them: whichever was written before a crash, the
// others are then made as they were meant.
func monParams(members []member) (monmap, hosts string) {
	var m, h []string
	for _, x := range members {
		m = append(m, x.ID+"="+x.addrs())
		h = append(h, x.ID+"="+x.Host)
	}
	return strings.Join(m, " "), strings.Join(h, " ")
}

// membersOf reads the mons from the Daemons that there are. Each lists all of them; where they differ, because a change was cut
// off, the list with the newest mon counts. A mon that is on its way in stands in no list. One that is on its way out does not
// count any more, whatever is listed, and its own list is not kept up. A mon leaves only when there is another one in the quorum,
// so where nobody else is listed yet it is that one.
func membersOf(daemons []api.Daemon) []member {
	var members, staying []member
	leaving := map[string]bool{}
	for i := range daemons {
		d := &daemons[i]
		if d.Spec.Type != TypeMon {
			continue
		}
		if leaving[d.Spec.ID] = drains(d); drains(d) {
			continue
		}
		staying = append(staying, member{d.Spec.ID, d.Spec.Host, d.Spec.Parameters[ParamAddress]})
		if m := parseMembers(d.Spec.Parameters); len(m) > 0 && (len(members) == 0 || olderMon(newestMon(members), newestMon(m))) {
			members = m
		}
	}
	members = slices.DeleteFunc(members, func(m member) bool { return leaving[m.ID] })
	if len(members) == 0 && len(leaving) > len(staying) {
		return staying
	}
	return members
}

// given are the names that Holdfast gives to mons. Those of a cluster that was adopted may be any.
var given = regexp.MustCompile(`^[a-z]{1,3}$`)

// newestMon is the name that was given last; none is given twice.
func newestMon(members []member) string {
	newest := ""
	for _, m := range members {
		if given.MatchString(m.ID) && olderMon(newest, m.ID) {
			newest = m.ID
		}
	}
	return newest
}

// olderMon compares names in the order in which they are given: a … z, aa, ab …
func olderMon(a, b string) bool {
	return len(a) < len(b) || len(a) == len(b) && a < b
}

func parseMembers(params map[string]string) []member {
	hosts := map[string]string{}
	for pair := range strings.FieldsSeq(params[ParamMonHosts]) {
		id, host, _ := strings.Cut(pair, "=")
		hosts[id] = host
	}
	var members []member
	for pair := range strings.FieldsSeq(params[ParamMonmap]) {
		id, addrs, _ := strings.Cut(pair, "=")
		v2, _, ok := strings.Cut(strings.TrimPrefix(addrs, "[v2:"), ":"+portV2+",")
		if !ok || hosts[id] == "" {
			return nil
		}
		members = append(members, member{ID: id, Host: hosts[id], Address: strings.Trim(v2, "[]")})
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.ID, b.ID) })
	return members
}
