// Package action carries out Actions: operations with steps. Each step is recorded before it begins and
// after it ended, so that the next leader or agent continues where the record ends.
//
// How the parts fit:
//
//   - Kind describes one sort of operation, Handler carries it out: Check, Step, Undo.
//   - Schedule is a pure function of all Actions: it decides whose turn it is by their modes (Shared,
//     Rolling, Exclusive, Beside), their hosts and their clusters. Only the leader calls it.
//   - Runner (runner.go) watches Actions, gives turns, asks others for objections (ask.go), and clears
//     ended Actions (clear.go). A write that the API refuses sets an Action aside with a pause of its
//     own (stuck.go).
//   - Execute (execute.go, undo.go) carries one Action on, in the leader or in an agent. A panic of a
//     Handler is an error of that Action alone (fault.go).
//   - status.go sets the conditions: Persistent (recorded), Effective (confirmed by the system), and
//     Ready, Reconciling, Stalled.
//
// Store is where Actions are kept; package actiontest has one in memory.
package action
