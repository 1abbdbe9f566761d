// Package answer answers the calls of 'ceph orch' that change nothing, from what the leader knows
// of a cluster. It is pure: no clock, no I/O.
//
// Rows are what the constructors of Ceph's own classes take (HostSpec, InventoryHost, Device,
// DaemonDescription and ServiceDescription of packages orchestrator and ceph.deployment), by the
// names of their parameters; orch/module leaves out what a release of Ceph does not know.
package answer

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/refusal"
)

// Error is an answer that Ceph shows to its user.
type Error = refusal.Error

// Errorf makes an Error with the errno of wrong input, -EINVAL.
func Errorf(format string, values ...any) *Error { return refusal.Errorf(format, values...) }

// Call is one call of a method of Ceph's class Orchestrator.
type Call struct {
	// View is what the leader knows of the cluster. It is only read.
	View *engine.View
	// Now is the time of the answer.
	Now time.Time
	// Leader is the name of the leader.
	Leader string
	// Args are the arguments by the names that the interface gives them, as JSON.
	Args json.RawMessage
	// Rows keeps what was encoded. Nil keeps nothing.
	Rows *Rows
}

// methods are those that change nothing.
var methods = map[string]func(c *Call) (any, error){
	"get_facts":             facts,
	"get_security_config":   securityConfig,
	"cert_store_cert_ls":    certificates,
	"cert_store_entity_ls":  entities,
	"cert_store_cert_check": checkCertificates,
	"available":             available,
	"get_hosts":             hosts,
	"get_inventory":         devices,
	"describe_service":      services,
	"list_daemons":          daemons,
}

// Methods are the names of the methods that Answer knows, sorted.
func Methods() []string { return slices.Sorted(maps.Keys(methods)) }

// Answer answers a call. The result is made for JSON, or is JSON, a json.RawMessage.
func Answer(method string, c *Call) (any, error) {
	answer, known := methods[method]
	if !known {
		return nil, Errorf("Holdfast has no answer to %s: this release of Holdfast does not support it", method)
	}
	return answer(c)
}

// args decodes the arguments of a call. Those that the callers of newer releases of Ceph add are
// ignored.
func args[T any](c *Call) (T, error) {
	var a T
	if len(c.Args) == 0 {
		return a, nil
	}
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return a, Errorf("the arguments of the call cannot be read: %v", err)
	}
	return a, nil
}

// stamp is a time as Ceph writes it (ceph.utils.datetime_to_str); empty for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}
