package health

import (
	"regexp"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

var (
	// flagged are the details of OSD_FLAGS: "host h2 has flags noup", "device class 'hdd' has flags
	// noin,noout", "osd.3 has flags noin" (OSDMap::check_health).
	flagged = regexp.MustCompile(`^(?:(?:device class|[\w-]+) )?'?([^\s']+)'? has flags ([\w,-]+)$`)
	// nooutAlone is the detail of OSD_FLAGS of an OSD with the one flag that maintenance sets.
	nooutAlone = regexp.MustCompile(`^osd\.(\d+) has flags noout$`)
	// unscrubbed are the details of POOL_SCRUB_FLAGS.
	unscrubbed = regexp.MustCompile(`^Pool (\S+) has ([\w-]+) flag`)
	// damagedRank is the detail of MDS_DAMAGE where nobody may have a rank.
	damagedRank = regexp.MustCompile(`^fs (\S+) mds\.(\d+) is damaged`)
)

// Group is what has flags of its own: a host or another bucket of CRUSH, a device class, or an OSD.
type Group struct {
	Name  string
	Flags []string
}

// Groups are those that Ceph's health names; Ceph prints no other list of the flags of hosts.
func Groups(checks []api.HealthCheck) (all []Group) {
	for i := range checks {
		if checks[i].Code != "OSD_FLAGS" {
			continue
		}
		for _, line := range checks[i].Detail {
			if m := flagged.FindStringSubmatch(line); m != nil {
				all = append(all, Group{m[1], strings.Split(m[2], ",")})
			}
		}
	}
	return all
}

// NooutAlone is the number of the OSD that has noout and no other flag by this detail of OSD_FLAGS;
// else empty.
func NooutAlone(detail string) string {
	if osd := nooutAlone.FindStringSubmatch(detail); osd != nil {
		return osd[1]
	}
	return ""
}

// UnsetGroup is the command that takes a flag from a host, a device class or an OSD.
func UnsetGroup(flag, name string) string {
	return "holdfast ceph osd unset-group " + flag + " " + name
}

// named is the next step of a check of which the details say all that a command needs; else empty.
func named(c api.HealthCheck) string {
	var commands []string
	switch c.Code {
	case "OSD_FLAGS":
		for _, g := range Groups([]api.HealthCheck{c}) {
			if strings.HasPrefix(g.Name, "osd.") && slices.Equal(g.Flags, []string{"noout"}) {
				continue // Holdfast sets it for maintenance
			}
			commands = append(commands, UnsetGroup(strings.Join(g.Flags, ","), g.Name))
		}
	case "POOL_SCRUB_FLAGS":
		for _, line := range c.Detail {
			if m := unscrubbed.FindStringSubmatch(line); m != nil {
				commands = append(commands, "holdfast ceph osd pool set "+m[1]+" "+m[2]+" 0")
			}
		}
	case "MDS_DAMAGE":
		i := slices.IndexFunc(c.Detail, damagedRank.MatchString)
		if i < 0 {
			return ""
		}
		return "run 'holdfast why filesystem/" + damagedRank.FindStringSubmatch(c.Detail[i])[1] + "'"
	}
	if len(commands) == 0 {
		return ""
	}
	const most = 4 // the next look has the others
	return "when the reason is over, run '" + strings.Join(commands[:min(len(commands), most)], "' and '") + "'"
}
