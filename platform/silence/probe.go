// Package silence finds out why agents do not report: it asks the servers what they see of them,
// and tries whether their machines answer. What that means is package absence's affair.
package silence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/internal/absence"
)

const (
	// dialTimeout is how long a machine has to answer to a connection, and askTimeout a server to a question.
	dialTimeout = 2 * time.Second
	askTimeout  = 3 * time.Second
	// mostSightings bounds the answer of a server.
	mostSightings = 4 << 20
)

// ports are tried on a machine: a closed port is an answer, too. They are those of the servers'
// API, of ssh, and of mons.
var ports = []string{"7440", "22", "3300"}

// server is what one server answered.
type server struct {
	reply absence.Reply
	sees  absence.Sightings
}

// askAll asks servers, as IP:port, at once what they see of the agents.
func askAll(ctx context.Context, config *rest.Config, servers []string) map[string]server {
	all := map[string]server{}
	var mu sync.Mutex
	var asked sync.WaitGroup
	for _, address := range servers {
		asked.Go(func() {
			reply, sees := ask(ctx, config, address)
			mu.Lock()
			defer mu.Unlock()
			all[address] = server{reply, sees}
		})
	}
	asked.Wait()
	return all
}

// ask asks one server.
func ask(ctx context.Context, config *rest.Config, address string) (absence.Reply, absence.Sightings) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var reached atomic.Bool
	config = rest.CopyConfig(config)
	config.Host, config.Timeout = "https://"+address, askTimeout
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			reached.Store(
				true)
		},
		ConnectDone: func(_, _ string, err error) {
			if err == nil { // the TLS handshake is still to come
				reached.Store(true)
			}
		},
	})
	var none absence.Sightings
	sees, err := get(ctx, config)
	switch {
	case err == nil:
		return absence.Accepts, sees
	case errors.Is(err, syscall.ECONNREFUSED):
		return absence.Closed, none
	case !reached.Load():
		return absence.Silent, none
	case errors.Is(err, context.DeadlineExceeded):
		return absence.Hangs, none
	}
	return absence.Accepts, none // an older one, or one that starts
}

func get(ctx context.Context, config *rest.Config) (sees absence.Sightings, err error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return sees, fmt.Errorf("while preparing a client: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+absence.Path, http.NoBody)
	if err != nil {
		return sees, fmt.Errorf("while asking for the agents: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return sees, fmt.Errorf("while asking for the agents: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, mostSightings))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the server answered %s", response.Status)
	}
	if err == nil {
		err = json.Unmarshal(text, &sees)
	}
	return sees, err
}

// machine tries the ports of all addresses of a machine at once, and returns as soon as one answers. It returns nothing
// where nothing could be tried.
func machine(ctx context.Context, addresses []string) absence.Reply {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if len(addresses) == 0 {
		return ""
	}
	replies := make(chan absence.Reply, len(addresses)*len(ports))
	for _, ip := range addresses {
		for _, port := range ports {
			go func() { replies <- dial(ctx, net.JoinHostPort(ip, port)) }()
		}
	}
	for range cap(replies) {
		if reply := <-replies; reply != absence.Silent {
			return reply
		}
	}
	return absence.Silent
}

func dial(ctx context.Context, address string) absence.Reply {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	switch {
	case err == nil:
		c.Close()
		return absence.Accepts
	case errors.Is(err, syscall.ECONNREFUSED):
		return absence.Closed
	}
	return absence.Silent
}
