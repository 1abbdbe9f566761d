package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/why"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// tellAfter is how long something takes before it is told what is waited for.
const tellAfter = 3 * time.Second

// awaitForgotten waits until a cluster that was adopted is gone, and tells who has not forgotten it yet when that takes long.
func (g *globals) awaitForgotten(ctx context.Context, c client.Client, w *watcher, cluster *api.StorageCluster) error {
	key, told := client.ObjectKeyFromObject(cluster), ""
	slow := time.NewTicker(tellAfter)
	defer slow.Stop()
	for {
		s, err := w.snapshot(ctx, key)
		if err != nil {
			return err
		}
		if s.Cluster == nil || s.Cluster.UID != cluster.UID {
			return nil
		}
		select {
		case <-w.changed:
			continue
		case <-ctx.Done():
			return forgottenLater(ctx, cluster.Name, unforgotten(s.Daemons, hostsNow(context.WithoutCancel(ctx), c)))
		case <-slow.C:
		}
		if text := unforgotten(s.Daemons, hostsNow(ctx, c)); text != told {
			told = text
			fmt.Fprintf(g.out, "waiting for %s\n", printable(text))
		}
	}
}

func forgottenLater(ctx context.Context, name, waitsFor string) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &exitError{exitFailed, fmt.Errorf("interrupted; the removal of storagecluster/%s continues and waits for %s",
			name, waitsFor)}
	}
	return &exitError{exitTimeout, fmt.Errorf("the removal of storagecluster/%s continues and waits for %s; to follow "+
		"it, run the command again", name, waitsFor)}
}

// hostsNow are the hosts, or none while the server does not tell.
func hostsNow(ctx context.Context, c client.Client) (hosts api.HostList) {
	_ = withDeadline(ctx, func(ctx context.Context) error { return c.List(ctx, &hosts) }) // it is told what is known
	return hosts
}

// unforgotten says who has not forgotten a cluster yet: each agent does so with the Daemons of its host, and the leader with the rest.
func unforgotten(daemons []api.Daemon, hosts api.HostList) string {
	left := map[string][]string{}
	for i := range daemons {
		left[daemons[i].Spec.Host] = append(left[daemons[i].Spec.Host], why.ShortName(&daemons[i]))
	}
	if len(left) == 0 {
		return "the leader to remove the cluster"
	}
	var texts []string
	for _, host := range slices.Sorted(maps.Keys(left)) {
		text := fmt.Sprintf("the agent of host %s to release %s", host, words.Few(left[host]))
		if i := slices.IndexFunc(hosts.Items, func(h api.Host) bool { return h.Name == host }); i >= 0 && !hosts.Items[i].AgentHeard() {
			text = fmt.Sprintf("the agent of host %s, which is disconnected, to release %s: start it ('systemctl status "+
				"holdfast' there)", host, words.Few(left[host]))
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}
