package leadership

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/loopback"
)

// Where etcd has the leader's fence, claims and the locks of clusters.
const (
	leaderFence = "/holdfast/fence/" + api.LeaderLease
	configMaps  = "/registry/configmaps/default/"
	locks       = "/registry/coordination.k8s.io/leases/" + api.SystemNamespace + "/orchestrate-"
)

// tokenPattern is the token of a term, as it stands in an object that was written under it.
var tokenPattern = regexp.MustCompile(`\bs[0-9]+_[0-9a-f]{8}\b`)

// history is what was written in etcd, in the one order that all members agree on.
type history []*clientv3.Event

// silence is after how long another server is asked: one that is stopped tells nothing, and elsewhere there is something to tell each second.
const silence = 5 * time.Second

// follower reads the history while it is made: the API servers have etcd forget what is older than a minute or two.
type follower struct {
	asked []*clientv3.Client // one for each server

	mu   sync.Mutex
	h    history
	next int64 // the revision from which on nothing is known
	err  error // what was lost
}

// follow begins with the leader of this moment.
func follow(t *testing.T, s *loopback.Servers) *follower {
	t.Helper()
	f := &follower{}
	for n := range s.Count() {
		f.asked = append(f.asked, s.Server(n+1).Etcd(t))
	}
	now := f.now(t)
	f.next = now.Header.Revision + 1
	for _, kv := range now.Kvs {
		f.h = append(f.h, &clientv3.Event{Kv: kv})
	}
	ctx, end := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	reading.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			f.read(ctx, f.asked[n%len(f.asked)])
		}
	})
	t.Cleanup(func() {
		end()
		reading.Wait()
		for _, c := range f.asked {
			_ = c.Close()
		}
	})
	return f
}

// now is the leader's fence, and with it the revision of this moment.
func (f *follower) now(t *testing.T) (now *clientv3.GetResponse) {
	t.Helper()
	home.Await(t, "etcd to answer", func() (err error) {
		ctx, cancel := context.WithTimeout(t.Context(), silence)
		defer cancel()
		now, err = f.asked[0].Get(ctx, leaderFence)
		return err
	})
	return now
}

// read reads on over one server, until that is silent.
func (f *follower) read(ctx context.Context, c *clientv3.Client) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silent := time.AfterFunc(silence, cancel)
	defer silent.Stop()
	for answer := range c.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(f.known())) {
		if !f.note(answer) {
			<-ctx.Done() // not to ask again at once
			return
		}
		silent.Reset(silence)
	}
}

// known is the revision from which on nothing is known.
func (f *follower) known() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}

func (f *follower) note(answer clientv3.WatchResponse) (good bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if answer.CompactRevision > f.next {
		f.err = fmt.Errorf("what was written from revision %d on is forgotten: %w", f.next, answer.Err())
	}
	f.h = append(f.h, answer.Events...)
	if n := len(f.h); n > 0 {
		f.next = max(f.next, f.h[n-1].Kv.ModRevision+1)
	}
	return answer.Err() == nil
}

// whole waits until all is read that was written until now, and returns it.
func (f *follower) whole(t *testing.T) history {
	t.Helper()
	end := f.now(t).Header.Revision
	home.Await(t, "the history", func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.err != nil {
			t.Fatal(f.err)
		}
		if f.next <= end {
			return fmt.Errorf("revision %d of %d is not read", f.next, end)
		}
		return nil
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.h
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
