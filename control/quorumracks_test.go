package control_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/join"
)

// TestQuorum_racks: a seat of a rack that has two goes to a server in a rack without one. A rack that dies takes one seat with it, so that the others go on,
// and its next server gets that seat, although one of another rack waits for longer.
func TestQuorum_racks(t *testing.T) {
	t.Parallel()
	began := time.Now()
	c := newCrew(t, "r", 2)
	c.rack(0, "a")
	c.rack(1, "a")
	c.add("r")
	c.rack(2, "b")
	c.wantMembers("r0", "r1", "r2")

	third := c.addProcess("r")
	c.rack(3, "c")
	c.wantMembers("r0", "r2", "r3")
	c.addProcess("r")
	c.rack(4, "c")

	third.kill()
	for _, i := range []int{0, 2} {
		c.writes(i)
	}
	c.heard(0, 3, metav1.ConditionFalse)
	c.wantMembers("r0", "r2", "r4")
	t.Logf("it took %.0f s", time.Since(began).Seconds())
	c.toldOnce(0)
}

// writes waits until something can be written over a server: another one may have to be elected first.
func (c *crew) writes(over int) {
	c.t.Helper()
	admin := newClient(c.t, c.servers[over].Config())
	eventually(c.t, func() error {
		return admin.Create(c.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}})
	})
}

// rack has an administrator say which rack a server is in.
func (c *crew) rack(i int, rack string) {
	c.t.Helper()
	admin := newClient(c.t, c.servers[0].Config())
	eventually(c.t, func() error {
		host := &api.Host{}
		if err := admin.Get(c.t.Context(), key("", c.configs[i].Name), host); err != nil {
			return err
		}
		metav1.SetMetaDataLabel(&host.ObjectMeta, api.LabelRack, rack)
		return admin.Update(c.t.Context(), host)
	})
}

// addProcess starts one more server, in a process of its own, which can be killed.
func (c *crew) addProcess(name string) *process {
	c.t.Helper()
	i := len(c.configs)
	config := newConfig(c.t, c.t.TempDir(), fmt.Sprint(name, i))
	config.Quorum, config.JoinToken = c.configs[0].Quorum, newToken(c.t, c.servers[0], join.RoleServer)
	c.configs = append(c.configs, config)
	p := victim{Does: "server", Config: config, Immortal: true}.start(c.t)
	c.t.Cleanup(p.kill)
	c.heard(0, i, metav1.ConditionTrue)
	return p
}
