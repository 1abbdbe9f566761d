package writes

import (
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Coming is what new pools wait for: OSDs that are declared and not up yet.
type Coming struct {
	Reason        api.Reason
	Message, Next string
}

// NodeComing is for a StorageNode whose devices are no OSDs yet: what is its name in a sentence, object that in
// commands.
func NodeComing(what, object string, hostless bool, waits []string) Coming {
	c := Coming{api.ReasonDependencyNotReady, what + " waits", "run " + quote("holdfast why", object)}
	if len(waits) > 0 {
		c.Message = what + ": " + strings.Join(waits, "; ")
	}
	if hostless {
		c.Message = what + " has no host" + strings.TrimPrefix(strings.TrimPrefix(c.Message, what), " waits")
		c.Next += "; until its machine joins, declare spec.failureDomain, or delete the StorageNode"
	}
	return c
}

// OSDComing is for an OSD that is not up.
func OSDComing(osd, host string, maintenance bool) Coming {
	if maintenance {
		return Coming{
			api.ReasonHostNotActive, osd + " is down, because host " + host + " is in maintenance",
			"to return it to service, run " + quote("holdfast host maintenance exit", host),
		}
	}
	return Coming{
		api.ReasonStarting, osd + " on host " + host + " is not up",
		"wait, or run " + quote("holdfast why", osd),
	}
}

// Are is how many there are, in words.
func Are(n int) string {
	if n == 1 {
		return "is 1"
	}
	return "are " + strconv.Itoa(n)
}
