package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/loopback"
)

func errNoLeader(err error) error { return errors.Join(errors.New("nobody leads"), err) }

// Where etcd has the term of the leader, and the locks of clusters, which a leader takes by its first write under its term.
const (
	leaderFence = "/holdfast/fence/" + api.LeaderLease
	clusterLock = "/holdfast/fence/orchestrate-"
)

// times are those from kill -9 of a leader.
type times struct{ elected, acts time.Duration }

// limit bounds a fail-over. One that takes longer is no measurement but a fault.
const limit = time.Minute

// failOver kills the leader, tells when another one acts, and starts the server again that was killed.
func failOver(t hosts.T, servers *loopback.Servers) times {
	t.Helper()
	name := leaderOf(t, servers.Server(1))
	killed := servers.Named(t, name)
	other := servers.Server(1)
	if other == killed {
		other = servers.Server(2)
	}
	etcd := other.Etcd(t)
	defer etcd.Close()
	// Somewhere between two renewals.
	time.Sleep(rand.N(2 * time.Second))
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	changes := etcd.Watch(ctx, "/holdfast/fence/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-changes
	killed.Kill(t)
	f := watchTerms(t, changes, name, time.Now())
	killed.Restart(t)
	return f
}

// watchTerms waits until another server than the one that was killed has the lease, and until it has written.
func watchTerms(t hosts.T, changes clientv3.WatchChan, killed string, since time.Time) (f times) {
	t.Helper()
	for answer := range changes {
		for _, e := range answer.Events {
			key, term := string(e.Kv.Key), string(e.Kv.Value)
			if term == "" || strings.HasPrefix(term, killed+"_") {
				continue
			}
			if key == leaderFence && f.elected == 0 {
				f.elected = time.Since(since)
			}
			if strings.HasPrefix(key, clusterLock) && f.elected > 0 {
				f.acts = time.Since(since)
				return f
			}
		}
	}
	t.Fatalf("no other server led within %s", limit)
	return f
}

// leaderOf waits until somebody leads, and returns the server's name.
func leaderOf(t hosts.T, s *loopback.Server) (name string) {
	t.Helper()
	etcd := s.Etcd(t)
	defer etcd.Close()
	home.Await(t, "a leader", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		answer, err := etcd.Get(ctx, leaderFence)
		if err != nil || len(answer.Kvs) == 0 {
			return errNoLeader(err)
		}
		name, _, _ = strings.Cut(string(answer.Kvs[0].Value), "_")
		return nil
	})
	return name
}
