package ceph

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/optionset"
)

// options16 are the names of all options of Ceph 16, one a line (hack/ceph-options).
//
//go:embed options/16.txt
var options16 string

// namesRelease is the release whose names are known without asking.
const namesRelease = 16

// checkNames refuses options that the Ceph that is installed does not have, before a cluster is founded. Later Ceph itself is asked.
func (p *planner) checkNames() {
	if p.seen != nil || len(p.have) > 0 {
		return
	}
	known := strings.Fields(options16)
	var strange []string
	p.options.Each(func(section, name, _ string) {
		if _, found := slices.BinarySearch(known, name); !found && !strings.HasPrefix(name, "mgr/") {
			strange = append(strange, section+" "+name)
		}
	})
	if len(strange) == 0 {
		return
	}
	release := p.installedRelease()
	for _, key := range strange {
		section, name, _ := strings.Cut(key, " ")
		meant := "."
		if near := optionset.Nearest(known, name); len(near) > 0 {
			meant = ": did you mean " + strings.Join(near, " or ") + "?"
		}
		if release != "" && releaseNumbers(release)[0] == namesRelease {
			p.decide(api.VerdictRefuse, api.ReasonInvalidSpec, "config",
				"spec.ceph.config.%s: Ceph %s has no option %s%s Holdfast creates no daemons; all options: 'ceph-conf "+
					"-D'", section,
				release, name, meant)
		} else {
			p.decide(api.VerdictSkip, api.ReasonNotAnswering, "config",
				"spec.ceph.config.%s: Ceph %d has no option %s%s Holdfast checks whether %s has it when the mons answer",
				section, namesRelease, name, meant, otherRelease(release))
		}
	}
}

func otherRelease(release string) string {
	if release == "" {
		return "the release on the hosts"
	}
	return fmt.Sprintf("Ceph %s, the release on the hosts,", release)
}

// installedRelease is the highest release of Ceph on the hosts; empty where none tells.
func (p *planner) installedRelease() (highest string) {
	for _, h := range p.view.Hosts {
		if release := h.Status.Release("ceph"); highest == "" || olderRelease(highest, release) {
			highest = release
		}
	}
	return highest
}
