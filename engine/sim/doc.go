// Package sim is a simulated world for the engine: a Store in memory, agents that bring daemons up step by step, hosts that
// fail, disks that vanish, and a storage system to plug in. Everything else is real: the scheduler, the orchestrator, the
// driver. Tests run it in a bubble of testing/synctest, where time is virtual: ten minutes pass in no time, and always in
// the same way.
package sim
