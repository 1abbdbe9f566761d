package control_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/control/pki"
)

// buffer may be written to by many.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Split(strings.TrimSpace(b.text.String()), "\n")
}

// TestJoin_strangers: who has no token is told the same whatever he asks for, takes a short line of
// the log, and is not looked at any more when he goes on. Who has one joins.
func TestJoin_strangers(t *testing.T) {
	s, c := sharedServer(t)
	log := &buffer{}
	server := loggingHandler(t, s, c, time.Now, slog.New(slog.NewTextHandler(log, nil)))
	key, err := pki.LoadOrMakeKey(t.TempDir(), "host")
	if err != nil {
		t.Fatal(err)
	}
	csr, err := pki.NewRequest("somebody", key)
	if err != nil {
		t.Fatal(err)
	}
	insecure := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
	stranger := &http.Client{Transport: &http.Transport{TLSClientConfig: insecure}}
	defer stranger.CloseIdleConnections()
	ask := func(change map[string]any) (int, string) {
		q := map[string]any{
			"id": "00", "secret": "x", "role": "agent", "host": "somebody", "request": csr, "time": time.Now(),
		}
		for k, v := range change {
			q[k] = v
		}
		text, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := stranger.Post(server.URL+join.Path, "application/json", bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(body)
	}
	token, err := join.Parse(newToken(t, s, join.RoleAgent))
	if err != nil {
		t.Fatal(err)
	}
	wantStatus, want := ask(nil)
	tries := []map[string]any{
		{"host": s.Name()},
		{"host": s.Name(), "role": "server", "peerURL": "https://127.0.0.1:1"},
		{"host": "Bad_Name"},
		{"host": strings.Repeat("n", 45<<10)},
		{"host": "a\nlevel=ERROR"},
		{"time": time.Now().Add(time.Hour)},
		{"role": "king"},
		{"request": []byte("x")},
		{"id": token.ID},
		{"id": strings.Repeat("a", 45<<10)},
		{"peerURL": strings.Repeat("u", 45<<10), "role": "server"},
	}
	for _, change := range tries {
		if status, got := ask(change); status != wantStatus || got != want {
			t.Errorf("with %.80v: got %d %s, want %d %s", change, status, got, wantStatus, want)
		}
	}
	if got := len(log.lines()); got > len(tries)+1 {
		t.Errorf("%d requests take %d lines of the log", len(tries)+1, got)
	}
	for _, line := range log.lines() {
		if len(line) > 1024 || strings.Contains(line, strings.Repeat("n", 64)) {
			t.Errorf("a line of the log has %d bytes: %.200s", len(line), line)
		}
	}
	last := 0
	for range 100 {
		last, _ = ask(nil)
	}
	if last != http.StatusServiceUnavailable {
		t.Errorf("who tries 100 tokens gets %d, want 503", last)
	}
	if got := len(log.lines()); got > 40 {
		t.Errorf("111 requests take %d lines of the log", got)
	}
}
