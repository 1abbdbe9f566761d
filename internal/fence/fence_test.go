package fence_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/internal/fence"
)

// TestConfig_foreignServer: a write with tokens fails where the API server takes no notice of them;
// what it answers to all else, and to what it refuses, is passed on.
func TestConfig_foreignServer(t *testing.T) {
	kept := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if kept && r.Header.Get(fence.Header) != "" {
			w.Header().Set(fence.KeptHeader, "true")
		}
		if r.URL.Path == "/refused" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer server.Close()
	send := func(config *rest.Config, method, path string) error {
		t.Helper()
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err == nil {
			response.Body.Close()
		}
		return err
	}
	plain := &rest.Config{Host: server.URL}
	fenced := fence.Config(plain, fence.Token{Name: "leader", Value: "a"})
	for _, foreign := range []bool{true, false} {
		kept = !foreign
		if err := send(fenced, http.MethodPut, "/"); errors.Is(err, fence.ErrNotKept) != foreign {
			t.Errorf("a write to a foreign server (%v): %v", foreign, err)
		}
		for _, err := range []error{
			send(fenced, http.MethodGet, "/"), send(fenced, http.MethodPut, "/refused"), send(fence.Config(plain),
				http.MethodPut, "/"),
		} {
			if err != nil {
				t.Errorf("all else (foreign: %v): %v", foreign, err)
			}
		}
	}
}
