// Package cli is the command line of holdfast.
//
// How the parts fit:
//
//   - Main (main.go) parses the command line, runs one command and makes the exit code: 0 done,
//     1 failed, 2 wrong command line, 3 refused, 4 not ready in time, 5 a plan has changes.
//   - globals holds the flags that all commands share (kubeconfig, namespace), and makes clients from
//     them. A server that does not answer is replaced by another (fallback.go, patient.go).
//   - Commands that change objects read manifests (manifest*.go), have the API check them, and write
//     them (write.go, apply.go, delete.go). Before that, ask.go has the leader make the plan, by a
//     Plan object; propose.go shows it and refuses what it refuses (package propose/plans).
//   - Commands that wait follow objects (follow.go, wait.go, progress.go, actionwait.go).
//   - Commands that only show: get, status, why, doctor. Packages why and doctor are pure: they judge
//     facts that the commands have read.
//   - server, agent and operator are long-running; they assemble control, the leader and the agent
//     (server.go, lead.go, agent.go, package operator).
//   - page.go makes docs/reference/commands.md from the commands.
package cli
