package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control/doors"
	"github.com/holdfast-storage/holdfast/control/join"
	quorum "github.com/holdfast-storage/holdfast/driver/etcd"
	"github.com/holdfast-storage/holdfast/internal/ownaddress"
)

// The ports that are used where Config has none.
const (
	DefaultAPIPort        = 7440
	DefaultEtcdPeerPort   = 7441
	DefaultEtcdClientPort = 7442
)

// Config says what server to run. All but DataDir may be empty: what the data directory says counts then, and for a new server
// the defaults.
type Config struct {
	// DataDir holds everything of the server.
	DataDir string
	// Name of the server and its host. Default: the machine's host name, up to the first dot.
	Name string
	// Address is the IP that hosts and other servers reach this server at. Default: the machine's first global unicast
	// address.
	Address string
	// APIPort is open on all addresses, EtcdPeerPort on Address, EtcdClientPort on loopback.
	APIPort, EtcdPeerPort, EtcdClientPort int
	// Init makes a new control plane, of which this is the first server. It is refused when there is one in DataDir.
	Init bool
	// JoinToken joins this server to an existing control plane. When DataDir holds a server already, it is used only if the others say
	// that its host was removed.
	JoinToken string
	// AskRemoved is how long a server with data and a JoinToken asks the others, while none can say whether its host was removed, before it
	// starts as what it was; and a restore asks others that run and have no quorum. Default: 10 s.
	AskRemoved time.Duration
	// CertificateLifetime is how long the certificates that this server signs are valid. Default: a year.
	CertificateLifetime time.Duration
	// BackupEvery is how often a backup is taken into the data directory, and BackupKeep how many of them are kept. Default: 24,
	// one an hour.
	BackupEvery time.Duration
	BackupKeep  int
	// Refresh is how often the server's own host asks the servers what changed of them. Default: a minute.
	Refresh time.Duration
	// Quorum says how long a dead member is waited for; see driver/etcd.
	Quorum quorum.Settings
	// Connections bounds those to the API. Default: what doors.ForDescriptors derives from the
	// process's limit.
	Connections doors.Bounds
	// Host is called once the agent of this server's host can reach the API over any of the
	// servers, which may be long before this one is ready. When it is set, a start that fails
	// leaves that agent some time.
	Host func(name string, config *rest.Config) `json:"-"`
	// Log receives what the server has to tell. Default: slog.Default().
	Log *slog.Logger
}

// resolve completes the configuration by what the data directory says and the defaults, and says what is wrong with it.
func (c *Config) resolve(stored *settings) (*settings, error) {
	s := &settings{
		Name: c.Name, Address: c.Address,
		APIPort: c.APIPort, EtcdPeerPort: c.EtcdPeerPort, EtcdClientPort: c.EtcdClientPort,
		lifetime: c.CertificateLifetime, refresh: c.Refresh,
		askRemoved: first(c.AskRemoved, defaultAskRemoved),
	}
	if stored == nil {
		stored = &settings{}
	} else if err := c.unchanged(stored); err != nil {
		return nil, err
	}
	s.Seat = stored.Seat
	s.Existing, s.Generation, s.Unpresented = stored.Existing, stored.Generation, stored.Unpresented
	s.Rejoining, s.Restored = stored.Rejoining, stored.Restored
	s.APIPort = first(s.APIPort, stored.APIPort, DefaultAPIPort)
	s.EtcdPeerPort = first(s.EtcdPeerPort, stored.EtcdPeerPort, DefaultEtcdPeerPort)
	s.EtcdClientPort = first(s.EtcdClientPort, stored.EtcdClientPort, DefaultEtcdClientPort)
	s.Name, s.Address = first(s.Name, stored.Name), first(s.Address, stored.Address)
	s.Was = s.knownBy(stored)
	var err error
	if s.Name == "" {
		if s.Name, err = DefaultName(); err != nil {
			return nil, err
		}
	}
	if s.Address == "" {
		if s.Address, err = DefaultAddress(c.others()); err != nil {
			return nil, err
		}
	}
	if problems := validation.IsDNS1123Label(s.Name); len(problems) > 0 {
		return nil, fmt.Errorf("the name %q cannot be used (--name): %s", s.Name, strings.Join(problems, "; "))
	}
	if net.ParseIP(s.Address) == nil {
		return nil, fmt.Errorf("the address %q (--address) is not an IP address", s.Address)
	}
	return s, nil
}

// unchanged refuses what etcd's members know of the server and cannot be changed by starting it differently.
func (c *Config) unchanged(stored *settings) error {
	switch {
	case c.Name != "" && c.Name != stored.Name:
		return fmt.Errorf("the data directory %s belongs to the server %s, not %s: leave out --name, or choose another directory with --data-dir",
			c.DataDir, stored.Name, c.Name)
	case c.Address != "" && c.Address != stored.Address && stored.Seat == seatTaking:
		return fmt.Errorf("the server %s is becoming a member of etcd with the address %s, which cannot be changed to "+
			"%s meanwhile: start it with the former address until its log says that it holds one",
			stored.Name, stored.Address, c.Address)
	case c.EtcdPeerPort != 0 && c.EtcdPeerPort != stored.EtcdPeerPort:
		return fmt.Errorf("the server %s was made with the etcd peer port %d, which the other servers know: it cannot be changed to %d",
			stored.Name, stored.EtcdPeerPort, c.EtcdPeerPort)
	}
	return nil
}

func first[T comparable](values ...T) T {
	var zero T
	for _, v := range values {
		if v != zero {
			return v
		}
	}
	return zero
}

// others are the servers of the control plane that this server joins, as its token has them.
func (c *Config) others() []string {
	t, err := join.Parse(c.JoinToken)
	if err != nil {
		return nil
	}
	return t.Servers
}

// DefaultName is the machine's host name up to the first dot, in lower case.
func DefaultName() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("while asking for the host name; give one with --name: %w", err)
	}
	name, _, _ = strings.Cut(name, ".")
	return strings.ToLower(name), nil
}

// DefaultAddress is the machine's address from which it reaches the given servers (IP:port), else
// that of its default route, else its first unicast address, IPv4 before IPv6.
func DefaultAddress(servers []string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	address := ownaddress.Machine{}.Any(ctx, servers)
	if address == "" {
		return "", errors.New("this machine has no reachable address: set one with --address")
	}
	return address, nil
}
