package silence

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/absence"
)

func silent(name string, since time.Time, addresses ...string) Host {
	h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: api.HostStatus{Addresses: addresses}}
	return Host{Host: h, Since: since}
}

// TestDue: a host is examined often at first and less often later, and all have their turn.
func TestDue(t *testing.T) {
	t.Parallel()
	w, now := &Watcher{examined: map[string]time.Time{}}, time.Now()
	all := []Host{silent("new", now), silent("old", now.Add(-time.Hour))}
	names := func(after time.Duration) (names string) {
		for _, h := range w.due(all, now.Add(after)) {
			names += h.Name + " "
		}
		return names
	}
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{0, "new old "}, {time.Second, ""}, {6 * time.Second, "new "}, {25 * time.Second, "old new "}} {
		if got := names(step.after); got != step.want {
			t.Errorf("after %s: %q, want %q", step.after, got, step.want)
		}
	}
	for range 2 * most {
		all = append(all, silent(strings.Repeat("x", len(all)), now))
	}
	seen := map[string]bool{}
	for range 3 {
		now = now.Add(time.Minute)
		due := w.due(all, now)
		if len(due) > most {
			t.Errorf("%d are examined at once", len(due))
		}
		for _, h := range due {
			seen[h.Name] = true
		}
	}
	if len(seen) != len(all) {
		t.Errorf("%d of %d hosts were examined", len(seen), len(all))
	}
}

// TestExamine: one server answers, one hangs and one is closed; what the first has seen, and what
// its own server does, makes the cause of each host.
func TestExamine(t *testing.T) {
	t.Parallel()
	sees := absence.Sightings{Hosts: map[string]absence.Seen{"h1": {Open: 1}}, Addresses: map[string]absence.Seen{
		"127.0.0.4": {Refused: absence.Stranger, Ago: 2},
	}}
	answers := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request,
	) {
		_ = json.NewEncoder(w).Encode(sees)
	}))
	defer answers.Close()
	hung, closed := listen(t), listen(t)
	closed.Close()
	causes := map[string]api.Reason{}
	w := &Watcher{
		Config: &rest.Config{Transport: answers.Client().Transport}, // as that of a server has one
		Servers: func(context.Context) (map[string]string, error) {
			return map[string]string{
				"s": answers.Listener.Addr().String(), "s2": hung.Addr().String(),
				"s3": closed.Addr().String(),
			}, nil
		},
		Put: func(_ context.Context, host string, c absence.Cause) error { causes[host] = c.Reason; return nil },
		Log: slog.New(slog.DiscardHandler),
	}
	stopped := silent("h3", time.Now(), "127.0.0.3")
	stopped.Farewell = absence.Stopped
	w.examine(t.Context(), []Host{
		silent("h1", time.Now(), "127.0.0.1"), silent("h2", time.Now(), "127.0.0.2"), stopped, silent("h4", time.Now(),
			"127.0.0.4"),
		silent("h5", time.Now(), "255.255.255.255"), silent("s2", time.Now(), "127.0.0.1"), silent("s3", time.Now(),
			"127.0.0.1"),
	})
	for host, want := range map[string]api.Reason{
		"h1": api.ReasonAgentHangs, "h2": api.ReasonAgentNotRunning, "h3": api.ReasonAgentStopped,
		"h4": api.ReasonCertificateRefused,
		"h5": api.ReasonMachineUnreachable, "s2": api.ReasonAgentHangs, "s3": api.ReasonAgentNotRunning,
	} {
		if causes[host] != want {
			t.Errorf("%s: %s, want %s", host, causes[host], want)
		}
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}
