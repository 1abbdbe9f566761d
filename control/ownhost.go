package control

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/control/pki"
)

// ownHost is the host that a server is, too: its identity, by which its agent works, and its list
// of the servers, by which the server finds the others. A server has one identity as a host while
// it runs, with a seat or without. The methods of ownHost that say so may run at any time; Start,
// the goroutine that serves, and Stop call the others, one after another.
type ownHost struct {
	dir      dataDir
	settings *settings
	identity *identity
	loopback *rest.Config
	log      *slog.Logger
	// tell starts the agent; nil where there is none.
	tell func(name string, config *rest.Config)

	mu      sync.Mutex
	servers *endpoints.Servers // nil until the identity was opened or made
	stopRun context.CancelFunc
	running sync.WaitGroup
}

// list is the list of the servers with the identity of the host, or nil. It may be called at any
// time.
func (h *ownHost) list() *endpoints.Servers {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.servers
}

// others are the addresses of the other servers that this one knows, as IP:port. It may be called
// at any time.
func (h *ownHost) others() []string {
	list := h.list()
	if list == nil {
		return nil
	}
	return othersIn(list, h.settings.endpoint())
}

// othersIn are the addresses in a list of servers but the given one.
func othersIn(list *endpoints.Servers, own string) (others []string) {
	for _, server := range list.Addresses() {
		if server != own {
			others = append(others, server)
		}
	}
	return others
}

// key is the fingerprint of the host's key, as its Host has it; empty without an identity. It may
// be called at any time.
func (h *ownHost) key() string {
	list := h.list()
	if list == nil {
		return ""
	}
	return pki.Fingerprint(list.Certificate().Cert)
}

// know keeps where the other servers are, for a start without them. It may be called at any time
// once there is an identity.
func (h *ownHost) know(servers []string) {
	host := h.list()
	if err := host.Set(servers); err != nil {
		h.log.Warn("the list of servers could not be written", "error", err)
	}
}

// present makes the server's own Host and its identity, if they are not there.
func (h *ownHost) present(ctx context.Context, client kubernetes.Interface) error {
	key, err := h.dir.hostKey()
	if err != nil {
		return fmt.Errorf("while reading the key of this server's host in %s: %w; %s", h.dir.host(), err, cureOwn)
	}
	err = h.register(ctx, key)
	if join.Refused(err) && endpoints.Exists(h.dir.host()) {
		// The server itself needs no Host, and comes up without it.
		h.log.Warn("the servers refuse the agent of this server", "error", err)
	} else if err != nil {
		return err
	}
	if h.list() == nil {
		servers, err := h.make(ctx, client, key)
		if err != nil {
			return err
		}
		h.use(servers)
	}
	h.list().Prefer(h.settings.endpoint())
	return nil
}

// open opens the identity that the host got when the server joined or held a seat.
func (h *ownHost) open() error {
	if h.list() != nil {
		return nil
	}
	servers, err := endpoints.Open(h.dir.host())
	if err == nil {
		h.use(servers)
	}
	return err
}

// openTrusted opens the identity if there is one that is good.
func (h *ownHost) openTrusted() error {
	if h.list() != nil || !endpoints.Exists(h.dir.host()) {
		return nil
	}
	servers, err := endpoints.Open(h.dir.host())
	if err == nil && h.trusts(servers) {
		h.use(servers)
	}
	return err
}

// use keeps the list of servers fresh until stop, and starts the agent.
func (h *ownHost) use(servers *endpoints.Servers) {
	h.mu.Lock()
	h.servers = servers // The first seat asks others while it is being taken.
	h.mu.Unlock()
	servers.Every = h.settings.refresh
	run, stop := context.WithCancel(context.Background())
	h.stopRun = stop
	h.running.Go(func() { servers.Run(run, h.log) })
	if servers.Avoid(h.settings.endpoint()); h.tell != nil {
		h.tell(h.settings.Name, servers.Config())
	}
}

// stop ends what use began.
func (h *ownHost) stop() {
	if h.stopRun != nil {
		h.stopRun()
		h.running.Wait()
	}
}

func (h *ownHost) register(ctx context.Context, key *ecdsa.PrivateKey) error {
	keyID, err := pki.KeyID(key.Public())
	if err != nil {
		return err
	}
	hosts, err := join.NewHosts(h.loopback)
	if err != nil {
		return err
	}
	register := hosts.Register
	if h.settings.Unpresented {
		register = hosts.Claim
	}
	if err := register(ctx, h.settings.Name, keyID); err != nil {
		return err
	}
	return hosts.MarkServer(ctx, h.settings.Name)
}

// trusts says whether an identity of the host is good: it has not expired, and an authority that
// this server trusts signed it. After a restore from another server's backup, or one of before the
// host was replaced, it is not.
func (h *ownHost) trusts(servers *endpoints.Servers) bool {
	cert := servers.Certificate().Cert
	signed := func(by *x509.Certificate) bool { return cert.CheckSignatureFrom(by) == nil }
	return servers.Expired(time.Now()) == "" && slices.ContainsFunc(h.identity.trust(), signed)
}

// make opens the identity of the host, after it made a new one if there is none that is good.
func (h *ownHost) make(
	ctx context.Context, client kubernetes.Interface, key *ecdsa.PrivateKey,
) (*endpoints.Servers, error) {
	if endpoints.Exists(h.dir.host()) {
		servers, err := endpoints.Open(h.dir.host())
		if err == nil && h.trusts(servers) {
			return servers, nil
		}
	}
	cert, err := h.identity.signer().Issue(join.HostLeaf(h.settings.Name), key.Public(), time.Now())
	if err != nil {
		return nil, err
	}
	published, err := endpoints.Published(ctx, client)
	if err != nil {
		return nil, err
	}
	pair := &pki.Pair{Cert: cert, Key: key}
	if err := endpoints.Save(h.dir.host(), pki.EncodeBundle(h.identity.trust()), pair, published); err != nil {
		return nil, err
	}
	return endpoints.Open(h.dir.host())
}
