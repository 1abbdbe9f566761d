package control

import (
	"context"
	"log/slog"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control/damaged"
	"github.com/holdfast-storage/holdfast/control/etcd"
	"github.com/holdfast-storage/holdfast/control/led"
	"github.com/holdfast-storage/holdfast/control/private"
	quorum "github.com/holdfast-storage/holdfast/driver/etcd"
)

// Server is a running server.
type Server struct {
	// Leads is what this server answers with while it leads.
	Leads led.Leader

	dir      dataDir
	settings *settings
	identity *identity
	log      *slog.Logger
	unlock   func()
	loopback *rest.Config
	// host, backups and following are made with the identity; see become.
	host      *ownHost
	backups   *backups
	following *follower
	running   context.Context //nolint:containedctx // the server's own life, which no call of it bounds
	// background is what runs beside the API, until running ends.
	background     sync.WaitGroup
	stopBackground context.CancelFunc
	quorumSettings quorum.Settings
	damage         *damaged.Note // of the files of the member; it stays until they were replaced
	// seat is what runs while this server holds a seat; nil for a standby. Only serve, and before
	// it Start, and after it Stop, change it and the fields above.
	seat *seat
	// failed receives the error that the server cannot go on after.
	failed chan error
	// mu guards seat for readers beside serve, the address in settings, holding and changed.
	mu      sync.Mutex
	holding context.Context //nolint:containedctx // the time of the seat that is held; nil without one
	changed chan struct{}
}

// Start starts a server, and returns when it is ready: a quorum of the servers runs, and all kinds
// are served. When ctx ends before, everything is stopped again. Later ctx has no meaning; the
// caller calls Stop.
func Start(ctx context.Context, c Config) (*Server, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	quietLibraries(c.Log)
	unlock, err := Lock(c.DataDir)
	if err != nil {
		return nil, err
	}
	private.Hide(c.DataDir, c.Log)
	s := &Server{dir: dataDir(c.DataDir), log: c.Log, unlock: unlock, failed: make(chan error, 1), changed: make(chan struct{})}
	s.running, s.stopBackground = context.WithCancel(context.Background())
	if err := (mender{s}).noteEnd((&startup{s, &c}).run(ctx)); err != nil {
		mender{s}.linger(ctx, err)
		s.Stop()
		return nil, err
	}
	return s, nil
}

// Config reaches the API of this server with all rights; the engine uses it.
func (s *Server) Config() *rest.Config { return rest.CopyConfig(s.loopback) }

// AgentConfig reaches the API as the agent of this server's own host, over any of the servers.
func (s *Server) AgentConfig() *rest.Config { return s.host.list().Config() }

// Name is the name of the server and of its host.
func (s *Server) Name() string { return s.settings.Name }

// Endpoint is where others reach the API, as IP:port.
func (s *Server) Endpoint() string { return s.settings.endpoint() }

// Voters counts the servers that vote in etcd, as this one knows; 0 for a standby.
func (s *Server) Voters() int {
	if m := s.member(); m != nil {
		return m.Voters()
	}
	return 0
}

// Wait returns the error that the server cannot go on after, or nil when ctx ends. The caller calls
// Stop in any case.
func (s *Server) Wait(ctx context.Context) error {
	select {
	case err := <-s.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// Stop ends the server. Storage daemons go on. It may be called once.
func (s *Server) Stop() {
	if s.host != nil {
		s.host.stop()
	}
	s.stopBackground()
	s.background.Wait()
	s.leave()
	s.unlock()
}

// held is the seat that this server holds or takes, or nil. It may be called at any time.
func (s *Server) held() *seat {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seat
}

// member is the member of etcd that runs, or nil. It may be called at any time.
func (s *Server) member() *etcd.Member {
	if seat := s.held(); seat != nil {
		return seat.current()
	}
	return nil
}
