package cli

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/agent"
	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/rgw"
	"github.com/holdfast-storage/holdfast/internal/torus"
	"github.com/holdfast-storage/holdfast/test/podnode"
)

// TestServiceAgents: none has the name of another one, whatever package it is of.
func TestServiceAgents(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range serviceAgents() {
		if seen[a.Name()] {
			t.Errorf("there are two service agents of the type %s", a.Name())
		}
		seen[a.Name()] = true
	}
	if len(seen) < 10 {
		t.Errorf("only %d types of daemons are known", len(seen))
	}
}

// TestNeeds is the table of what each type of daemon may do where its runtime confines it. A type
// that is not in it runs as root without capabilities, with its own directories alone.
func TestNeeds(t *testing.T) {
	own := runtime.Directory{Path: "/d/x", Mounts: runtime.MountsFromHost}
	alone := runtime.Needs{Directories: []runtime.Directory{own}}
	disks := runtime.Needs{Privileged: true, Devices: true, Directories: []runtime.Directory{own}}
	low := runtime.Needs{Capabilities: []string{"CAP_NET_BIND_SERVICE"}, Directories: []runtime.Directory{own}}
	bricks := runtime.Needs{Privileged: true, Devices: true, Directories: []runtime.Directory{
		{Path: "/d/x", Mounts: runtime.MountsBoth},
		{Path: "/run/gluster", Make: true},
		{Path: "/var/log/glusterfs", Make: true},
		{Path: "/a", Mounts: runtime.MountsFromHost},
		{Path: "/b", Mounts: runtime.MountsFromHost},
	}}
	store := runtime.Needs{Directories: []runtime.Directory{own, {Path: "/blocks", Make: true}}}
	with := func(key, value string) map[string]string { return map[string]string{key: value} }
	tests := map[string][]struct {
		parameters map[string]string
		want       runtime.Needs
	}{
		"ceph-mon": {{nil, alone}}, "ceph-mgr": {{nil, alone}}, "ceph-mds": {{nil, alone}}, "ceph-rbd-mirror": {{nil, alone}},
		"ceph-osd": {{nil, disks}},
		"ceph-rgw": {
			{with(rgw.ParamURL, "http://10.0.0.1:8080"), alone},
			{with(rgw.ParamURL, "https://10.0.0.1:443"), low},
			{with(rgw.ParamURL, "http://[fd00::1]:80"), low},
		},
		"glusterd":    {{with(glusterd.ParamDirectories, "/a\n/b"), bricks}},
		"nfs-ganesha": {{nil, alone}}, "etcd": {{nil, alone}},
		"torusd": {{with(torus.ParamStore, "/blocks"), store}, {with(torus.ParamStore, "/d/x/data/store"), alone}},
	}
	for _, a := range serviceAgents() {
		if len(tests[a.Name()]) == 0 {
			t.Errorf("%s is not in the table", a.Name())
		}
		for _, tt := range tests[a.Name()] {
			got := service.NeedsOf(a, &service.Local{Daemon: &api.Daemon{}, Data: "/d/x/data", Parameters: tt.parameters})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s %v: %s", a.Name(), tt.parameters, diff)
			}
		}
	}
}

// TestPodRuntime: an agent in a pod runs pods, as its environment says, and says what it lacks.
func TestPodRuntime(t *testing.T) {
	for name, tt := range map[string]struct{ node, image, err string }{
		"all is there":     {"n1", "i", ""},
		"without a node":   {"", "i", "set $NODE_NAME in the pod"},
		"without an image": {"n1", "", "set $HOLDFAST_IMAGE to that of the agent's container"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(imageVariable, tt.image)
			err := checkNode(tt.node)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Error(err)
			}
		})
	}
	t.Setenv(imageVariable, "i")
	t.Setenv(secretsVariable, " a,,b ")
	t.Setenv(priorityVariable, "high")
	cfg := podConfig("n1")
	if cfg.Node != "n1" || cfg.Image != "i" || cfg.PriorityClass != "high" || !slices.Equal(cfg.PullSecrets, []string{"a", "b"}) {
		t.Errorf("%+v", cfg)
	}
	c := agent.Config{Name: "n1", REST: podnode.NewAPI(t).Config(t)}
	r, kind, err := podRuntime(c)(t.Context(), t.TempDir(), nil, nil, slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if kind != api.RuntimePod || r.Capabilities().KeepsChildren {
		t.Errorf("%s, %+v", kind, r.Capabilities())
	}
}
