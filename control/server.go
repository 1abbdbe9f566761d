package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/apiserver"
	"github.com/holdfast-storage/holdfast/control/damaged"
	"github.com/holdfast-storage/holdfast/control/doors"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/etcd"
	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/control/led"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/control/private"
	"github.com/holdfast-storage/holdfast/control/quorumlost"
	"github.com/holdfast-storage/holdfast/control/quorumview"
	"github.com/holdfast-storage/holdfast/control/sight"
	quorum "github.com/holdfast-storage/holdfast/driver/etcd"
	"github.com/holdfast-storage/holdfast/internal/absence"
	"github.com/holdfast-storage/holdfast/internal/livefigures"
	"github.com/holdfast-storage/holdfast/orch/wire"
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
	member   *etcd.Member
	api      *apiserver.Server
	revoked  *access.Revocation
	lost     *quorumlost.Watcher
	stopAPI  context.CancelFunc
	apiDone  chan error
	host     *endpoints.Servers
	stopHost context.CancelFunc
	hostDone sync.WaitGroup
	// rotating is the state of the authority's rotation that this server follows, while there is one;
	// etcdTrusts are the authorities that the member of etcd believes.
	rotating   atomic.Pointer[corev1.Secret]
	etcdTrusts []string
	running    context.Context //nolint:containedctx // the server's own life, which no call of it bounds
	// background is what runs beside the API, until running ends.
	background     sync.WaitGroup
	stopBackground context.CancelFunc
	// backups is held while a backup is taken.
	backups     sync.Mutex
	backupKeep  int
	backupEvery time.Duration
	// What a seat runs ends with it; see seat.go. Only serve, and before it Start, and after it Stop, change the fields above and
	// these.
	seat           *seat
	seated         sync.WaitGroup
	quorum         *quorumManager
	quorumSettings quorum.Settings
	abandoned      bool
	damage         *damaged.Note // of the files of the member; it stays until they were replaced
	tellHost       func(name string, config *rest.Config)
	// failed receives the error that the server cannot go on after.
	failed chan error
	// memberMu guards who reads and changes member, quorum, host, holding and changed.
	memberMu sync.Mutex
	holding  context.Context //nolint:containedctx // the time of the seat that is held; nil without one
	changed  chan struct{}
}

// Start starts a server, and returns when it is ready: a quorum of the servers runs, and all kinds are served. When ctx ends
// before, everything is stopped again. Later ctx has no meaning; the caller calls Stop.
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
	if err := (mender{s}).noteEnd(s.start(ctx, &c)); err != nil {
		mender{s}.linger(ctx, err)
		s.Stop()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, c *Config) error {
	s.backupKeep, s.backupEvery = first(c.BackupKeep, defaultBackupKeep), first(c.BackupEvery, defaultBackupEvery)
	s.quorumSettings, s.tellHost = c.Quorum, c.Host
	listener, err := s.prepare(ctx, c)
	if err != nil {
		return err
	}
	if err := listener.Close(); err != nil {
		return err
	}
	if err := s.sitOrWait(ctx); err != nil {
		return err
	}
	s.background.Go(s.serve)
	return nil
}

// sitOrWait takes the seat that the server held when it was stopped, or makes it a standby. Without its data it is one as well, and
// that is not written down: a disk that comes back with the next start holds the seat still, unless the others gave it away.
func (s *Server) sitOrWait(ctx context.Context) error {
	switch {
	case s.settings.Seat != seatHeld && (s.settings.Seat != seatTaking || !s.dir.hasLog() || !(mender{s}).find()):
	case s.damage != nil:
	case s.dir.lostDatabase() && s.dir.knowsOthers(s.settings):
		s.log.Warn("this server has lost its copy of the state: asking the other servers for a new one", "missing", s.dir.etcd())
		s.damage, _ = damaged.Read(string(s.dir)) // it is told as the cause
	case (mender{s}).find():
	default:
		return s.sitFirst(ctx)
	}
	return s.openStandby()
}

// sitFirst takes the seat that the server held when it was stopped. It may have been given to another one meanwhile.
func (s *Server) sitFirst(ctx context.Context) error {
	if err := (mender{s}).openHost(); err != nil {
		s.log.Warn("the identity of this server's host is made anew", "error", err)
	}
	err := s.sit(ctx)
	if errors.As(err, new(*etcd.Damage)) {
		return mender{s}.wait(err)
	}
	if err == nil || ctx.Err() != nil || s.seat == nil || s.host == nil {
		return err
	}
	if errors.Is(context.Cause(s.seat.ctx), errUnseated) || s.unseated(ctx) {
		return s.standUp()
	}
	return err
}

// insist repeats a step that may be repeated for as long as it fails by what passes by itself: a write that is under way while
// etcd's leader changes is lost, and times out.
func (s *Server) insist(ctx context.Context, step func(context.Context) error) error {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := step(ctx)
		if err == nil || !passes(err) {
			return err
		}
		s.log.Warn("the start is delayed; retrying", "error", err)
		select {
		case <-time.After(pause):
		case fatal := <-s.member.Failed():
			s.abandoned = true
			return fatal
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// passes says whether an error of the API may pass by itself.
func passes(err error) bool {
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) || apierrors.IsConflict(err)
}

// prepare makes or reads what the server is. Nothing is made before it is known that the ports are free.
func (s *Server) prepare(ctx context.Context, c *Config) (net.Listener, error) {
	stored, err := s.dir.load()
	if err != nil {
		return nil, err
	}
	if err := c.check(s.dir, stored); err != nil {
		return nil, err
	}
	if s.settings, err = c.resolve(stored); err != nil {
		return nil, err
	}
	if s.settings.bounds, err = boundsOf(c); err != nil {
		return nil, err
	}
	if err := s.dir.clearLeft(); err != nil {
		return nil, err
	}
	listener, err := listen(ctx, s.settings, s.log)
	if err != nil {
		return nil, err
	}
	if err := s.become(ctx, c, stored); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// become makes the server what it shall be: the first one, one that joined, or the one it was.
func (s *Server) become(ctx context.Context, c *Config, stored *settings) error {
	var err error
	switch {
	case stored != nil && c.JoinToken != "":
		err = s.rejoin(ctx, c.JoinToken)
	case stored != nil:
	case c.Init:
		err = s.dir.makeAuthority()
	default:
		err = s.join(ctx, c.JoinToken)
	}
	if err != nil {
		return err
	}
	if err := s.dir.save(s.settings); err != nil {
		return err
	}
	if s.identity, err = s.dir.openIdentity(s.settings); err != nil {
		return fmt.Errorf("%w; %s", err, cureShared)
	}
	s.loopback = s.identity.config()
	// A server may wait long for the others.
	s.background.Go(func() { s.identity.keep(s.running, s.log) })
	return nil
}

// check refuses a start that does not say what to do with the data directory, or says what cannot be done.
func (c *Config) check(d dataDir, stored *settings) error {
	if err := d.oneFileSystem(); err != nil {
		return err
	}
	switch {
	case c.Init && c.JoinToken != "":
		return errors.New("--init makes a new control plane and --join joins one: choose one of them")
	case c.Init && stored != nil:
		return fmt.Errorf("the data directory %s holds the server %s (%s) already: start it without --init; to make a new control plane, "+
			"choose another directory with --data-dir, or remove this one, which loses everything declared in it", d, stored.Name, stored.Address)
	case d.isAgent(stored) && (c.Init || c.JoinToken != ""):
		return fmt.Errorf("the data directory %s holds the identity of an agent that joined a control plane: choose another directory with --data-dir", d)
	case stored != nil && stored.Restoring != "":
		return fmt.Errorf("a restore into the data directory %s was cut off: run 'holdfast restore' again, as before", d)
	case stored != nil && stored.Rejoining && c.JoinToken == "":
		return fmt.Errorf("the server %s did not finish joining again after its host was removed: start it with "+
			"--join TOKEN once more; if the token is refused, make another with 'holdfast token create --role "+
			"server' on another server",
			stored.Name)
	case stored != nil && stored.Seat == seatHeld && d.lostDatabase() && !d.knowsOthers(stored):
		return fmt.Errorf("cannot start the server %s: its database %s is missing, and without it the server would "+
			"stop the daemons of all hosts; no other server is known: restore a backup with 'holdfast restore FILE'",
			stored.Name, d.etcd())
	case stored == nil && !c.Init && c.JoinToken == "":
		return fmt.Errorf("the data directory %s holds no server: make a new control plane with --init; or run "+
			"'holdfast token create --role server' on a server, and join its control plane with --join TOKEN", d)
	}
	return nil
}

func (s *Server) startEtcd(ctx context.Context) error {
	stop := s.tellWaiting(ctx, "waiting for a quorum of the servers")
	defer stop()
	s.etcdTrusts = pki.Fingerprints(s.identity.trust())
	member, err := etcd.Start(ctx, etcd.Config{
		Dir: s.dir.etcd(), Name: s.settings.Name, Address: s.settings.Address,
		PeerPort: s.settings.EtcdPeerPort, ClientPort: s.settings.EtcdClientPort,
		CertFile: pki.CertFile(s.dir.pki(), "etcd"), KeyFile: pki.KeyFile(s.dir.pki(), "etcd"), CAFile: filepath.Join(s.dir.pki(), trustFile),
		Existing: s.settings.Existing, Log: s.log,
	})
	s.memberMu.Lock()
	defer s.memberMu.Unlock()
	s.member = member
	return err
}

// current is the member that runs, or nil.
func (s *Server) current() *etcd.Member {
	s.memberMu.Lock()
	defer s.memberMu.Unlock()
	return s.member
}

// tellWaiting logs what is waited for, every ten seconds until the returned function is called.
func (s *Server) tellWaiting(ctx context.Context, what string) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(10 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				s.log.Info(what)
			}
		}
	}()
	return stop
}

func (s *Server) startAPI(ctx context.Context, listener *doors.Listener) error {
	config, err := s.apiConfig(listener)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	if s.api, err = apiserver.New(*config); err != nil {
		return errors.Join(err, listener.Close())
	}
	run, stop := context.WithCancel(context.Background())
	s.stopAPI, s.apiDone = stop, make(chan error, 1)
	go func() { s.apiDone <- s.api.Run(run) }()
	return s.orFailure(ctx, s.member.Failed(), s.api.WaitReady)
}

// orFailure does a step of the start. It ends early where the member of etcd fails meanwhile: then the step would wait for what never comes.
func (s *Server) orFailure(ctx context.Context, failed <-chan error, step func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- step(ctx) }()
	defer stop()
	select {
	case err := <-done:
		return err
	case fatal := <-failed:
		s.abandoned = true
		stop()
		<-done
		return fatal
	}
}

func (s *Server) apiConfig(listener *doors.Listener) (*apiserver.Config, error) {
	member := s.member
	hostFacts, err := access.NewSecrets(s.loopback)
	if err != nil {
		return nil, err
	}
	facts, err := access.NewFacts(s.loopback)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(s.loopback)
	if err != nil {
		return nil, err
	}
	hosts, err := join.NewHosts(s.loopback)
	if err != nil {
		return nil, err
	}
	if s.revoked, err = access.NewRevocation(s.loopback); err != nil {
		return nil, err
	}
	if err := s.manageQuorum(client); err != nil {
		return nil, err
	}
	rights := access.NewAuthorizer(hostFacts)
	s.lost = &quorumlost.Watcher{Member: member}
	seen := &sight.Book{Running: s.revoked.Running, Verify: s.identity.credentials.VerifyOptions, Now: time.Now}
	renewer := &join.Renewer{Authority: s.identity.signer, Now: time.Now, Log: s.log}
	listener.Broken = seen.Broken
	leads := &led.Handler{Leader: &s.Leads, Server: s.settings.Name, Client: client, Transport: s.identity.loopback}
	return &apiserver.Config{
		Listener: listener, Credentials: s.identity.credentials, Loopback: s.loopback,
		Etcd: apiserver.Etcd{
			URL:      s.clientURL(),
			CertFile: pki.CertFile(s.dir.pki(), "etcd"), KeyFile: pki.KeyFile(s.dir.pki(), "etcd"), CAFile: filepath.Join(s.dir.pki(), trustFile),
		},
		EncryptionKey: s.identity.encryptionKey,
		Authorizer:    rights,
		Rules:         rights.Rules,
		Admission:     access.Admissions(facts),
		Checks:        []healthz.HealthChecker{healthz.NamedCheck("etcd", func(r *http.Request) error { return member.Ready(r.Context()) })},
		Guard:         func(next http.Handler) http.Handler { return s.lost.Guard(s.revoked.Guard(next)) },
		Refused:       seen.Refused,
		Open:          map[string]http.Handler{join.Path: s.joinHandler(client, hosts, listener.Refused)},
		Known: map[string]http.Handler{
			endpoints.Path: endpoints.Handler(client), access.RenewPath: renewer,
			endpoints.TrustPath: endpoints.TrustHandler(s.identity.trust, s.noteBelief(hosts)),
			BackupPath:          http.HandlerFunc(s.serveBackup),
			SeatPath:            http.HandlerFunc(s.serveSeat),
			absence.Path:        seen,
			quorumview.Path:     http.HandlerFunc(s.serveQuorum),
			wire.Prefix:         leads,
			livefigures.Prefix:  leads,
		},
		Long: []string{BackupPath},
	}, nil
}

// manageQuorum makes the manager of the members of etcd; see quorumManager.run.
func (s *Server) manageQuorum(client kubernetes.Interface) error {
	events, err := newQuorumEvents(s.loopback)
	if err != nil {
		return err
	}
	servers, err := newServers(s.loopback)
	if err != nil {
		return err
	}
	q := newQuorumManager(s.member, servers, events, client, s.quorumSettings, s.log)
	q.know, q.generation, q.restored = s.know, s.settings.Generation, s.settings.Restored
	s.memberMu.Lock()
	defer s.memberMu.Unlock()
	s.quorum = q
	return nil
}

func (s *Server) joinHandler(
	client kubernetes.Interface, hosts *join.Hosts, refused func(why, whose string),
) http.Handler {
	return &join.Handler{
		Client: client, Hosts: hosts,
		Authority: s.identity.signer, Trusted: s.identity.trust, EncryptionKey: s.identity.encryptionKey[:],
		Free: s.member.Free, Generation: s.settings.Generation,
		Servers: func(ctx context.Context) ([]string, error) { return endpoints.Published(ctx, client) },
		Now:     time.Now, Log: s.log, Refused: refused,
	}
}

func (s *Server) clientURL() string {
	c := etcd.Config{ClientPort: s.settings.EtcdClientPort}
	return c.ClientURL()
}

// Config reaches the API of this server with all rights; the engine uses it.
func (s *Server) Config() *rest.Config { return rest.CopyConfig(s.loopback) }

// AgentConfig reaches the API as the agent of this server's own host, over any of the servers.
func (s *Server) AgentConfig() *rest.Config { return s.host.Config() }

// Name is the name of the server and of its host.
func (s *Server) Name() string { return s.settings.Name }

// Endpoint is where others reach the API, as IP:port.
func (s *Server) Endpoint() string { return s.settings.endpoint() }

// Voters counts the servers that vote in etcd, as this one knows; 0 for a standby.
func (s *Server) Voters() int {
	if m := s.current(); m != nil {
		return m.Voters()
	}
	return 0
}

// Wait returns the error that the server cannot go on after, or nil when ctx ends. The caller calls Stop in any case.
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
	if s.stopHost != nil {
		s.stopHost()
		s.hostDone.Wait()
	}
	s.stopBackground()
	s.background.Wait()
	s.leave()
	s.unlock()
}
