package leadership

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-storage/holdfast/platform/bare"
	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/loopback"
)

// Where etcd has the leader's fence, claims and the locks of clusters.
const (
	leaderFence = "/holdfast/fence/" + bare.LeaderLease
	configMaps  = "/registry/configmaps/default/"
	locks       = "/registry/coordination.k8s.io/leases/" + bare.SystemNamespace + "/orchestrate-"
)

// tokenPattern is the token of a term, as it stands in an object that was written under it.
var tokenPattern = regexp.MustCompile(`\bs[0-9]+_[0-9a-f]{8}\b`)

// history is what was written in etcd, in the one order that all members agree on.
type history []*clientv3.Event

// historyOf reads everything that was written until now, from the first revision on.
func historyOf(ctx context.Context, c *clientv3.Client) (history, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	now, err := c.Get(ctx, leaderFence)
	if err != nil {
		return nil, err
	}
	var h history
	end := now.Header.Revision
	for answer := range c.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(1)) {
		if err := answer.Err(); err != nil {
			return nil, err
		}
		h = append(h, answer.Events...)
		if n := len(h); n > 0 && h[n-1].Kv.ModRevision >= end {
			return h, nil
		}
	}
	return nil, fmt.Errorf("the history ended before revision %d: %w", end, context.Cause(ctx))
}

// stale lists writes of objects below a prefix that say that they were done under another term than the one that there was.
func (h history) stale(prefix string) (stale []string, all int) {
	term := ""
	for _, e := range h {
		key := string(e.Kv.Key)
		switch token := tokenPattern.FindString(string(e.Kv.Value)); {
		case key == leaderFence:
			term = string(e.Kv.Value)
		case strings.HasPrefix(key, prefix) && token != "":
			all++
			if token != term {
				stale = append(stale, fmt.Sprintf("revision %d: %s was written under the term %q while %q was that of the leader",
					e.Kv.ModRevision, key, token, term))
			}
		}
	}
	return stale, all
}

// terms are the tokens that there were, in order.
func (h history) terms() []string {
	var terms []string
	for _, e := range h {
		token := string(e.Kv.Value)
		if string(e.Kv.Key) == leaderFence && token != "" && (len(terms) == 0 || terms[len(terms)-1] != token) {
			terms = append(terms, token)
		}
	}
	return terms
}

// readHistory reads the history over one server.
func readHistory(t hosts.T, s *loopback.Server) history {
	t.Helper()
	c := s.Etcd(t)
	defer c.Close()
	h, err := historyOf(context.Background(), c)
	if err != nil {
		t.Fatalf("while reading the history of etcd: %v", err)
	}
	return h
}
