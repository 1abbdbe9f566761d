// Package instance tells apart the agents that speak as one host: a cloned machine, or one with a copy of the system disk, has the same
// name, certificate and key. An agent writes its Instance beside each heartbeat; the leader and other agents of the name read it there.
package instance

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Annotation is where the Lease of a host has the Instance of the agent that renewed it last.
const Annotation = "holdfast.io/instance"

// Farewell is the annotation of a Lease whose agent was stopped in order; its value is absence.Stopped. The next
// renewal takes it away.
const Farewell = "holdfast.io/farewell"

// bootIDFile changes whenever the machine boots.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// Instance is one run of an agent.
type Instance struct {
	// Machine is what a copy of the disks does not carry, see Machine; empty where nothing is known.
	Machine string `json:"machine,omitempty"`
	// Boot is the machine's boot id.
	Boot string `json:"boot"`
	// Process is random for each run of an agent.
	Process string `json:"process"`
	// Address is the one by which others reach the machine; empty where it is not known.
	Address string `json:"address,omitempty"`
}

// New is the instance of a run that begins.
func New(machine string) (Instance, error) {
	boot, err := os.ReadFile(bootIDFile)
	if err != nil {
		return Instance{}, fmt.Errorf("while reading the boot id: %w", err)
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // crypto/rand never fails
	return Instance{Machine: machine, Boot: strings.TrimSpace(string(boot)), Process: hex.EncodeToString(random[:])}, nil
}

// form is what String writes. Each part is bounded: a host writes it, and the leader shows it.
var form = regexp.MustCompile(`^machine=([0-9a-f]{0,32}) boot=([0-9a-f-]{36}) process=([0-9a-f]{16}) address=([0-9A-Fa-f:.]{0,45})$`)

// String is the instance as the annotation has it.
func (i Instance) String() string {
	return fmt.Sprintf("machine=%s boot=%s process=%s address=%s", i.Machine, i.Boot, i.Process, i.Address)
}

// Parse reads what String wrote, and nothing else.
func Parse(text string) (Instance, error) {
	m := form.FindStringSubmatch(text)
	if m == nil {
		return Instance{}, fmt.Errorf("%.200q is not an instance of an agent", text)
	}
	if _, err := netip.ParseAddr(m[4]); err != nil && m[4] != "" {
		return Instance{}, fmt.Errorf("%q is not an address of an instance", m[4])
	}
	return Instance{Machine: m[1], Boot: m[2], Process: m[3], Address: m[4]}, nil
}

// Of is the instance in the annotations of a Lease; ok is false where an agent wrote none, as earlier versions do.
func Of(annotations map[string]string) (i Instance, ok bool) {
	i, err := Parse(annotations[Annotation])
	return i, err == nil
}

// Place says where the agent runs, for people.
func (i Instance) Place() string {
	switch {
	case i.Boot == "":
		return "a machine with an agent that does not report its address"
	case i.Address == "":
		return "a machine with boot id " + i.Boot
	}
	return fmt.Sprintf("%s (boot id %s)", i.Address, i.Boot)
}

// Together says that several instances speak as one host. All who see the same instances say the same.
func Together(host string, all ...Instance) string {
	all = slices.SortedFunc(slices.Values(all), func(a, b Instance) int { return cmp.Compare(a.String(), b.String()) })
	places := make([]string, len(all))
	for n, i := range all {
		places[n] = i.Place()
	}
	count := map[int]string{2: "two", 3: "three"}[len(all)]
	return fmt.Sprintf("%s machines run as host %s: %s", cmp.Or(count, fmt.Sprint(len(all))), host, strings.Join(places, " and "))
}
