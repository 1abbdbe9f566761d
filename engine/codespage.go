package engine

import (
	"fmt"
	"strings"
)

// CodesPage is the reference page of event codes, in Markdown.
func CodesPage() string {
	var b strings.Builder
	b.WriteString(`<!-- Made by 'make generate' from engine/codes.go. Do not edit. -->
# Events

A ClusterEvent records one difference that an orchestration of a StorageCluster saw. The events of a cluster are numbered
without a gap; the last 500 are kept, for 7 days. 'holdfast get clusterevents' lists them. Each difference is told once, whoever leads.
'kubectl get events' and 'kubectl describe' show them as core Events, with the code as a word: DAEMON_FAILED is
DaemonFailed.

The control plane tells of its members of etcd in the same way, by the codes that begin with QUORUM, and of its leader by LEADER_CHANGED, in the namespace holdfast-system.

What more than ten objects do at once, as when a rack loses power or a cluster comes up, is told in one event for every 64 of them: its
object is the cluster, its message counts them and tells of the first, and its field 'objects' names them all.

| code | object | meaning |
|---|---|---|
`)
	for _, c := range Codes() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.Code, c.Object, c.Meaning)
	}
	return b.String()
}
