package control

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/holdfast-storage/holdfast/control/damaged"
	"github.com/holdfast-storage/holdfast/control/etcd"
)

// startup is the start of a server, with the configuration that it was started with.
type startup struct {
	*Server
	config *Config
}

// run makes the server what it was, what it is to become, or a standby; see Start.
func (s *startup) run(ctx context.Context) error {
	s.quorumSettings = s.config.Quorum
	listener, err := s.prepare(ctx)
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

// sitOrWait takes the seat that the server held when it was stopped, or makes it a standby. Without
// its data it is one as well, and that is not written down: a disk that comes back with the next
// start holds the seat still, unless the others gave it away.
func (s *startup) sitOrWait(ctx context.Context) error {
	switch {
	case s.settings.Seat != seatHeld && (s.settings.Seat != seatTaking || !s.dir.hasLog() || !(mender{s.Server}).find()):
	case s.damage != nil:
	case s.dir.lostDatabase() && s.dir.knowsOthers(s.settings):
		s.log.Warn("this server has lost its copy of the state: asking the other servers for a new one", "missing", s.dir.etcd())
		s.damage, _ = damaged.Read(string(s.dir)) // it is told as the cause
	case (mender{s.Server}).find():
	default:
		return s.sitFirst(ctx)
	}
	return s.openStandby()
}

// sitFirst takes the seat that the server held when it was stopped. It may have been given to
// another one meanwhile.
func (s *startup) sitFirst(ctx context.Context) error {
	if err := s.host.openTrusted(); err != nil {
		s.log.Warn("the identity of this server's host is made anew", "error", err)
	}
	err := s.sit(ctx)
	if errors.As(err, new(*etcd.Damage)) {
		return mender{s.Server}.wait(err)
	}
	if err == nil || ctx.Err() != nil || s.seat == nil || s.host.list() == nil {
		return err
	}
	if errors.Is(context.Cause(s.seat.ctx), errUnseated) || s.unseated(ctx) {
		return s.standUp()
	}
	return err
}

// prepare makes or reads what the server is. Nothing is made before it is known that the ports are
// free.
func (s *startup) prepare(ctx context.Context) (net.Listener, error) {
	stored, err := s.dir.load()
	if err != nil {
		return nil, err
	}
	if err := s.config.check(s.dir, stored); err != nil {
		return nil, err
	}
	if s.settings, err = s.config.resolve(stored); err != nil {
		return nil, err
	}
	if s.settings.bounds, err = boundsOf(s.config); err != nil {
		return nil, err
	}
	if err := s.dir.clearLeft(); err != nil {
		return nil, err
	}
	listener, err := listen(ctx, s.settings, s.log)
	if err != nil {
		return nil, err
	}
	if err := s.become(ctx, stored); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// become makes the server what it shall be: the first one, one that joined, or the one it was.
func (s *startup) become(ctx context.Context, stored *settings) error {
	var err error
	switch {
	case stored != nil && s.config.JoinToken != "":
		err = s.rejoin(ctx, s.config.JoinToken)
	case stored != nil:
	case s.config.Init:
		err = s.dir.makeAuthority()
	default:
		err = s.join(ctx, s.config.JoinToken)
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
	s.equip()
	// A server may wait long for the others.
	s.background.Go(func() { s.identity.keep(s.running, s.log) })
	return nil
}

// equip makes the parts of the server that need its identity.
func (s *startup) equip() {
	s.loopback = s.identity.config()
	s.host = &ownHost{
		dir: s.dir, settings: s.settings, identity: s.identity, loopback: s.loopback, log: s.log, tell: s.config.Host,
	}
	s.following = &follower{settings: s.settings, identity: s.identity, log: s.log, loopback: s.loopback}
	s.backups = &backups{
		dir: s.dir, settings: s.settings, identity: s.identity, log: s.log, member: s.member,
		keep: first(s.config.BackupKeep, defaultBackupKeep), every: first(s.config.BackupEvery, defaultBackupEvery),
	}
}

// check refuses a start that does not say what to do with the data directory, or says what cannot
// be done.
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
