package control_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/control/rotation"
)

// over are the rights of a server, at another one.
func (c *crew) over(i, other int) *rest.Config {
	config := c.servers[i].Config()
	config.Host = "https://" + c.servers[other].Endpoint()
	return config
}

// ask asks a server for a seat, with the rights of another one, and returns the answer.
func (c *crew) ask(i, other int, question string) string {
	c.t.Helper()
	config := c.over(i, other)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		c.t.Fatal(err)
	}
	response, err := client.Post(config.Host+control.SeatPath, "application/json", strings.NewReader(question))
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// listed waits until a ConfigMap names these servers and no others, and returns its version.
func (c *crew) listed(over int, configMap string, want ...string) (version string) {
	c.t.Helper()
	admin := newClient(c.t, c.servers[over].Config())
	eventually(c.t, func() error {
		var list corev1.ConfigMap
		if err := admin.Get(c.t.Context(), key("holdfast-system", configMap), &list); err != nil {
			return err
		}
		if got := slices.Sorted(maps.Keys(list.Data)); !slices.Equal(got, want) {
			return fmt.Errorf("the ConfigMap %s names %v, want %v", configMap, got, want)
		}
		if !maps.Equal(list.Labels, access.Labels()) {
			return fmt.Errorf("the ConfigMap %s has the labels %v", configMap, list.Labels)
		}
		version = list.ResourceVersion
		return nil
	})
	return version
}

// TestRemovedServer: a standby that was removed, and runs on, is told that and nothing else: it gets neither the new authority of a rotation nor a
// backup, and is on no list. It says what to do, and that helps, also after the rotation.
func TestRemovedServer(t *testing.T) {
	t.Parallel()
	log := &safeBuffer{}
	c := newCrew(t, "gone", 2, func(config *control.Config) {
		if config.Refresh = often; config.Name == "gone1" {
			config.Log = slog.New(slog.NewTextHandler(log, nil))
		}
	})
	old := authorityIn(t, c.configs[1].DataDir).Fingerprint()
	h, act := rotator(t, c.servers[0], c.configs[0].DataDir)
	carry(t, "trust", h.Step, act)
	question := fmt.Sprintf(`{"name":"gone1","peerURL":"https://127.0.0.1:%d","standby":true,"endpoint":"127.0.0.1:%d"}`,
		c.configs[1].EtcdPeerPort, c.configs[1].APIPort)
	if answer := c.ask(1, 0, question); !strings.Contains(answer, `"rotation"`) {
		t.Errorf("before it was removed it is told %s", answer)
	}
	c.removeHost(0, 1)
	eventually(t, func() error {
		if !strings.Contains(log.String(), "this server was removed") {
			return errors.New("it does not say that it was removed")
		}
		return nil
	})
	c.listed(0, rotation.BeliefsName, "gone0")
	version := c.listed(0, endpoints.ServersName, "gone0")
	const removed = `{"generation":0,"member":false,"removed":true}`
	if answer := c.ask(1, 0, question); answer != removed {
		t.Errorf("it is told %s", answer)
	}
	if again := c.listed(0, endpoints.ServersName, "gone0"); again != version {
		t.Errorf("the list of servers was written: version %s, then %s", version, again)
	}
	if answer := c.ask(1, 0, `{"name":"gone0","standby":true,"hostKey":"00"}`); answer != removed {
		t.Errorf("a machine whose name another one has is told %s", answer)
	}
	_, err := control.FetchBackup(t.Context(), c.over(1, 0), filepath.Join(t.TempDir(), "backup"))
	wantError(t, err, "this server was removed")
	carry(t, "sign", h.Step, act)
	carry(t, "drop", h.Step, act)
	if got := authorityIn(t, c.configs[1].DataDir).Fingerprint(); got != old {
		t.Error("the removed server has the new authority")
	}
	admin, err := clientcmd.BuildConfigFromFlags("", control.AdminKubeconfig(c.configs[1].DataDir))
	if err != nil {
		t.Fatal(err)
	}
	admin.Host = c.over(1, 0).Host
	if _, err := endpoints.List(t.Context(), admin); err == nil {
		t.Error("its kubeconfig is good after the rotation")
	}
	if n := strings.Count(log.String(), "this server was removed"); n != 1 {
		t.Errorf("it says %d times that it was removed", n)
	}
	c.joinsAnew(1)
}

// joinsAnew has a server join that belongs to an authority that was dropped, as the documentation says.
func (c *crew) joinsAnew(i int) {
	c.t.Helper()
	c.stops[i]()
	token := newToken(c.t, c.servers[0], join.RoleServer)
	config, log := c.configs[i], &safeBuffer{}
	config.JoinToken, config.AskRemoved, config.Log = token, often, slog.New(slog.NewTextHandler(log, nil))
	_, stop := start(c.t, config)
	stop()
	wantSaid(c.t, log.String(), "move server.json, pki, host and etcd aside")
	for _, name := range []string{"server.json", "pki", "host", "etcd"} {
		if err := os.RemoveAll(filepath.Join(c.configs[i].DataDir, name)); err != nil {
			c.t.Fatal(err)
		}
	}
	c.with(i, token)
	c.joined(0, i)
}

// TestRemovedServer_leads: a removed server whose member leads etcd leads no more at once, and keeps its seat for the grace; 'holdfast quorum' says so. Then the standby takes its
// place, and nobody else loses a seat.
func TestRemovedServer_leads(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "lead", 4, func(config *control.Config) { config.Quorum.Grace = 10 * time.Second })
	leaves, _ := c.leads(3)
	over := (leaves + 1) % 3
	if err := newClient(t, c.servers[over].Config()).Delete(t.Context(), nodes(c.configs[leaves].Name)); err != nil {
		t.Fatal(err)
	}
	_, status := c.leads(leaves)
	said := func(d api.Decision) bool {
		return d.Object == "host/"+c.configs[leaves].Name && strings.Contains(d.Message, "its membership ends in 1 min")
	}
	if !slices.ContainsFunc(status.Decisions, said) {
		t.Errorf("it is decided: %v", status.Decisions)
	}
	c.standby(leaves)
	stay := slices.DeleteFunc(slices.Clone(c.servers), func(s *control.Server) bool { return s == c.servers[leaves] })
	seated(t, 3, stay...)
	c.toldOnce(over)
	for _, s := range stay {
		if got := seats(t, c.servers[over], s.Name()); strings.Contains(got, "REMOVED") {
			t.Errorf("%s got and lost its seat like this: %s", s.Name(), got)
		}
	}
}
