package cli

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/guard"
	"github.com/holdfast-storage/holdfast/engine/sim"
)

// TestEtcdGuard: by the word of a real server, which is the only member of etcd.
func TestEtcdGuard(t *testing.T) {
	shared.once.Do(func() { shared.err = startShared(t) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	w := sim.NewWorld()
	keeps := guard.Etcd(shared.server.Config(), w.Memory)
	says := func(name string, labels map[string]string) string {
		t.Helper()
		obstacles, err := keeps(t.Context(), &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, o := range obstacles {
			texts = append(texts, o.Wait, o.Refusal)
		}
		return strings.Join(texts, "; ")
	}
	server := map[string]string{api.LabelServer: "true"}
	const want = "without it 0 of 1 members would be left"
	got := ""
	for end := time.Now().Add(2 * time.Minute); !strings.Contains(got, want) && time.Now().Before(end); {
		got = says("s1", server) // its leader looks every two seconds
	}
	if !strings.Contains(got, want) {
		t.Errorf("of the only member: %q", got)
	}
	if !strings.Contains(got, "no standby can take its place") {
		t.Errorf("without a standby: %q", got)
	}
	if got := says("s2", server); got != "" {
		t.Errorf("of a standby: %q", got)
	}
	if got := says("h1", nil); got != "" {
		t.Errorf("of a host that is no server: %q", got)
	}
}
