package detached

import "github.com/holdfast-storage/holdfast/agent/runtime"

// BackOff says how long to wait before a process that ended is started again.
type BackOff = runtime.BackOff

// DefaultBackOff is what the zero value of Config means.
var DefaultBackOff = runtime.DefaultBackOff
