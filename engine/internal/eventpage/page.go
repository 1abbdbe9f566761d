// Package eventpage writes the reference page of event codes.
package eventpage

import (
	"fmt"
	"strings"

	"github.com/holdfast-storage/holdfast/engine"
)

// Page is the reference page of event codes, in Markdown.
func Page() string {
	var b strings.Builder
	b.WriteString(`<!-- Made by 'make generate' from engine/codes.go. Do not edit. -->
# Events

A ClusterEvent records one difference that an orchestration of a StorageCluster found. The events of a cluster are
numbered without a gap; the last 500 are kept, for 7 days. 'holdfast get clusterevents' lists them. Each difference is
recorded once, whichever server leads. 'kubectl get events' and 'kubectl describe' show them as core Events, with the
code as a CamelCase word: DaemonFailed is DAEMON_FAILED.

The control plane records events of etcd's members with the codes that begin with QUORUM, and of its leader with
LEADER_CHANGED, in the namespace holdfast-system.

If more than ten objects change alike at once, for instance because a rack loses power or a cluster comes up, one
event records up to 64 of them: its object is the cluster, its message has their number and the first one, and its
field 'objects' lists all.

| code | object | meaning |
|---|---|---|
`)
	for _, c := range engine.Codes() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.Code, c.Object, c.Meaning)
	}
	return b.String()
}
