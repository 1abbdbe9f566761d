package doctor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/control/quorumview"
	"github.com/holdfast-storage/holdfast/platform/kube"
	"github.com/holdfast-storage/holdfast/platform/store"
)

// Source is where facts come from.
type Source struct {
	// Config and Client reach the API as an administrator.
	Config *rest.Config
	Client client.Client
	// DataDir is Holdfast's on this machine.
	DataDir string
	Version string
	// Timeout is how long an answer takes at most where nothing is wrong, and Patience how long one
	// is waited for: a server with much to do is slow, and not down. Without Patience it is
	// Timeout.
	Timeout, Patience time.Duration
}

// patience bounds a question.
func (s *Source) patience() time.Duration { return max(s.Timeout, s.Patience) }

// Look finds out the facts. What cannot be found out is said in them; unreachable says why there is no Config or Client.
func Look(ctx context.Context, s Source, unreachable error) *Facts {
	f := &Facts{Now: time.Now(), Version: s.Version, DataDir: s.DataDir, Unreachable: unreachable}
	f.lookHere()
	switch {
	case unreachable == nil:
		s.lookOver(ctx, f)
	case f.Role == "agent":
		s.lookAsHost(ctx, f)
	}
	return f
}

// lookOver finds out what the API tells, or the servers themselves where it cannot be reached.
func (s *Source) lookOver(ctx context.Context, f *Facts) {
	s.ownCertificate(f)
	if f.Unreachable = s.lists(ctx, f); f.Unreachable != nil {
		s.knownServers(ctx, f)
		return
	}
	if f.Kubernetes {
		s.operator(ctx, f)
		return
	}
	s.servers(ctx, f)
	s.quorum(ctx, f)
}

// operator reads the Lease of the operator that leads.
func (s *Source) operator(ctx context.Context, f *Facts) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	if lease, err := kube.LeaderLease(ctx, s.Client); err != nil {
		f.LeaseErr = err
	} else {
		f.Lease = lease
	}
}

// lookAsHost asks the servers that an agent knows as its host.
func (s *Source) lookAsHost(ctx context.Context, f *Facts) {
	f.AsHost = true
	dir := control.HostDir(f.DataDir)
	s.Config = &rest.Config{TLSClientConfig: rest.TLSClientConfig{
		ServerName: endpoints.ServerName, CAFile: pki.CertFile(dir, "ca"), CertFile: pki.CertFile(dir, "host"), KeyFile: pki.KeyFile(dir, "host"),
	}}
	s.knownServers(ctx, f)
}

// ownCertificate is the one that these questions are asked with.
func (s *Source) ownCertificate(f *Facts) {
	if certs, err := pki.ParseBundle(s.Config.CertData); err == nil {
		f.Local.Certificates = append(f.Local.Certificates, Certificate{
			ownCertificate, certs[0].NotBefore,
			certs[0].NotAfter, false,
		})
	}
}

// lists reads everything that is declared.
func (s *Source) lists(ctx context.Context, f *Facts) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	var hosts api.HostList
	var clusters api.StorageClusterList
	var statuses api.StorageStatusList
	var daemons api.DaemonList
	var actions api.ActionList
	for _, list := range []client.ObjectList{&hosts, &clusters, &statuses, &daemons, &actions} {
		if err := s.Client.List(ctx, list); err != nil {
			return err
		}
	}
	resources, err := store.ReadResources(ctx, s.Client)
	if err != nil {
		return err
	}
	f.Resources = resources
	if f.Kubernetes, err = kube.IsHome(ctx, s.Client); err != nil {
		return err
	}
	f.Hosts, f.Clusters, f.Statuses, f.Daemons, f.Actions = hosts.Items, clusters.Items, statuses.Items, daemons.Items, actions.Items
	if f.Kubernetes {
		return nil
	}
	return s.tokens(ctx, f)
}

// tokens reads the join tokens. They are Secrets, which not everybody may read who may read all else.
func (s *Source) tokens(ctx context.Context, f *Facts) error {
	var tokens corev1.SecretList
	err := s.Client.List(ctx, &tokens, client.InNamespace(api.SystemNamespace), client.MatchingFields{"type": "holdfast.io/join-token"})
	if apierrors.IsForbidden(err) {
		f.TokensErr = err
		return nil
	}
	if err != nil {
		return err
	}
	for i := range tokens.Items {
		t := &tokens.Items[i]
		expires, _ := time.Parse(time.RFC3339, string(t.Data["expires"])) // one that cannot be read has expired
		f.Tokens = append(f.Tokens, Token{t.Name, string(t.Data["role"]), expires, len(t.Data["usedBy"]) > 0})
	}
	return nil
}

// servers asks each server for itself.
func (s *Source) servers(ctx context.Context, f *Facts) {
	var list corev1.ConfigMap
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: api.SystemNamespace, Name: "servers"}, &list); err != nil {
		f.Local.Problems = append(f.Local.Problems, fmt.Sprintf("the list of servers cannot be read: %v", err))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(list.Data)) {
		f.Servers = append(f.Servers, Server{Name: name, Address: list.Data[name]})
	}
	s.askAll(ctx, f)
}

// askAll asks all of the servers at once: each that is silent takes its time.
func (s *Source) askAll(ctx context.Context, f *Facts) {
	told := make([]database, len(f.Servers))
	var all sync.WaitGroup
	for i := range f.Servers {
		all.Go(func() { told[i], f.Servers[i].Err = s.ask(ctx, &f.Servers[i], f.AsHost) })
	}
	all.Wait()
	for _, d := range told {
		f.Database, f.Quota = max(f.Database, d.size), max(f.Quota, d.quota)
	}
}

// database is what a server says of its own.
type database struct{ size, quota int64 }

// knownServers asks the servers that this machine's agent knows of, each for itself: without the API nobody has their names.
func (s *Source) knownServers(ctx context.Context, f *Facts) {
	for _, address := range endpoints.Known(filepath.Join(f.DataDir, "host")) { // none where no agent runs, or role has told why
		f.Servers = append(f.Servers, Server{Name: address, Address: address})
	}
	s.askAll(ctx, f)
}

// quorum asks whoever leads etcd for its members.
func (s *Source) quorum(ctx context.Context, f *Facts) {
	ctx, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	f.Quorum, f.QuorumErr = quorumview.Ask(ctx, s.Config)
}

// ask looks whether a server is ready, at its clock and certificate, and at its database.
func (s *Source) ask(ctx context.Context, server *Server, asHost bool) (d database, err error) {
	server.Own = isOwn(server.Address)
	var reached atomic.Bool // the dialling may go on when the answer is not waited for any more
	defer func() { server.Reached = reached.Load() }()
	config := rest.CopyConfig(s.Config)
	config.Host, config.Dial = "https://"+server.Address, s.noting(&reached) // this one, and no other in its place
	config.Timeout = 0                                                       // get has its own
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return d, err
	}
	defer c.CloseIdleConnections()
	sent := time.Now()
	path := "/readyz/etcd"
	if asHost {
		path = "/readyz" // it says the same, and not why
	}
	response, body, err := s.get(ctx, c, config.Host+path) //nolint:bodyclose // get has read and closed it
	server.Took = time.Since(sent)
	if err != nil {
		return d, err
	}
	if at, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		server.Skew, server.Known = at.Sub(sent.Add(time.Since(sent)/2)).Round(time.Second), true
	}
	if response.TLS != nil && len(response.TLS.PeerCertificates) > 0 {
		server.End = response.TLS.PeerCertificates[0].NotAfter
	}
	if response.StatusCode == http.StatusUnauthorized {
		server.Refuses = true
		return d, errRefused
	}
	if response.StatusCode != http.StatusOK {
		if asHost {
			return d, fmt.Errorf("it answers %s", response.Status)
		}
		return d, fmt.Errorf("%s", strings.TrimSpace(strings.TrimPrefix(string(body), "internal server error: ")))
	}
	response, body, err = s.get(ctx, c, config.Host+"/metrics") //nolint:bodyclose // get has read and closed it
	if err == nil && response.StatusCode == http.StatusOK {
		d = database{metric(body, "etcd_mvcc_db_total_size_in_bytes"), metric(body, "etcd_server_quota_backend_bytes")}
	}
	return d, nil
}

// errRefused is why a server is not known to be ready that does not accept the certificate of who asks.
var errRefused = errors.New("it runs, but refuses the certificate of this client")

// noting dials, and notes whether the machine is there.
func (s *Source) noting(reached *atomic.Bool) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{Timeout: s.Timeout}).DialContext(ctx, network, address)
		if err == nil || errors.Is(err, syscall.ECONNREFUSED) {
			reached.Store(true)
		}
		return c, err
	}
}

// isOwn says whether an address, as IP:port, is one of this machine.
func isOwn(address string) bool {
	host, _, _ := net.SplitHostPort(address) // what is no address is nobody's
	all, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(all, func(a net.Addr) bool {
		network, ok := a.(*net.IPNet)
		return ok && network.IP.Equal(net.ParseIP(host))
	})
}

// get reads an answer whole. The body of the response is closed.
func (s *Source) get(ctx context.Context, c *http.Client, url string) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, nil, err
	}
	response, err := c.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 16<<20))
	return response, body, err
}

// metric reads a metric without labels; it is zero when it is not there.
func metric(text []byte, name string) int64 {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			number, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0
			}
			return int64(number)
		}
	}
	return 0
}
