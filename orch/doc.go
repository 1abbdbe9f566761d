// Package orch is the way from 'ceph orch' to Holdfast: a back end of Ceph's orchestrator
// interface.
//
// A call goes from ceph-mgr (orch/module, Python) over a Unix socket to the agent of its host
// (agent/relay), from there to a server and on to the one that leads, which answers from what it
// has in memory (orch/server, orch/answer). Documents of 'ceph orch apply' are translated into
// Holdfast's resources and back (orch/spec). The interface is that of package orchestrator of Ceph
// 16, 18 and 20 (src/pybind/mgr/orchestrator/_interface.py).
package orch
