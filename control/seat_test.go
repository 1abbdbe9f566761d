package control_test

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/backup"
	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/control/quorumview"
	quorum "github.com/holdfast-storage/holdfast/driver/etcd"
	"github.com/holdfast-storage/holdfast/test/quorumlog"
)

// crew is a control plane of several servers, numbered from 0.
type crew struct {
	t       *testing.T
	configs []control.Config
	servers []*control.Server
	stops   []func()
}

// newCrew starts servers, of which up to three hold a seat.
func newCrew(t *testing.T, name string, count int, options ...func(*control.Config)) *crew {
	t.Helper()
	c := &crew{t: t}
	for range count {
		c.add(name, options...)
	}
	if count >= 3 {
		seated(t, 3, c.servers[:3]...)
	}
	return c
}

// add starts one more server. The first one makes the control plane.
func (c *crew) add(name string, options ...func(*control.Config)) {
	c.t.Helper()
	i := len(c.servers)
	config := newConfig(c.t, c.t.TempDir(), fmt.Sprintf("%s%d", name, i))
	config.Quorum = quorum.Settings{Grace: 2 * time.Second, JoinGrace: 30 * time.Second, RetryAfter: time.Second, Confirm: 2}
	config.AskRemoved = 3 * time.Minute // amid an election on a busy machine
	for _, option := range options {
		option(&config)
	}
	if config.Init = i == 0; i > 0 {
		config.JoinToken = newToken(c.t, c.servers[0], join.RoleServer)
	}
	c.configs = append(c.configs, config)
	c.servers, c.stops = append(c.servers, nil), append(c.stops, nil)
	c.start(i)
	c.heard(0, i, metav1.ConditionTrue)
}

func (c *crew) start(i int) {
	c.t.Helper()
	c.servers[i], c.stops[i] = start(c.t, c.configs[i])
	c.configs[i].Init, c.configs[i].JoinToken = false, ""
}

// heard says, over a server, whether another one's agent is heard, which nobody else does here. On a busy machine a member that
// lives may be silent for longer than the grace.
func (c *crew) heard(over, i int, status metav1.ConditionStatus) {
	c.t.Helper()
	admin := newClient(c.t, c.servers[over].Config())
	eventually(c.t, func() error {
		host := &api.Host{}
		if err := admin.Get(c.t.Context(), key("", c.configs[i].Name), host); err != nil {
			return err
		}
		meta.SetStatusCondition(&host.Status.Conditions, metav1.Condition{
			Type: api.HostAgentConnected, Status: status, Reason: "Test", Message: "says the test",
		})
		return admin.Status().Update(c.t.Context(), host)
	})
}

// standby waits until a server is one: no etcd, no API, and its old data moved aside.
func (c *crew) standby(i int) {
	c.t.Helper()
	eventually(c.t, func() error {
		if n := c.servers[i].Voters(); n != 0 {
			return fmt.Errorf("%s still knows of %d members", c.servers[i].Name(), n)
		}
		_, err := os.Stat(filepath.Join(c.configs[i].DataDir, "etcd.removed"))
		return err
	})
	for _, port := range []int{c.configs[i].APIPort, c.configs[i].EtcdPeerPort, c.configs[i].EtcdClientPort} {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			conn.Close()
			c.t.Errorf("%s still serves port %d", c.servers[i].Name(), port)
		}
	}
}

// events are the control plane's own.
func events(t *testing.T, s *control.Server) []api.ClusterEvent {
	t.Helper()
	var list api.ClusterEventList
	if err := newClient(t, s.Config()).List(t.Context(), &list, client.MatchingLabels{api.LabelCluster: quorum.ControlPlane}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// seats tells in short how a server got and lost its seat.
func seats(t *testing.T, s *control.Server, name string) string {
	t.Helper()
	var short []string
	for _, e := range events(t, s) {
		if e.Object == "host/"+name {
			short = append(short, strings.TrimPrefix(e.Code, "QUORUM_MEMBER_"))
		}
	}
	return strings.Join(short, " ")
}

// toldOnce waits until the control plane's events tell what is, and fails the test if one of them tells what was told before, or a
// number is missing.
func (c *crew) toldOnce(over int) {
	c.t.Helper()
	s := c.servers[over]
	eventually(c.t, func() error {
		status, err := quorumview.Ask(timeout(c.t), s.Config())
		if err != nil {
			return err
		}
		story, err := quorumlog.Follow(events(c.t, s), c.configs[0].Name)
		if err != nil {
			c.t.Fatal(err)
		}
		votes := map[string]bool{}
		for _, m := range status.Members {
			votes[m.Name] = m.Voter
		}
		if !maps.Equal(votes, story.Votes) || story.Degraded != (status.Degraded != "") {
			return fmt.Errorf("the members are %v, and were told as %v; %q, and that it is degraded was told: %t",
				votes, story.Votes, status.Degraded, story.Degraded)
		}
		return nil
	})
}

// TestQuorum_replaced: a dead member is replaced by the standby. When its server is back it finds that out, throws its data
// away, and is a standby, which takes a seat again when another server goes into maintenance; that one's member is stopped.
func TestQuorum_replaced(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "m", 4)
	c.stops[1]()
	c.heard(0, 1, metav1.ConditionFalse)
	seated(t, 3, c.servers[0], c.servers[2], c.servers[3])
	c.start(1)
	c.heard(0, 1, metav1.ConditionTrue)
	c.standby(1)
	c.toldOnce(0)

	admin := newClient(t, c.servers[3].Config())
	host := &api.Host{}
	if err := admin.Get(t.Context(), key("", "m0"), host); err != nil {
		t.Fatal(err)
	}
	host.Spec.Mode = api.HostMaintenance
	if err := admin.Update(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	c.standby(0)
	seated(t, 3, c.servers[1], c.servers[2], c.servers[3])
	newNamespace(t, newClient(t, c.servers[1].Config()))
	status, err := quorumview.Ask(timeout(t), c.servers[1].Config())
	if err != nil {
		t.Fatal(err)
	}
	c.toldOnce(1)
	if got := seats(t, c.servers[1], "m1"); got != "ADDED PROMOTED REMOVED ADDED REPLACED" {
		t.Errorf("the server that was dead got and lost its seat like this: %s", got)
	}
	if len(status.Members) != 3 || status.Want != 3 || status.Spare != 1 || status.DatabaseSize == 0 {
		t.Errorf("the quorum says of itself %+v", status)
	}
}

// TestQuorum_standbyRestored: one of two servers holds the state, and is lost. The other one, a standby, is restored from the backup
// that it copied.
// The first one comes back with its old data, and finds that it counts no more before it serves anybody.
func TestQuorum_standbyRestored(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "b", 2, func(config *control.Config) { config.BackupEvery = time.Second })
	ns := newNamespace(t, newClient(t, c.servers[0].Config()))
	putSecret(t, newClient(t, c.servers[0].Config()), ns, "kept")
	file := copied(t, c.configs[1], time.Now())
	knowsServers(t, c.configs[0], 2)
	c.stops[1]()
	wantNoOverthrow(t, c.configs[1], control.RestoreConfig{File: file})
	c.stops[0]()
	if _, err := restoreInto(t, c.configs[1], file); err != nil {
		t.Fatal(err)
	}
	c.start(1)
	wantSecret(t, newClient(t, c.servers[1].Config()), ns, "kept", true)
	c.start(0)
	if c.servers[0].Voters() != 0 {
		t.Error("it serves with its old data")
	}
	c.standby(0)
}

// copied waits until a standby has copied a backup that was taken after a time, and returns it.
func copied(t *testing.T, c control.Config, after time.Time) (path string) {
	t.Helper()
	eventually(t, func() error {
		paths, err := backup.List(control.SnapshotDir(c.DataDir))
		if err != nil || len(paths) == 0 {
			return errors.Join(errors.New("there is none"), err)
		}
		if path = paths[len(paths)-1]; !backup.TimeOf(path).After(after) {
			return fmt.Errorf("%s is older", path)
		}
		return nil
	})
	return path
}

// knowsServers waits until a server has written down where so many servers are.
func knowsServers(t *testing.T, c control.Config, want int) {
	t.Helper()
	eventually(t, func() error {
		text, err := os.ReadFile(filepath.Join(c.DataDir, "host", "servers"))
		if n := len(strings.Fields(string(text))); err == nil && n != want {
			err = fmt.Errorf("%s knows %d servers", c.Name, n)
		}
		return err
	})
}

// TestQuorum_restored: after the majority was lost, one server is restored from its own data. The others come back with their
// old data, find that it counts no more, and hold seats again, with nothing done by hand.
func TestQuorum_restored(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "v", 3)
	ns := newNamespace(t, newClient(t, c.servers[0].Config()))
	putSecret(t, newClient(t, c.servers[1].Config()), ns, "kept")
	for i := range c.servers {
		knowsServers(t, c.configs[i], 3)
	}
	var stopped sync.WaitGroup
	for _, stop := range c.stops {
		stopped.Go(stop)
	}
	stopped.Wait()
	if _, err := restoreInto(t, c.configs[2], ""); err != nil {
		t.Fatal(err)
	}
	c.start(2)
	wantSecret(t, newClient(t, c.servers[2].Config()), ns, "kept", true)
	c.start(0)
	c.start(1)
	seated(t, 3, c.servers...)
	for i := range c.servers {
		wantSecret(t, newClient(t, c.servers[i].Config()), ns, "kept", true)
	}
	c.toldOnce(2)
	c.toldRestored(2, 1, "the control plane was restored on v2 from its own data, revision ")
}
