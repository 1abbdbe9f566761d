package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/control/seatroom"
)

// SeatPath is where servers ask whether they hold a member of etcd, or may have one. Only servers
// may: it is not open to hosts.
const SeatPath = "/holdfast/v1/seat"

// How often a standby asks, and how often a member asks whether it still is one: more often while
// etcd does not work.
const (
	askEvery   = time.Second
	checkEvery = 30 * time.Second
	doubtEvery = 2 * time.Second
	askTimeout = 4 * time.Second
	// tellFull is how often a standby says that it has no room.
	tellFull = 10 * time.Minute
	// tellSilence is how often a standby says that nobody answers it.
	tellSilence = 20 * time.Second
)

// question is what a server asks another one.
type question struct {
	Name    string `json:"name"`
	PeerURL string `json:"peerURL"`
	// NewURL is set by a member whose address changed, until all members know it.
	NewURL string `json:"newURL,omitempty"`
	// Standby is set by a server that holds no seat, and Generation is that of its data.
	Standby    bool  `json:"standby"`
	Generation int64 `json:"generation"`
	// Endpoint is where the API is served when the server holds a seat, as IP:port.
	Endpoint string `json:"endpoint,omitempty"`
	// Full is set by a standby that has no room for a member of etcd. The answer tells it
	// everything, and offers no seat.
	Full bool `json:"full,omitempty"`
	// NoRoom says for people how much room it lacks. Older versions do not say it.
	NoRoom string `json:"noRoom,omitempty"`
	// HostKey is the key of a standby's host; see access.HostKey. Older versions do not say it.
	HostKey string `json:"hostKey,omitempty"`
	// Damaged says how a standby lost its data, for people.
	Damaged string `json:"damaged,omitempty"`
	// Belief is whom a standby believes.
	Belief *pki.Belief `json:"belief,omitempty"`
}

// reply is what a member answers, by the word of the quorum.
type reply struct {
	Generation int64 `json:"generation"`
	// Member is set when the asking server has a member.
	Member bool `json:"member"`
	// Removed is set for a standby whose Host is gone: it is told nothing else.
	Removed bool `json:"removed,omitempty"`
	// Existing is set for a server that is to take a seat now; see etcd.Config.
	Existing string `json:"existing,omitempty"`
	// Servers are where the API is served, as IP:port.
	Servers []string `json:"servers,omitempty"`
	// Rotation is for a standby: the state of the authority's rotation while there is one; see
	// package rotation.
	Rotation map[string][]byte `json:"rotation,omitempty"`

	// from is the server that answered, as IP:port.
	from string
}

// askAll asks servers at once, as IP:port, and returns the replies of those that know.
func (s *Server) askAll(ctx context.Context, servers []string, standby bool) []reply {
	replies, errs := askEach(ctx, servers, func(ctx context.Context, server string) (*reply, error) {
		return s.ask(ctx, server, standby)
	})
	for server, err := range errs {
		s.log.Debug("another server could not list the members of etcd", "server", server, "error", err)
	}
	return replies
}

// askEach asks servers at once, and returns the replies of those that know, and why the others say
// nothing.
func askEach(ctx context.Context, servers []string, ask func(ctx context.Context, server string) (*reply, error)) ([]reply, map[string]error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var (
		mu      sync.Mutex
		wg      sync.WaitGroup
		replies []reply
		errs    = map[string]error{}
	)
	for _, server := range servers {
		wg.Go(func() {
			r, err := ask(ctx, server)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs[server] = err
				return
			}
			replies = append(replies, *r)
		})
	}
	wg.Wait()
	return replies, errs
}

func (s *Server) ask(ctx context.Context, server string, standby bool) (*reply, error) {
	q := &question{
		Name: s.settings.Name, PeerURL: s.peerURL(), NewURL: newURL(s), Standby: standby,
		Generation: s.settings.Generation, Endpoint: s.Endpoint(),
	}
	if standby {
		q.Belief, q.HostKey = s.following.standbyBelief(), s.host.key()
		if full := seatroom.Check(string(s.dir)); full != nil {
			q.Full, q.NoRoom = true, full.Error()
		}
		if s.damage != nil {
			q.Damaged = fmt.Sprintf("%s; the damaged files are in %s there", s.damage, s.dir.file(s.damage.Kept))
		}
	}
	return q.put(ctx, s.identity.loopback, server)
}

// put asks a server, as IP:port.
func (q *question) put(ctx context.Context, by http.RoundTripper, server string) (*reply, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+server+SeatPath, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := by.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	r := &reply{from: server}
	return r, readAnswer(response, 64<<10, r)
}

// errAnswered is wrapped by errors that a server which can be reached answered itself.
var errAnswered = errors.New("the server answered")

// readAnswer reads JSON of at most so many bytes. An answer that is no success is an error, with
// its beginning.
func readAnswer(response *http.Response, most int64, into any) error {
	text, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%w %s: %.200s", errAnswered, response.Status, text)
	}
	return json.Unmarshal(text, into)
}

// standby is a server that asks for a seat. Of what lasts it writes to the log again only after a
// while.
type standby struct {
	*Server
	// heard is when another server replied, or the log said that none does; full is when the log
	// said that this server has no room for a member of etcd.
	heard, full time.Time
	// gone is set when the others said that the server was removed.
	gone bool
}

// askForSeat asks until the server is given a seat, and returns it; nil when the server is stopped.
func (s *standby) askForSeat() *reply {
	s.log.Info("this server is a standby: it takes over when a member of etcd is needed")
	s.heard = time.Now()
	for s.running.Err() == nil {
		s.room()
		replies := s.askAll(s.running, s.host.others(), true)
		s.replies(replies)
		if offer := s.follow(replies); offer != nil {
			return offer
		}
		_ = pause(s.running, askEvery)
	}
	return nil
}

// follow does what the replies say, and returns the one that offers a seat, or nil.
func (s *standby) follow(replies []reply) *reply {
	for _, r := range replies {
		if r.Generation < s.settings.Generation {
			continue
		}
		if r.Removed {
			s.removed()
			continue
		}
		s.host.know(r.Servers)
		s.following.asStandby(r.Rotation)
		if r.Existing != "" {
			if s.settings.Generation != r.Generation {
				s.settings.Generation, s.settings.Restored = r.Generation, ""
			}
			return &r
		}
	}
	return nil
}

// room tells that the standby has none.
func (s *standby) room() {
	if full := seatroom.Check(string(s.dir)); full != nil && time.Since(s.full) > tellFull {
		s.full = time.Now()
		s.log.Warn("this server cannot hold a member of etcd", "error", full)
	}
}

// replies tells that none came. To a server that was removed nobody may answer ever again, as after
// a rotation of the authority.
func (s *standby) replies(replies []reply) {
	switch {
	case len(replies) > 0:
		s.heard = time.Now()
		s.adminOver(replies)
	case time.Since(s.heard) > tellSilence && !s.gone:
		s.heard = time.Now()
		s.log.Warn("no server can say who holds the state of the control plane. Start the others: more than half of the members of etcd "+
			"must run. If those are lost for good, run 'holdfast restore --from-data' on one that has its data, or 'holdfast restore FILE'",
			"asked", s.host.others())
	}
}

// removed tells once that the others have no Host of this server.
func (s *standby) removed() {
	if !s.gone {
		s.gone = true
		s.log.Warn("this server was removed: the others have no Host of it, or one of another machine, or were restored from a backup that is older than it. " +
			"It gets no membership of etcd, no backup and no new authority. Stop it ('systemctl stop holdfast'), or join it again: start it with " +
			"'holdfast server --join TOKEN', with a token from 'holdfast token create --role server' on one of the others")
	}
}

// adminOver has the administrator's kubeconfig name a server that answers.
func (s *standby) adminOver(replies []reply) {
	if s.identity.namesAdmin(func(endpoint string) bool {
		return slices.ContainsFunc(replies, func(r reply) bool { return r.from == endpoint })
	}) {
		return
	}
	if err := s.identity.writeAdmin(replies[0].from, time.Now()); err != nil {
		s.log.Warn("the administrator's kubeconfig could not be written", "error", err)
	}
}

// unseated says whether the others, by the word of their quorum, do not count this server among the
// members, or are of a later life of the control plane. When nobody knows, nothing has changed.
func (s *Server) unseated(ctx context.Context) bool {
	for _, r := range s.askAll(ctx, s.host.others(), false) {
		if r.Generation > s.settings.Generation || r.Generation == s.settings.Generation && !r.Member {
			return true
		}
	}
	return false
}
