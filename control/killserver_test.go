package control_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/control/quorumview"
)

// killFirst has a server die before everything that it writes, while it makes a control plane, and after that was restored.
func killFirst(t *testing.T, deaths string) {
	t.Parallel()
	config := newConfig(t, filepath.Join(t.TempDir(), "data"), "k2")
	config.Init = true
	v := victim{Does: "server", Config: config, Deaths: deaths}
	for v.run(t) {
		v.Config.Init = len(storedIn(t, config.DataDir)) == 0 // from then on it is refused
	}
	v.Config.Init = false
	s, stop := start(t, v.Config)
	ns := newNamespace(t, newClient(t, s.Config()))
	putSecret(t, newClient(t, s.Config()), ns, "kept")
	stop()
	if _, err := restoreInto(t, v.Config, ""); err != nil {
		t.Fatal(err)
	}
	for v.run(t) {
	}
	if stored := storedIn(t, config.DataDir); stored["unpresented"] != nil {
		t.Errorf("the server has not told that it is the only one: %v", stored)
	}
	s, _ = start(t, v.Config)
	wantSecret(t, newClient(t, s.Config()), ns, "kept", true)
}

// killAgent has the agent of a host that is no server die before everything that it writes, while it joins.
func killAgent(t *testing.T, deaths string) {
	t.Parallel()
	s, _ := sharedServer(t)
	v := victim{Does: "agent", Config: newConfig(t, t.TempDir(), "k3"), Deaths: deaths}
	v.Config.JoinToken = newToken(t, s, join.RoleAgent)
	for v.run(t) {
	}
	if err := joinAgent(t, v.Config.DataDir, "", ""); err != nil {
		t.Errorf("the agent is not known: %v", err)
	}
}

// seatStory is a server that joins three others, is given seats, and loses them.
type seatStory struct {
	*crew
	victim
}

// killSeat has a server die before everything that it writes while it joins, takes a seat, loses it, and takes another one.
func killSeat(t *testing.T, deaths string) {
	t.Parallel()
	c := newCrew(t, "k", 3)
	config := newConfig(t, t.TempDir(), "k3")
	config.Quorum, config.JoinToken = c.configs[0].Quorum, newToken(t, c.servers[0], join.RoleServer)
	c.configs = append(c.configs, config)
	s := seatStory{c, victim{Does: "server", Config: config, Deaths: deaths, Amid: filepath.Join(config.DataDir, "etcd", "member", "wal", "*.wal")}}
	stop := s.keep(t)
	c.heard(0, 3, metav1.ConditionTrue)
	c.mode(2, api.HostMaintenance)
	s.wantSeat("k0", "k1", "k3")

	c.mode(2, api.HostActive)
	c.mode(3, api.HostMaintenance)
	s.wantStandby()
	s.wantMembers("k0", "k1", "k2")
	stop()
	kept := s.loseUnfilled()

	c.mode(3, api.HostActive)
	c.mode(2, api.HostMaintenance)
	s.Amid = ""
	stop = s.keep(t)
	s.wantSeat("k0", "k1", "k3")
	s.wantData()
	s.wantRemoved(kept)

	c.mode(2, api.HostActive)
	c.mode(3, api.HostMaintenance)
	s.wantStandby()
	s.wantMembers("k0", "k1", "k2")
	stop()
	s.losePromoted()
}

// wantData: what is written over another server is read over this one, by its own administrator.
func (s seatStory) wantData() {
	s.t.Helper()
	first := newClient(s.t, s.servers[0].Config())
	ns := newNamespace(s.t, first)
	putSecret(s.t, first, ns, "kept")
	eventually(s.t, func() error {
		own, err := clientcmd.BuildConfigFromFlags("", control.AdminKubeconfig(s.Config.DataDir))
		if err != nil {
			return err
		}
		if !strings.HasSuffix(own.Host, fmt.Sprint(":", s.Config.APIPort)) {
			return fmt.Errorf("the administrator's kubeconfig names %s", own.Host)
		}
		c, err := client.New(own, client.Options{})
		if err != nil {
			return err
		}
		return c.Get(s.t.Context(), key(ns, "kept"), &corev1.Secret{})
	})
}

// loseUnfilled: a server dies while it fills a seat, and the seat is taken from it. What it kept of the one before is not lost for that.
func (s seatStory) loseUnfilled() (kept []string) {
	s.t.Helper()
	s.mode(3, api.HostActive)
	s.mode(2, api.HostMaintenance)
	for storedIn(s.t, s.Config.DataDir)["seat"] != "taking" || !s.began() {
		p := s.victim.start(s.t)
		select {
		case <-p.ended:
		case <-time.After(2 * time.Minute):
			p.kill()
			s.t.Fatalf("it does not die\n%s", p.output.String())
		}
		if killed, err := p.died(); !killed {
			s.t.Fatal(err)
		}
	}
	kept = s.removed()
	if !slices.ContainsFunc(kept, func(file string) bool { return strings.HasPrefix(file, "/generation-0/member/wal") }) {
		s.t.Errorf("of the seat that was lost there is %v", kept)
	}
	alone := s.Config
	alone.DataDir = copyDir(s.t, s.Config.DataDir)
	_, err := heldBy(s.t, alone)
	s.mode(2, api.HostActive)
	s.mode(3, api.HostMaintenance)
	s.wantMembers("k0", "k1", "k2")
	stop := s.keep(s.t)
	s.wantStandby()
	if err != nil {
		wantError(s.t, err, "never received the data: restore a backup")
		s.wantRemoved(kept)
	} else {
		s.t.Log("it got the data in the moment before it died")
		kept = s.removed()
	}
	stop()
	return kept
}

// heldBy restores a copy of a server's data, to see what it holds; the others have a quorum meanwhile.
func heldBy(t *testing.T, c control.Config) (*control.Restored, error) {
	t.Helper()
	c.Init, c.JoinToken = false, ""
	return control.Restore(timeout(t), control.RestoreConfig{Config: c, Overthrow: true})
}

// losePromoted: a server whose member votes dies before it could write down that it holds a seat, and the seat is taken from it. Its copy of the data takes
// the place of the older one.
func (s seatStory) losePromoted() {
	s.t.Helper()
	first := newClient(s.t, s.servers[0].Config())
	later := putSecret(s.t, first, newNamespace(s.t, first), "later")
	s.mode(3, api.HostActive)
	s.mode(2, api.HostMaintenance)
	promoted := s.victim
	promoted.Before = "save setSeat sit"
	p := promoted.start(s.t)
	select {
	case <-p.ended:
	case <-time.After(4 * time.Minute):
		p.kill()
		s.t.Fatalf("it does not die\n%s", p.output.String())
	}
	if killed, err := p.died(); !killed {
		s.t.Fatal(err)
	}
	if stored := storedIn(s.t, s.Config.DataDir); stored["seat"] != "taking" {
		s.t.Fatalf("it died too late, and said of itself: %v", stored)
	}
	immortal := s.victim
	immortal.Immortal = true
	s.mode(2, api.HostActive)
	s.mode(3, api.HostMaintenance)
	s.wantMembers("k0", "k1", "k2")
	stop := immortal.keep(s.t)
	eventually(s.t, func() error {
		if _, err := os.Stat(filepath.Join(s.Config.DataDir, "etcd")); err == nil {
			return errors.New("the data of the former member is in its place")
		}
		return nil
	})
	stop()
	alone := s.Config
	alone.DataDir = copyDir(s.t, s.Config.DataDir)
	if err := os.Rename(filepath.Join(alone.DataDir, "etcd.removed", "generation-0"), filepath.Join(alone.DataDir, "etcd")); err != nil {
		s.t.Fatal(err)
	}
	restored, err := heldBy(s.t, alone)
	if err != nil || restored.Revision < later {
		s.t.Errorf("what was kept: %+v, %v; want the revision %d", restored, err, later)
	}
}

// wantRemoved: of the seats that were lost there is what there was.
func (s seatStory) wantRemoved(want []string) {
	s.t.Helper()
	eventually(s.t, func() error {
		if got := s.removed(); !slices.Equal(got, want) {
			return fmt.Errorf("of the seats that were lost there is %v, there was %v", got, want)
		}
		return nil
	})
}

// began says whether a member has begun to run.
func (s seatStory) began() bool {
	paths, _ := filepath.Glob(s.Amid)
	return len(paths) > 0
}

// removed are the files that are kept of lost seats.
func (s seatStory) removed() []string {
	var files []string
	for name, sum := range contents(s.t, filepath.Join(s.Config.DataDir, "etcd.removed")) {
		files = append(files, name+" "+sum)
	}
	slices.Sort(files)
	return files
}

func (s seatStory) wantSeat(members ...string) {
	s.t.Helper()
	s.wantMembers(members...)
	eventually(s.t, func() error {
		if stored := storedIn(s.t, s.Config.DataDir); stored["seat"] != nil {
			return fmt.Errorf("the server says of itself: %v", stored)
		}
		return nil
	})
}

// wantStandby: the server says so, or has given up what it could not fill.
func (s seatStory) wantStandby() {
	s.t.Helper()
	eventually(s.t, func() error {
		stored := storedIn(s.t, s.Config.DataDir)
		if _, err := os.Stat(filepath.Join(s.Config.DataDir, "etcd")); stored["seat"] != "standby" && (stored["seat"] != "taking" || err == nil) {
			return fmt.Errorf("the server says of itself: %v", stored)
		}
		return nil
	})
}

// wantMembers waits until these servers vote, and no others are members.
func (c *crew) wantMembers(want ...string) {
	c.t.Helper()
	eventually(c.t, func() error {
		status, err := quorumview.Ask(timeout(c.t), c.servers[0].Config())
		if err != nil {
			return err
		}
		var got []string
		for _, m := range status.Members {
			got = append(got, fmt.Sprintf("%s %v", m.Name, m.Voter))
		}
		slices.Sort(got)
		if !slices.Equal(got, slices.Collect(func(yield func(string) bool) {
			for _, name := range want {
				if !yield(name + " true") {
					return
				}
			}
		})) {
			return fmt.Errorf("the members are %v, want %v: %s", got, want, status.Degraded)
		}
		return nil
	})
}

// mode has an administrator set the mode of a server's host.
func (c *crew) mode(i int, mode api.HostMode) {
	c.t.Helper()
	admin := newClient(c.t, c.servers[0].Config())
	eventually(c.t, func() error {
		host := &api.Host{}
		if err := admin.Get(c.t.Context(), key("", c.configs[i].Name), host); err != nil {
			return err
		}
		host.Spec.Mode = mode
		return admin.Update(c.t.Context(), host)
	})
}
