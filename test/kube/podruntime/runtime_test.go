// Package podruntime tests the runtime of pods on a real kubelet.
package podruntime

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/pod"
	"github.com/holdfast-storage/holdfast/agent/runtime/runtimetest"
	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/kube"
	"github.com/holdfast-storage/holdfast/test/tier"
)

// insideVariable is the kubeconfig of the part of a test that runs on a node, nodeVariable the
// node.
const insideVariable, nodeVariable = "HOLDFAST_TEST_INSIDE", "HOLDFAST_TEST_NODE"

func TestMain(m *testing.M) {
	hosts.MaybeInit()
	os.Exit(m.Run())
}

// limit bounds the suite. A container that ends a second time waits for ten seconds.
const limit = 8 * time.Minute

// TestRuntime has the runtime pass its suite with real pods. The suite runs on the node, as an
// agent does: it sees the node's directories and processes.
func TestRuntime(t *testing.T) {
	tier.Full(t)
	k := kube.New(t, kube.Options{})
	n := k.Node(1)
	self := filepath.Join(k.Lab.Dir, "podruntime.test")
	copyFile(t, self, "/proc/self/exe")
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := n.Command(ctx, self, "-test.run=^TestInside$", "-test.v", "-test.timeout="+limit.String())
	cmd.Env = append(cmd.Env, insideVariable+"="+k.KubeconfigFor(t, "agent", kube.Masters), nodeVariable+"="+n.Name)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Run(); err != nil {
		t.Errorf("on the node: %v", err)
	}
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestInside is the part of TestRuntime that runs on the node.
func TestInside(t *testing.T) {
	file := os.Getenv(insideVariable)
	if file == "" {
		return // TestRuntime starts it where there is something to test
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	runtimetest.Run(t, runtimetest.Harness{
		KillsChildren: true,
		Open: func(t *testing.T, dir string) runtime.Runtime {
			return open(t, config, dir)
		},
		Log: func(t *testing.T, p runtime.Process) string { return logOf(t, client, p) },
	})
}

func open(t *testing.T, config *rest.Config, dir string) runtime.Runtime {
	t.Helper()
	r, err := pod.New(t.Context(), pod.Config{
		REST: config, Dir: filepath.Join(dir, "runtime"), Node: os.Getenv(nodeVariable), Image: kube.Image,
		PullPolicy: core.PullNever, HostPID: true, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// logOf is what a process wrote, as 'kubectl logs' shows it; nothing while that is not there.
func logOf(t *testing.T, client kubernetes.Interface, p runtime.Process) string {
	t.Helper()
	log, err := client.CoreV1().Pods(p.Of.Namespace).GetLogs(p.Of.Name, &core.PodLogOptions{}).Stream(t.Context())
	if err != nil {
		return ""
	}
	defer log.Close()
	text, err := io.ReadAll(log)
	if err != nil {
		return ""
	}
	return string(text)
}
