package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/loopback"
)

// clusters are as many as a leader has to take over. They wait for their first node: what is measured is the leader's own part.
const clusters = 50

// runsMetric counts the orchestrations that a server has started.
const runsMetric = "holdfast_orchestrations_total"

// declareClusters declares the clusters that leaders take over, whose locks are the first that one writes under its term, and waits until
// each was orchestrated.
func declareClusters(t hosts.T, servers *loopback.Servers) {
	t.Helper()
	leader := servers.Named(t, leaderOf(t, servers.Server(1)))
	if out, err := leader.HoldfastWith(manifest(clusters), "apply", "--wait=false", "-f", "-"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	home.Await(t, "all clusters to have been orchestrated", func() error {
		runs, err := leader.Metric(context.Background(), runsMetric)
		if err == nil && runs < clusters {
			err = fmt.Errorf("%.0f runs", runs)
		}
		return err
	})
}

func manifest(count int) string {
	var b strings.Builder
	for n := range count {
		fmt.Fprintf(&b, "---\napiVersion: holdfast.io/v1alpha1\nkind: StorageCluster\nmetadata: {name: c%d}\nspec: {type: ceph, ceph: {}, interval: 1s}\n", n)
	}
	return b.String()
}
