package doors

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/holdfast-storage/holdfast/internal/words"
)

var (
	refused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "holdfast_connections_refused_total",
		Help: "Connections and requests that were refused or ended because of a bound, by reason.",
	}, []string{"reason"})
	connections = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "holdfast_connections",
		Help: "Connections by port, and by whose they are: " +
			"strangers (not proven yet, or joining), near (the same from this machine), clients.",
	}, []string{"port", "of"})
	publish = sync.OnceFunc(func() { legacyregistry.RawMustRegister(refused, connections) })
)

// Publish shows the metrics at /metrics of the API.
func Publish() { publish() }

// count shows how many connections there are. The caller holds the mutex.
func (l *Listener) count() {
	for of, n := range map[string]int{"strangers": l.strangers.count, "near": l.near.count, "clients": l.clients.count} {
		connections.WithLabelValues(l.refusals.port, of).Set(float64(n))
	}
}

// refusals are logged together, at most once in a while, however many there are.
type refusals struct {
	log   *slog.Logger
	port  string
	every time.Duration

	mu    sync.Mutex
	count map[string]int
	last  string
}

// reasons say in the log what a reason means.
var reasons = map[string]string{
	"address":   "too many connections from one address",
	"strangers": "too many connections of clients without a certificate",
	"client":    "too many connections of one client",
	"clients":   "too many connections of clients",
	"pace":      "too many new connections from one address",
	"slow":      "no request, or no credential, in time",
	"requests":  "too many requests without a credential",
	"watches":   "too many watches of one client",
	"joins":     "too many requests to join",
	"unknown":   "certificates that are not trusted",
}

// note counts a refusal. Whose it was is told of the last one.
func (r *refusals) note(why, whose string) {
	refused.WithLabelValues(why).Inc()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == nil {
		r.count = map[string]int{}
		time.AfterFunc(r.every, r.tell)
	}
	r.count[why]++
	r.last = whose
}

func (r *refusals) tell() {
	r.mu.Lock()
	count, last := r.count, r.last
	r.count = nil
	r.mu.Unlock()
	all, why := 0, []string{}
	for _, reason := range slices.Sorted(maps.Keys(count)) {
		all += count[reason]
		why = append(why, reasons[reason])
	}
	r.log.Warn("connections or requests were refused",
		"count", all, "why", strings.Join(why, "; "), "last", words.Cut(last, 64), "port", r.port)
}

// Refused counts and logs a refusal that the caller makes.
func (l *Listener) Refused(why, whose string) { l.refusals.note(why, whose) }
