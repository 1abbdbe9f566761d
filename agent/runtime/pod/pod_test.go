package pod

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/runtimetest"
	"github.com/holdfast-storage/holdfast/test/kubelet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is one with a stand-in for Kubernetes.
type node struct {
	api     *kubelet.API
	kubelet *kubelet.Kubelet
}

func newNode(t *testing.T) *node {
	t.Helper()
	api := kubelet.NewAPI(t)
	return &node{api, kubelet.New(t, api, "n1")}
}

// open opens the runtime of the next agent.
func (n *node) open(t *testing.T, dir string, change ...func(*Config)) *Runtime {
	t.Helper()
	cfg := Config{
		REST: n.api.Config(t), Dir: filepath.Join(dir, "runtime"), Node: "n1", Image: "holdfast:1", HostPID: true,
		Log:     slog.New(slog.NewTextHandler(t.Output(), nil)),
		BackOff: runtime.BackOff{First: time.Millisecond, Min: 50 * time.Millisecond, Max: 200 * time.Millisecond, Reset: time.Minute},
		Processes: func(uid types.UID) (out []Process, err error) {
			for _, p := range kubelet.Processes(uid) {
				out = append(out, Process(p))
			}
			return out, nil
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	r, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The suite runs against a stand-in for Kubernetes; see package kubelet for what that shows and what not.
func TestConformance(t *testing.T) {
	nodes := map[string]*node{}
	names := map[*testing.T]*node{}
	runtimetest.Run(t, runtimetest.Harness{
		KillsChildren: true,
		Open: func(t *testing.T, dir string) runtime.Runtime {
			if nodes[dir] == nil {
				nodes[dir] = newNode(t)
			}
			names[t] = nodes[dir]
			return nodes[dir].open(t, dir)
		},
		Log: func(t *testing.T, p runtime.Process) string { return names[t].kubelet.Log(p.Of.Namespace, p.Of.Name) },
	})
}
