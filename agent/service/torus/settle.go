package torus

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/torus"
)

// Torus does not say when copies are made: of a peer that moves blocks it says "0 B/sec" and "Balanced: true" as well. So what the
// peers store (USED) has to stay the same for a while after anything that has blocks move.

const (
	// settleAfter is how long it has to stay the same: each peer writes it every 5 s.
	settleAfter = 20 * time.Second
	// slowest is how many bytes Torus moves in a second at least. USED is rounded, and has to stay the same for as long as a step of it takes.
	slowest = 20 << 20
)

// watch is what happened last, and since when what is stored has stayed the same.
type watch struct {
	event, used string
	since       time.Time
	open        bool     // it has not settled since the event
	back        []string // the peers that came back by the event
	states      map[string]torus.PeerState
}

// see says whether what is stored is not settled yet. An event opens the watch; once it has settled, clients may write.
func (w *watch) see(event, used string, enough time.Duration, now time.Time) bool {
	if w.since.IsZero() || event != w.event {
		w.event, w.used, w.since, w.open = event, used, now, true
	}
	if w.open && used != w.used {
		w.used, w.since = used, now
	}
	w.open = w.open && now.Sub(w.since) < enough
	return w.open
}

// moving says whether copies are being made in a ring, and which peers came back that they are made for. Of a ring that this agent sees
// for the first time nobody can say, so it counts as moving.
func (t *Torusd) moving(daemon string, c *torus.Cluster) (bool, []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.watch("ring " + daemon)
	event, states := strconv.Itoa(c.Replication), map[string]torus.PeerState{}
	for _, p := range c.Peers {
		if p.State != torus.PeerAvail {
			event, states[p.UUID] = event+" "+p.UUID+"="+string(p.State), p.State
		}
	}
	if len(states) == 0 {
		return false, nil
	}
	for uuid, state := range states {
		if state == torus.PeerOK && w.states[uuid] == torus.PeerDown && !slices.Contains(w.back, uuid) {
			w.back = append(w.back, uuid)
		}
	}
	w.states = states
	if !w.see(event, usedText(c.Peers), settleTime(c.Peers), time.Now()) {
		w.back = nil
	}
	slices.Sort(w.back)
	return w.open, slices.Clone(w.back)
}

func (t *Torusd) watch(name string) *watch {
	if t.watches[name] == nil {
		t.watches[name] = &watch{}
	}
	return t.watches[name]
}

func usedText(peers []torus.Peer) string {
	var used []string
	for _, p := range peers {
		used = append(used, p.UUID+"="+strconv.FormatInt(p.Used, 10))
	}
	return strings.Join(used, " ")
}

// settleTime is how long what peers store has to stay the same.
func settleTime(peers []torus.Peer) time.Duration {
	longest := settleAfter
	for _, p := range peers {
		longest = max(longest, time.Duration(torus.SizeStep(p.Used)/slowest)*time.Second)
	}
	return longest
}

// settledFile keeps for which start of torusd the peer's blocks have settled.
const settledFile = "settled"

// settled says when the torusd was started, and whether the blocks of its peer have settled since. The first one missed nothing.
func (t *Torusd) settled(l *service.Local, peers []torus.Peer) (started string, settled bool, err error) {
	if started = torus.StartText(l.Daemon.Status.Started); started == "" {
		return "", false, nil
	}
	path := filepath.Join(l.Data, settledFile)
	kept, err := os.ReadFile(path)
	first := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !first:
		return "", false, fmt.Errorf("while reading for which start the peer's blocks settled: %w", err)
	case strings.TrimSpace(string(kept)) == started:
		return started, true, nil
	case !first && t.unsettled(l, started, peers):
		return started, false, nil
	}
	if err := atomicfile.Write(path, []byte(started+"\n"), 0o644); err != nil {
		return "", false, fmt.Errorf("while noting that the peer's blocks settled: %w", err)
	}
	return started, true, nil
}

// unsettled says whether the peer's blocks have not settled since a start. While Torus does not hear the peer they have not.
func (t *Torusd) unsettled(l *service.Local, started string, peers []torus.Peer) bool {
	own := slices.DeleteFunc(slices.Clone(peers), func(p torus.Peer) bool { return p.Address != l.Parameters[torus.ParamPeer] })
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(own) == 0 {
		delete(t.watches, "peer "+l.Data)
		return true
	}
	return t.watch("peer "+l.Data).see(started, usedText(own), settleTime(own), time.Now())
}
