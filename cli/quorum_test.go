package cli

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control/quorumview"
)

// newLeader stands in for a server whose member leads etcd since a moment ago: it has looked at the members after so many questions.
func newLeader(t *testing.T, unseen int) (config *rest.Config, asked *int) {
	t.Helper()
	asked = new(int)
	mux := http.NewServeMux()
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("/holdfast/v1/servers", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "[%q]", strings.TrimPrefix(server.URL, "https://"))
	})
	mux.HandleFunc(quorumview.Path, func(w http.ResponseWriter, _ *http.Request) {
		if *asked++; *asked <= unseen {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, `{"leader":"a","want":3}`)
	})
	return &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, asked
}

// TestSeenQuorum: a leader of etcd that has not looked at the members yet is asked again; what it says when the time is over says what to do, and is an
// error.
func TestSeenQuorum(t *testing.T) {
	config, asked := newLeader(t, 5) // twice by each question: as the server that the kubeconfig names, and as one of the list
	ask := func() (*quorumview.Status, error) { return quorumview.Ask(t.Context(), config) }
	status, err := seenQuorum(t.Context(), ask, nil, time.Nanosecond)
	if err != nil || status.Want != 3 || *asked != 6 {
		t.Errorf("%+v, %v after %d questions", status, err, *asked)
	}
	config, _ = newLeader(t, 1000)
	over := make(chan time.Time)
	close(over)
	status, err = seenQuorum(t.Context(), ask, over, time.Hour)
	if !errors.Is(err, quorumview.ErrUnseen) || !errors.Is(err, quorumview.ErrUnknown) || status != nil || !strings.Contains(err.Error(), "ask again") {
		t.Errorf("%+v, %v", status, err)
	}
	if unanswered(err, true) {
		t.Error("it is taken for an answer that nobody gave")
	}
}
