package hosttoken

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestConfig_ended: an agent that ends while the API does not answer waits for no token.
func TestConfig_ended(t *testing.T) {
	asked, release := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	}))
	defer server.Close()
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	config, err := Config(ctx, &rest.Config{Host: server.URL}, "h1")
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		response, err := client.Get(server.URL)
		if err == nil {
			err = response.Body.Close()
		}
		ended <- err
	}()
	<-asked
	cancel()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it got a token that nobody gave")
		}
	case <-time.After(askTimeout / 2):
		t.Error("it waits for a token although the agent ends")
	}
}
