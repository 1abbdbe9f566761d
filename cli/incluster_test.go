package cli

import (
	"testing"

	"k8s.io/client-go/rest"
)

// TestInCluster: a pod's requests wait for no limit of client-go, neither those of the operator and
// the agents nor those of commands in a pod.
func TestInCluster(t *testing.T) {
	asPod = func() (*rest.Config, error) { return &rest.Config{Host: "https://10.96.0.1"}, nil }
	defer func() { asPod = rest.InClusterConfig }()
	for _, name := range []string{"KUBECONFIG", "HOLDFAST_KUBECONFIG"} {
		t.Setenv(name, "")
	}
	g := &globals{dataDir: t.TempDir()}
	for name, config := range map[string]func() (*rest.Config, error){
		"a program": g.clusterConfig, "a command": g.podConfig,
	} {
		c, err := config()
		if err != nil {
			t.Fatal(err)
		}
		if c.Host != "https://10.96.0.1" || c.QPS != -1 {
			t.Errorf("%s in a pod reaches %s with a limit of %v requests a second", name, c.Host, c.QPS)
		}
	}
}
