package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// TestGate: while the server starts it answers itself alone; all others are asked to come again, as their libraries do.
func TestGate(t *testing.T) {
	g := &gate{}
	api := g.guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	ask := func(group string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		ctx := request.WithUser(t.Context(), &user.DefaultInfo{Groups: []string{group}})
		api.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/apis", nil))
		return w
	}
	if w := ask("holdfast:admins"); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("while it starts, an administrator is answered %d, to come again after %q s", w.Code, w.Header().Get("Retry-After"))
	}
	if w := ask("system:masters"); w.Code != http.StatusOK {
		t.Errorf("while it starts, the server itself is answered %d", w.Code)
	}
	(&Server{gate: g}).Open()
	if w := ask("holdfast:admins"); w.Code != http.StatusOK {
		t.Errorf("once it is open, an administrator is answered %d", w.Code)
	}
}
