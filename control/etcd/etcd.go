// Package etcd runs one member of the etcd cluster inside this process, and brings new members in.
//
// fence.go checks the token of a leader in the transaction of each write. peers.go and shield.go
// restrict the ports to members. members.go changes the membership; snapshot.go, salvage.go and
// position.go read the data of a member, for backups and to compare copies after a loss.
package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/tlsutil"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"

	"github.com/holdfast-storage/holdfast/control/doors"
)

// User is the common name that certificates of etcd members carry. Certificates with any other name, such as those of
// hosts, are refused by etcd although the same authority signed them.
const User = "holdfast:etcd"

// quota is how large the database may grow, in bytes. A thousand hosts and ten thousand daemons need about a tenth of it;
// etcd's own default is the same (etcd docs, System limits).
const quota = 2 << 30

// Config says how to run the member.
type Config struct {
	// Dir holds the database. It is made if missing.
	Dir string
	// Name of the member, unique among the members.
	Name string
	// Address is the IP that the other members reach this one at. PeerPort is open there; ClientPort on loopback alone.
	Address    string
	PeerPort   int
	ClientPort int
	// Peers bounds the connections of those who are no members. Default: what doors.ForMembers
	// derives from the process's limit.
	Peers doors.Bounds
	// CertFile, KeyFile and CAFile are used towards members and clients, in both directions.
	CertFile, KeyFile, CAFile string
	// Existing is the cluster to join, as "name=peer URL" joined by commas, this member included. Empty for the first
	// member. Once the database exists, it is not looked at.
	Existing string
	Log      *slog.Logger
}

// Member is a running member.
type Member struct {
	etcd *embed.Etcd
	log  *slog.Logger
	stop context.CancelFunc
	done sync.WaitGroup
	// fatal receives the error that etcd cannot go on after.
	fatal chan error
	door  *peerDoor
	// prober asks other members whether they are there.
	prober *http.Client
}

// PeerURL is where the other members reach a member.
func PeerURL(address string, port int) string {
	return "https://" + net.JoinHostPort(address, strconv.Itoa(port))
}

// ClientURL is where the API server on the same machine reaches the member.
func (c *Config) ClientURL() string {
	return "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(c.ClientPort))
}

// Start starts the member. It returns once the member takes part in the cluster and may vote, or when ctx ends.
func Start(ctx context.Context, c Config) (*Member, error) {
	m := &Member{log: c.Log, fatal: make(chan error, 1)}
	config, err := c.embed(m.fatal)
	if err != nil {
		return nil, err
	}
	publishMetrics()
	tlsConfig, err := c.tls().ClientConfig()
	if err != nil {
		return nil, err
	}
	m.prober = &http.Client{Transport: &http.Transport{TLSClientConfig: tlsConfig, IdleConnTimeout: time.Minute}}
	if m.door, err = openPeerDoor(ctx, &c); err != nil {
		return nil, fmt.Errorf("while starting etcd in %s: %w", c.Dir, err)
	}
	config.ListenPeerUrls = []url.URL{m.door.url()}
	m.etcd, err = shielded(m.fatal, func() (*embed.Etcd, error) { return embed.StartEtcd(config) })
	if err != nil {
		m.door.close()
		return nil, fmt.Errorf("while starting etcd in %s: %w", c.Dir, err)
	}
	run, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.done.Go(func() { m.watchErrors(run) })
	if err = m.door.link(); err == nil {
		err = m.waitVoting(ctx)
	}
	if err != nil {
		m.Stop()
		return nil, err
	}
	return m, nil
}

func (c *Config) embed(fatal chan<- error) (*embed.Config, error) {
	peer, err := url.Parse(PeerURL(c.Address, c.PeerPort))
	if err != nil {
		return nil, err
	}
	client, err := url.Parse(c.ClientURL())
	if err != nil {
		return nil, err
	}
	config := embed.NewConfig()
	config.Name, config.Dir = c.Name, c.Dir
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	config.PeerTLSInfo, config.ClientTLSInfo = c.tls(), c.tls()
	// embed puts its own least version, which is 1.2, in the place of that of the two.
	config.TlsMinVersion = string(tlsutil.TLSVersion13)
	config.InitialCluster, config.ClusterState = c.Name+"="+peer.String(), embed.ClusterStateFlagNew
	if c.Existing != "" {
		config.InitialCluster, config.ClusterState = c.Existing, embed.ClusterStateFlagExisting
	}
	config.QuotaBackendBytes = quota
	// Who becomes a member is decided by driver/etcd, which looks further than etcd's own check: that one would not let a
	// dead member be replaced before it is removed.
	config.StrictReconfigCheck = false
	config.MaxLearners = 2
	// Twice etcd's defaults: half the heartbeats, which are most of what an idle server does. A new etcd leader is still
	// there before the lease of the old one's engine has expired.
	config.TickMs, config.ElectionMs = 200, 2000
	config.EnableGRPCGateway = false
	// Only the command line flag has this default; without it, each request is a slow one.
	config.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	config.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.ChainUnaryInterceptor(closing, fenced)}
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newLogger(c.Log, fatal))
	return config, config.Validate()
}

// tls asks for certificates of etcd members alone. The address that a member comes from is not compared with its
// certificate: on a machine with several networks it is not known beforehand.
func (c *Config) tls() transport.TLSInfo {
	return transport.TLSInfo{
		CertFile: c.CertFile, KeyFile: c.KeyFile, TrustedCAFile: c.CAFile,
		ClientCertAuth: true, AllowedCNs: []string{User}, SkipClientSANVerify: true, MinVersion: tls.VersionTLS13,
	}
}

// waitVoting waits until the member is ready, and is a voting one: a learner serves no requests.
func (m *Member) waitVoting(ctx context.Context) error {
	select {
	case <-m.etcd.Server.ReadyNotify():
	case <-m.etcd.Server.StopNotify():
		return errors.New("etcd stopped while it was starting; its log says why")
	case err := <-m.fatal:
		return err
	case <-ctx.Done():
		return fmt.Errorf("while waiting for a quorum of the etcd members %v: %w", m.Names(), context.Cause(ctx))
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for m.etcd.Server.IsLearner() {
		select {
		case <-tick.C:
		case err := <-m.fatal:
			return err
		case <-ctx.Done():
			return fmt.Errorf("while waiting to be promoted from learner to member of etcd: %w", context.Cause(ctx))
		}
	}
	return nil
}

func (m *Member) watchErrors(ctx context.Context) {
	select {
	case err := <-m.etcd.Err():
		m.fail(fmt.Errorf("etcd cannot continue: %w", err))
	case <-m.etcd.Server.StopNotify():
		m.fail(errors.New("etcd stopped: the member was removed from the cluster, or its disk failed; its log says which"))
	case <-ctx.Done():
	}
}

func (m *Member) fail(err error) {
	select {
	case m.fatal <- err:
	default: // An earlier error is waiting to be read, and says more.
	}
}

// Failed receives the error that ended the member, if one does.
func (m *Member) Failed() <-chan error { return m.fatal }

// stopTimeout bounds a stop. After an error that etcd cannot go on after, a part of it may be waited for that is gone.
const stopTimeout = 10 * time.Second

// Stop ends the member; its leadership is handed over first. It may be called once.
func (m *Member) Stop() { m.end(stopTimeout) }

// Abandon ends a member that has failed: there is nothing left to end in order.
func (m *Member) Abandon() { m.end(time.Second) }

func (m *Member) end(timeout time.Duration) {
	m.stop()
	m.done.Wait()
	m.prober.CloseIdleConnections()
	if !within(timeout, m.close) {
		m.log.Warn("etcd did not end in order", "waited", timeout)
	}
	m.door.close()
}

func (m *Member) close() {
	select {
	case <-m.etcd.Server.ReadyNotify():
	default:
		// Close would wait for the servers of clients, which wait for the member to be ready.
		m.etcd.Server.HardStop()
	}
	m.etcd.Close()
}

// Settle waits for what used a member to end. After an error that etcd cannot go on after that has
// an end: the part of it that wrote to the disk is gone with its locks, and a backup, say, waits for
// them for ever.
func Settle(failed bool, end func()) {
	if !failed {
		end()
		return
	}
	within(stopTimeout, end)
}

// within says whether f returns in time. It goes on by itself if it does not.
func within(timeout time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
