package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/etcd"
	"github.com/holdfast-storage/holdfast/control/pki"
)

// notOverthrowing refuses a restore while other servers of the control plane have a quorum. They would take the restored server for right, because its
// generation is higher, and give up all that was acknowledged since. Servers that cannot be reached are no obstacle: the restore is for when they are lost.
// known are the servers, and keys is where the keys are to ask them with.
func (r *restore) notOverthrowing(ctx context.Context, known []string, keys dataDir) error {
	others := slices.DeleteFunc(known, func(server string) bool { return server == r.settings.endpoint() })
	if r.Overthrow || len(others) == 0 {
		return nil
	}
	by, err := r.transport(keys)
	if err != nil {
		// What cannot be read may be what is to be restored.
		r.Log.Warn("the other servers cannot be asked whether they have a quorum, because the keys of this one cannot be read", "error", err)
		return nil
	}
	defer by.CloseIdleConnections()
	working, err := r.working(ctx, by, others)
	if err != nil || len(working) == 0 {
		return err
	}
	return fmt.Errorf("%w: other servers of the control plane have a quorum (reported by %s): nothing is lost, but writes since %s would be. "+
		"%s. To restore nevertheless and discard their state: --overthrow", ErrRefused, strings.Join(working, ", "), r.since(), r.instead())
}

// since is what the state that would be restored is of.
func (r *restore) since() string {
	if r.File == "" {
		return "this server was stopped"
	}
	return "the backup was taken"
}

// instead is what to do where the others have a quorum.
func (r *restore) instead() string {
	if r.stored == nil {
		return "Join this machine to them ('holdfast token create --role server' on one of them makes the token)"
	}
	return "Start this server again, and it joins them"
}

// transport reaches other servers as this one. Its certificate is made for this alone: the one that the server had may have ended, and nothing is written.
func (r *restore) transport(keys dataDir) (*pki.Transport, error) {
	authority, err := pki.OpenAuthority(keys.pki())
	if err != nil {
		return nil, err
	}
	trusted, err := keys.believed(authority)
	if err != nil {
		return nil, err
	}
	pair, err := authority.NewPair(pki.Leaf{User: access.ServerUser(r.settings.Name), Groups: []string{access.GroupMasters}}, time.Now())
	if err != nil {
		return nil, err
	}
	by := pki.NewTransport(endpoints.ServerName, nil)
	by.Set(pair, pki.PoolOf(trusted))
	return by, nil
}

// working are the servers that work with a quorum. One that runs and cannot say is asked again, for as long as an election takes: the member that was
// stopped here may have led.
func (r *restore) working(ctx context.Context, by *pki.Transport, others []string) ([]string, error) {
	q := &question{Name: r.settings.Name, PeerURL: etcd.PeerURL(r.settings.Address, r.settings.EtcdPeerPort), Generation: r.settings.Generation}
	ask := func(ctx context.Context, server string) (*reply, error) { return q.put(ctx, by, server) }
	told := false
	for end := time.Now().Add(r.settings.askRemoved); ; _ = pause(ctx, askEvery) {
		replies, errs := askEach(ctx, others, ask)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("while asking the other servers whether they have a quorum: %w", err)
		}
		working := r.ofThisLife(replies)
		if len(working) > 0 || !anyAnswered(errs) || told && time.Now().After(end) {
			return working, nil
		}
		if !told {
			told = true
			r.Log.Info("other servers run, and have no quorum now; asking them again", "for", r.settings.askRemoved)
		}
	}
}

// ofThisLife are the servers that answered and do not belong to an earlier life of the control plane than the data directory.
func (r *restore) ofThisLife(replies []reply) (servers []string) {
	for _, answer := range replies {
		if answer.Generation >= r.settings.Generation {
			servers = append(servers, answer.from)
		}
	}
	slices.Sort(servers)
	return servers
}

// anyAnswered says whether a server that can be reached answered that it does not know.
func anyAnswered(errs map[string]error) bool {
	for err := range maps.Values(errs) {
		if errors.Is(err, errAnswered) {
			return true
		}
	}
	return false
}
