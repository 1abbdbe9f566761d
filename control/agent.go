package control

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/control/private"
)

// AgentConfig says which host's agent to be.
type AgentConfig struct {
	// DataDir holds the host's identity.
	DataDir string
	// Name of the host, for a join. Default: see DefaultName. Once joined, the name stays.
	Name string
	// JoinToken joins this host to a control plane. When DataDir holds an identity already, it is looked at only if the servers
	// do not let the host in with that.
	JoinToken string
	// Refresh is how often the servers are asked what changed of them. Default: a minute.
	Refresh time.Duration
	// Log receives what there is to tell. Default: slog.Default().
	Log *slog.Logger
}

// Agent is the identity of a host that runs an agent alone.
type Agent struct {
	servers *endpoints.Servers
	stop    context.CancelFunc
	done    sync.WaitGroup
	unlock  func()
}

// OpenAgent takes the data directory's lock, joins if the host has no identity yet, and keeps the list of servers fresh until
// Close is called.
func OpenAgent(ctx context.Context, c AgentConfig) (*Agent, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	unlock, err := Lock(c.DataDir)
	if err != nil {
		return nil, err
	}
	private.Hide(c.DataDir, c.Log)
	servers, err := c.open(ctx)
	if err != nil {
		unlock()
		return nil, err
	}
	servers.Every = c.Refresh
	run, stop := context.WithCancel(context.Background())
	a := &Agent{servers: servers, stop: stop, unlock: unlock}
	a.done.Go(func() { servers.Run(run, c.Log) })
	return a, nil
}

func (c *AgentConfig) open(ctx context.Context) (*endpoints.Servers, error) {
	d := dataDir(c.DataDir)
	stored, err := d.load()
	if err != nil {
		return nil, err
	}
	if stored != nil {
		return nil, fmt.Errorf("the data directory %s holds the server %s, which is an agent, too: start it with 'holdfast server', "+
			"or, if its host was removed, with 'holdfast server --join TOKEN' and a token of 'holdfast token create --role server'", d, stored.Name)
	}
	if !endpoints.Exists(d.host()) {
		if err := c.join(ctx, d); err != nil {
			return nil, err
		}
	}
	servers, err := endpoints.Open(d.host())
	if err != nil {
		return nil, err
	}
	if c.JoinToken != "" && c.lockedOut(ctx, servers) {
		if servers, err = c.rejoin(ctx, d, servers.Host()); err != nil {
			return nil, err
		}
	}
	if ended := servers.Expired(time.Now()); ended != "" {
		c.Log.Error(ended)
	}
	if c.Name != "" && c.Name != servers.Host() {
		return nil, fmt.Errorf("the data directory %s belongs to the host %s, not %s: leave out --name, or choose another directory with --data-dir",
			d, servers.Host(), c.Name)
	}
	return servers, nil
}

// lockedOut says whether this host's identity is of no use any more: its certificate has ended, or was revoked. Only a clear
// word counts, not a server that cannot be reached.
func (c *AgentConfig) lockedOut(ctx context.Context, servers *endpoints.Servers) bool {
	if servers.Expired(time.Now()) != "" {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := endpoints.List(ctx, servers.Config())
	return apierrors.IsUnauthorized(err)
}

// rejoin joins a host again that was a host before, with the same name and key.
func (c *AgentConfig) rejoin(ctx context.Context, d dataDir, name string) (*endpoints.Servers, error) {
	if c.Name == "" {
		c.Name = name
	}
	c.Log.Info("the servers refuse the certificate of this host; joining again", "host", c.Name)
	if err := c.join(ctx, d); err != nil {
		return nil, err
	}
	return endpoints.Open(d.host())
}

func (c *AgentConfig) join(ctx context.Context, d dataDir) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	if c.JoinToken == "" {
		return fmt.Errorf("the data directory %s holds no identity: run 'holdfast token create' on a server, and "+
			"start this agent with --join TOKEN", d)
	}
	token, err := join.Parse(c.JoinToken)
	if err != nil {
		return err
	}
	if c.Name == "" {
		if c.Name, err = DefaultName(); err != nil {
			return err
		}
	}
	key, err := d.hostKey()
	if err != nil {
		return err
	}
	joiner := &join.Joiner{Token: token, Role: join.RoleAgent, Name: c.Name, Key: key, Now: time.Now, Log: c.Log}
	joined, err := joiner.Join(ctx)
	if err != nil {
		return err
	}
	return endpoints.Save(d.host(), joined.CA, joined.Host, joined.Servers)
}

// Name is the host's name.
func (a *Agent) Name() string { return a.servers.Host() }

// Config reaches the API as the host's agent, over any of the servers.
func (a *Agent) Config() *rest.Config { return a.servers.Config() }

// Close lets the data directory go. It may be called once.
func (a *Agent) Close() {
	a.stop()
	a.done.Wait()
	a.unlock()
}
