package control

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/kubernetes"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/apiserver"
	"github.com/holdfast-storage/holdfast/control/doors"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/etcd"
	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/control/led"
	"github.com/holdfast-storage/holdfast/control/members"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/control/quorumlost"
	"github.com/holdfast-storage/holdfast/control/quorumview"
	"github.com/holdfast-storage/holdfast/control/sight"
	"github.com/holdfast-storage/holdfast/internal/absence"
	"github.com/holdfast-storage/holdfast/internal/livefigures"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

func (t *seat) startAPI(ctx context.Context, listener *doors.Listener) error {
	config, err := t.apiConfig(listener)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	if t.api, err = apiserver.New(*config); err != nil {
		return errors.Join(err, listener.Close())
	}
	run, stop := context.WithCancel(context.Background())
	t.stopAPI, t.apiDone = stop, make(chan error, 1)
	go func() { t.apiDone <- t.api.Run(run) }()
	return t.orFailure(ctx, t.member.Failed(), t.api.WaitReady)
}

// orFailure does a step of the start. It ends early where the member of etcd fails meanwhile: then
// the step would wait for what never comes.
func (t *seat) orFailure(ctx context.Context, failed <-chan error, step func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- step(ctx) }()
	defer stop()
	select {
	case err := <-done:
		return err
	case fatal := <-failed:
		t.abandoned = true
		stop()
		<-done
		return fatal
	}
}

func (t *seat) apiConfig(listener *doors.Listener) (*apiserver.Config, error) {
	s, member := t.server, t.member
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
	if t.revoked, err = access.NewRevocation(s.loopback); err != nil {
		return nil, err
	}
	if err := t.manageQuorum(); err != nil {
		return nil, err
	}
	rights := access.NewAuthorizer(hostFacts)
	t.lost = &quorumlost.Watcher{Member: member}
	seen := &sight.Book{Running: t.revoked.Running, Verify: s.identity.credentials.VerifyOptions, Now: time.Now}
	renewer := &join.Renewer{Authority: s.identity.signer, Now: time.Now, Log: s.log}
	listener.Broken = seen.Broken
	seats := &seatHandler{
		settings: s.settings, client: client, member: member, quorum: t.quorum, revoked: t.revoked, following: s.following,
	}
	ready := func(r *http.Request) error { return member.Ready(r.Context()) }
	leads := &led.Handler{Leader: &s.Leads, Server: s.settings.Name, Client: client, Transport: s.identity.loopback}
	return &apiserver.Config{
		Listener: listener, Credentials: s.identity.credentials, Loopback: s.loopback,
		Etcd: apiserver.Etcd{
			URL:      clientURL(s.settings),
			CertFile: pki.CertFile(s.dir.pki(), "etcd"), KeyFile: pki.KeyFile(s.dir.pki(), "etcd"),
			CAFile: filepath.Join(s.dir.pki(), trustFile),
		},
		EncryptionKey: s.identity.encryptionKey,
		Authorizer:    rights,
		Rules:         rights.Rules,
		Admission:     access.Admissions(facts),
		Checks:        []healthz.HealthChecker{healthz.NamedCheck("etcd", ready)},
		Guard:         func(next http.Handler) http.Handler { return t.lost.Guard(t.revoked.Guard(next)) },
		Refused:       seen.Refused,
		Open:          map[string]http.Handler{join.Path: t.joinHandler(client, hosts, listener.Refused)},
		Known: map[string]http.Handler{
			endpoints.Path: endpoints.Handler(client), access.RenewPath: renewer,
			endpoints.TrustPath: endpoints.TrustHandler(s.identity.trust, s.following.noteBelief(hosts)),
			BackupPath:          backupHandler{s.backups, seats.hostGone},
			SeatPath:            seats,
			absence.Path:        seen,
			quorumview.Path:     t.quorumStatus(),
			wire.Prefix:         leads,
			livefigures.Prefix:  leads,
		},
		Long: []string{BackupPath},
	}, nil
}

// manageQuorum makes the manager of the members of etcd.
func (t *seat) manageQuorum() error {
	s := t.server
	q, err := members.New(members.Config{
		Member: t.member, REST: s.loopback, Settings: s.quorumSettings, Know: s.host.know,
		Generation: s.settings.Generation, Restored: s.settings.Restored, Log: s.log,
	})
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.quorum = q
	return nil
}

func (t *seat) joinHandler(
	client kubernetes.Interface, hosts *join.Hosts, refused func(why, whose string),
) http.Handler {
	s := t.server
	return &join.Handler{
		Client: client, Hosts: hosts,
		Authority: s.identity.signer, Trusted: s.identity.trust, EncryptionKey: s.identity.encryptionKey[:],
		Free: t.member.Free, Generation: s.settings.Generation,
		Servers: func(ctx context.Context) ([]string, error) { return endpoints.Published(ctx, client) },
		Now:     time.Now, Log: s.log, Refused: refused,
	}
}

func clientURL(s *settings) string {
	c := etcd.Config{ClientPort: s.EtcdClientPort}
	return c.ClientURL()
}
