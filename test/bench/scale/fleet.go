package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-storage/holdfast/agent"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/join"
)

// joining is how many hosts join at once.
const joining = 16

// fleet are the simulated hosts with their agents.
type fleet struct {
	hosts []*host
	stop  context.CancelFunc
	ended sync.WaitGroup
}

// startFleet has all hosts join and their agents run. They end with ctx, or with stopAll.
func startFleet(ctx context.Context, o options, s *server, c *cephs) (*fleet, error) {
	f := &fleet{}
	life, stop := context.WithCancel(ctx)
	f.stop = stop
	for n := range o.hosts {
		f.hosts = append(f.hosts, newHost(n+1, o.disks, c))
	}
	group, join := errgroup.WithContext(ctx)
	group.SetLimit(joining)
	for n, h := range f.hosts {
		group.Go(func() error { return f.start(join, life, within(o.dir, "hosts", h.name), n, h, s) })
	}
	if err := group.Wait(); err != nil {
		f.stopAll()
		return nil, err
	}
	return f, nil
}

// start joins a host and runs its agent.
func (f *fleet) start(ctx, life context.Context, dir string, number int, h *host, s *server) error {
	token, err := join.Create(ctx, s.config, join.RoleAgent, time.Hour)
	if err != nil {
		return fmt.Errorf("while making a token for %s: %w", h.name, err)
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	identity, err := control.OpenAgent(ctx, control.AgentConfig{DataDir: dir, Name: h.name, JoinToken: token, Log: quiet})
	if err != nil {
		return fmt.Errorf("while %s joins: %w", h.name, err)
	}
	f.ended.Go(func() {
		defer identity.Close()
		defer h.Close()
		err := agent.Run(life, agent.Config{
			Name: h.name, DataDir: dir, RunDir: within(dir, "run"), REST: identity.Config(), Address: address(number),
			Version: "scale", Runtime: h, RuntimeKind: api.RuntimeDetached, Inventory: h, Services: h.services(), Log: quiet,
		})
		if err != nil {
			note("the agent of %s: %v", h.name, err)
		}
	})
	return nil
}

// processes is how many run on all hosts.
func (f *fleet) processes() int {
	n := 0
	for _, h := range f.hosts {
		n += len(h.Names())
	}
	return n
}

// address is a host's own.
func address(number int) string { return fmt.Sprintf("10.77.%d.%d", number/250, number%250+1) }

func (f *fleet) stopAll() {
	f.stop()
	f.ended.Wait()
}
