package doctor

import (
	"maps"
	"slices"

	"github.com/holdfast-storage/holdfast/internal/instance"
)

// oneAlone is what to do about two machines that run as one host.
const oneAlone = "decide which machine is the right one, and run 'systemctl disable --now holdfast' on the other; if you cannot reach it, " +
	"switch it off or disconnect it. The right one continues by itself. Remove nothing on either before that"

// twins says of each host that several machines run as it.
func twins(f *Facts) map[string]string {
	texts := map[string]string{}
	for i := range f.Hosts {
		if text, twins := f.Hosts[i].Twins(); twins {
			texts[f.Hosts[i].Name] = text
		}
	}
	if len(f.Local.Twins) > 0 && texts[f.Host] == "" {
		texts[f.Host] = instance.Together(f.Host, f.Local.Twins...)
	}
	return texts
}

// checkMachines looks for machines that run as the host of another one, such as clones. On such a machine its own agent tells, also where the API
// cannot be reached.
func checkMachines(f *Facts) []Finding {
	all := twins(f)
	var found []Finding
	for _, host := range slices.Sorted(maps.Keys(all)) {
		found = append(found, finding(Fail, all[host]+"; nothing new starts on either", oneAlone)...)
	}
	return orOK(found, "no two machines run as one host")
}
