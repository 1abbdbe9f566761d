// Package leader is what runs in a home while a process leads: the engine with an Orchestrator for
// each storage system, the actions, and the duties of the Store, such as the watch on the agents.
// It decides nothing itself.
//
// Who leads, and for how long, is decided by the caller: 'holdfast server' holds an election and
// calls Run while it leads. The context that Run is given ends with leadership, and all that is
// written by way of the Store carries the token of the election. Nothing here knows of bare
// machines, of the control plane, or of a storage system: the drivers, the guards and the handlers
// of the home's own actions come in by Config.
package leader
