package torus

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/servicetest"
	"github.com/holdfast-storage/holdfast/agent/service/torus"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/failpoint"
	spoken "github.com/holdfast-storage/holdfast/internal/torus"
)

// TestConformance has Torus's service agents pass the suite, and kills them at each place in the code that lasts.
func TestConformance(t *testing.T) {
	b := newBed(t, StandIn)
	code := servicetest.Places(t, "../../agent/service/torus")
	for _, s := range []servicetest.Subject{
		{Type: spoken.TypeEtcd, Install: []string{"apt-get install etcd-server"}, New: func(t *testing.T) *service.Local { return place(t, spoken.TypeEtcd, nil) }},
		{
			Type: spoken.TypeTorusd, Install: []string{"torusd is not installed", "torusctl is not installed"},
			New: func(t *testing.T) *service.Local {
				l := place(t, spoken.TypeTorusd, map[string]string{
					spoken.ParamEtcd: b.etcd, spoken.ParamPeer: fmt.Sprintf("http://127.0.0.1:%d", freePort(t)), spoken.ParamReport: spoken.DepthCluster,
					spoken.ParamInit: "default",
				})
				l.Daemon.Spec.OnRemoval = api.DeletionWipe
				l.Parameters[spoken.ParamStore] = filepath.Join(t.TempDir(), l.Daemon.Name)
				return l
			},
			Outside: func(l *service.Local) []string { return []string{l.Parameters[spoken.ParamStore]} },
			Serve: func(t *testing.T, l *service.Local) {
				served := *b
				served.T = t
				served.run(&peer{local: l})
				served.awaitPeer(l.Parameters[spoken.ParamPeer])
			},
			Commands: func(*service.Local) []service.Command {
				return []service.Command{
					{Verb: spoken.VerbCreate, Object: "vol", Params: map[string]string{spoken.ParamBytes: "104857600"}},
					{Verb: spoken.VerbDelete, Object: "vol"},
					{Verb: spoken.VerbReplication, Object: "2"},
				}
			},
		},
		{
			Type: spoken.TypeTorusd, Brief: true, New: func(t *testing.T) *service.Local { return b.member(t) },
			Outside: func(l *service.Local) []string { return []string{l.Parameters[spoken.ParamStore]} },
		},
	} {
		s.Agents, s.Code = torus.Agents(), []*failpoint.Points{code}
		t.Run(s.Type, func(t *testing.T) { servicetest.Run(t, s) })
	}
	servicetest.Swept(t, code, nil)
}

// member places a peer of the ring that has blocks, of a cluster that was given its etcd: the ring
// and the volumes go with it.
func (b *bed) member(t *testing.T) *service.Local {
	t.Helper()
	l := place(t, spoken.TypeTorusd, map[string]string{
		spoken.ParamEtcd: b.etcd, spoken.ParamPeer: fmt.Sprintf("http://127.0.0.1:%d", freePort(t)),
		spoken.ParamReport: spoken.DepthPeer, spoken.ParamGiven: b.etcd,
	})
	l.Daemon.Spec.OnRemoval = api.DeletionWipe
	l.Parameters[spoken.ParamStore] = filepath.Join(t.TempDir(), l.Daemon.Name)
	const uuid = "a-peer-of-the-ring"
	if err := os.MkdirAll(filepath.Join(l.Parameters[spoken.ParamStore], "metadata"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.Data, "uuid"), []byte(uuid+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"init"}, {"peer", "add", "--force", uuid}, // the real one has --force for removals alone
	} {
		if out, err := b.ctl(args...); err != nil && !strings.Contains(out, "already exists") {
			t.Fatalf("torusctl %v: %v: %s", args, err, out)
		}
	}
	return l
}

// awaitPeer waits until Torus knows a peer by its address.
func (b *bed) awaitPeer(address string) {
	b.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		out, err := exec.Command(filepath.Join(os.Getenv(torus.BinVariable), "torusctl"), "list-peers", "--csv", "--etcd", b.etcd).CombinedOutput()
		if err == nil && strings.Contains(string(out), address) {
			return
		}
		if time.Now().After(end) {
			b.Fatalf("no peer %s: %v: %s", address, err, out)
		}
	}
}

func place(t *testing.T, kind string, params map[string]string) *service.Local {
	t.Helper()
	l := servicetest.Dirs(t)
	l.Daemon.Name, l.Daemon.Generation, l.Daemon.Spec.Type, l.Parameters = "torus-n1", 1, kind, params
	return l
}
