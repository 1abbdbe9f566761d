package silence

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/absence"
)

const (
	// every is how often it is checked whether a host is due.
	every = time.Second
	// soon is how often a host is examined in the first time after its agent fell silent, and later afterwards.
	soon, later = 5 * time.Second, 20 * time.Second
	firstTime   = 2 * time.Minute
	// most is how many hosts are examined at once: when a site loses power, it is hundreds.
	most = 16
	// examineTimeout bounds one round.
	examineTimeout = 10 * time.Second
)

// Host is a host whose agent does not report.
type Host struct {
	*api.Host
	// Since is when it fell silent.
	Since    time.Time
	Farewell absence.Farewell
	// Storage is what the storage systems say of its daemons.
	Storage absence.Storage
}

// Watcher examines hosts whose agents do not report, again and again.
type Watcher struct {
	// Config reaches the servers as one of them.
	Config *rest.Config
	// Hosts are those that are silent now.
	Hosts func() []Host
	// Servers are all servers, by name, as IP:port.
	Servers func(ctx context.Context) (map[string]string, error)
	// Put writes the cause.
	Put func(ctx context.Context, host string, cause absence.Cause) error
	Log *slog.Logger

	examined map[string]time.Time
}

// Run examines hosts until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	w.examined = map[string]time.Time{}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if due := w.due(w.Hosts(), time.Now()); len(due) > 0 {
				w.examine(ctx, due)
			}
		}
	}
}

// due are the hosts whose turn it is, those that waited longest first.
func (w *Watcher) due(all []Host, now time.Time) []Host {
	silent := map[string]bool{}
	var due []Host
	for _, h := range all {
		silent[h.Name] = true
		pause := soon
		if now.Sub(h.Since) > firstTime {
			pause = later
		}
		if now.Sub(w.examined[h.Name]) >= pause {
			due = append(due, h)
		}
	}
	for name := range w.examined {
		if !silent[name] {
			delete(w.examined, name)
		}
	}
	slices.SortStableFunc(due, func(a, b Host) int { return w.examined[a.Name].Compare(w.examined[b.Name]) })
	due = due[:min(len(due), most)]
	for _, h := range due {
		w.examined[h.Name] = now
	}
	return due
}

// examine finds out the causes of some hosts, and writes them.
func (w *Watcher) examine(ctx context.Context, hosts []Host) {
	ctx, cancel := context.WithTimeout(ctx, examineTimeout)
	defer cancel()
	servers, err := w.Servers(ctx)
	if err != nil {
		w.Log.Debug("the servers cannot be asked about agents", "error", err)
		return
	}
	answers := make(chan map[string]server, 1)
	go func() { answers <- askAll(ctx, w.Config, addressesOf(servers)) }()
	replies := make([]absence.Reply, len(hosts))
	var all sync.WaitGroup
	for i, h := range hosts {
		all.Go(func() { replies[i] = machine(ctx, h.Status.Addresses) })
	}
	all.Wait()
	asked := <-answers
	for i, h := range hosts {
		cause := absence.Judge(h.Host, factsOf(h, replies[i], servers[h.Name], asked))
		if err := w.Put(ctx, h.Name, cause); err != nil && ctx.Err() == nil {
			w.Log.Warn("writing why an agent does not report", "host", h.Name, "error", err)
		}
	}
}

func addressesOf(servers map[string]string) (all []string) {
	for _, address := range servers {
		all = append(all, address)
	}
	return all
}

// factsOf puts together what was found out of a host; own is the address of its server, if it runs one.
func factsOf(h Host, reply absence.Reply, own string, asked map[string]server) absence.Facts {
	f := absence.Facts{
		For: time.Since(h.Since), Machine: reply, Farewell: h.Farewell, Was: absence.Reason(h.Host),
		Storage: h.Storage,
	}
	if own != "" {
		f.Server = asked[own].reply
		if reply == absence.Silent && (f.Server == absence.Accepts || f.Server == absence.Closed) {
			f.Machine = f.Server // its server's port may be the only one that answers
		}
	}
	for _, one := range asked {
		if one.reply == absence.Accepts {
			f.Servers++
		}
		f.Seen = f.Seen.With(one.sees.Hosts[h.Name])
		for _, ip := range h.Status.Addresses {
			f.Seen = f.Seen.With(one.sees.Addresses[groupOf(ip)])
		}
	}
	return f
}

// groupOf is how a server names an address in its sightings, see doors.Group.
func groupOf(ip string) string {
	parsed := net.ParseIP(ip)
	if parsed == nil || parsed.To4() != nil {
		return ip
	}
	return parsed.Mask(net.CIDRMask(64, 128)).String()
}
