package e2e

import (
	"fmt"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/torus"
)

// TestTorusGivenEtcd: a cluster on the user's etcd that is wiped leaves no ring and no volume
// there, its plan says so.
func TestTorusGivenEtcd(t *testing.T) {
	begin(t)
	programs, err := torus.Programs(t.Context(), t.TempDir(), "../..", torus.Last)
	if err != nil {
		t.Fatal(err)
	}
	lab := hosts.New(t, hosts.Options{Count: 2, Share: []string{programs}, Env: []string{"TORUS_BIN=" + programs}})
	b := &bed{t, home.Start(t, lab, binary)}
	etcd, member := fmt.Sprintf("http://%s:2379", lab.Host(1).IP), fmt.Sprintf("http://%s:2380", lab.Host(1).IP)
	lab.Host(1).Start(t, programs+"/etcd", "--name", "m", "--data-dir", "/var/lib/given-etcd",
		"--listen-client-urls", etcd, "--advertise-client-urls", etcd, "--listen-peer-urls", member,
		"--initial-advertise-peer-urls", member, "--initial-cluster", "m="+member, "--initial-cluster-token", "t",
		"--initial-cluster-state", "new", "--auto-compaction-mode", "periodic", "--auto-compaction-retention", "1h")
	given := "torus: {replication: 2, endpoints: ['" + etcd + "']}"
	spec := strings.Replace(torusSpec, "torus: {replication: 2}", given, 1)
	spec += torusNode(lab.Host(1)) + torusNode(lab.Host(2))
	b.mustApply(spec)
	b.await("two members", b.torusIs(api.StorageOnline, 2, 0))
	volumes := func() (string, error) {
		cmd := lab.Host(1).Command(t.Context(), programs+"/torusctl", "volume", "list", "--csv", "--etcd", etcd)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	b.await("the volume", func() error {
		if out, err := volumes(); err != nil || !strings.Contains(out, "vol1") {
			return fmt.Errorf("%w %s", err, out)
		}
		return nil
	})
	cmd := lab.Host(1).Command(t.Context(), b.Binary, "delete", "storagecluster", "t")
	refused, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(refused), "its ring and volumes are removed from the etcd "+etcd) {
		t.Errorf("the plan does not say what becomes of the ring: %v\n%s", err, refused)
	}
	b.run("delete", "--plan", home.PlanIn(t, string(refused)))
	b.await("nothing to be left", func() error {
		if n := len(b.daemons()); n > 0 {
			return fmt.Errorf("%d daemons are left", n)
		}
		return nil
	})
	if out, err := volumes(); err == nil || !strings.Contains(out, "no global metadata available") {
		t.Errorf("the etcd still has a Torus: %v %s", err, out)
	}
}
