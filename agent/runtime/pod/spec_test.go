package pod

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/holdfast-storage/holdfast/agent/runtime"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func daemon(kind, id string, needs runtime.Needs) runtime.Process {
	own := "/var/lib/holdfast/agent/daemons/storage." + kind + "-" + id
	needs.Directories = append([]runtime.Directory{{Path: own, Mounts: runtime.MountsFromHost}}, needs.Directories...)
	return runtime.Process{
		Name: "storage." + kind + "-" + id, Command: []string{kind, "-f", "-i", id}, Dir: own + "/data",
		RunDir: "/run/holdfast/storage." + kind + "-" + id, LogFile: own + "/log/daemon.log",
		StopTimeout: 1500 * time.Millisecond,
		Of: runtime.Owner{
			Namespace: "storage", Name: kind + "-" + id, UID: "d-uid", Type: kind, ID: id, Cluster: "ceph",
		},
		Needs: needs,
	}
}

// The pods of daemons that need all devices, one capability, or mounts in both directions.
func TestPodOf(t *testing.T) {
	cfg := &Config{Node: "n1", Image: "registry/holdfast:1", PullSecrets: []string{"pull"}}
	cfg.setDefaults()
	for file, p := range map[string]runtime.Process{
		"ceph-osd.yaml": daemon("ceph-osd", "3", runtime.Needs{Privileged: true, Devices: true}),
		"ceph-rgw.yaml": daemon("ceph-rgw", "a", runtime.Needs{Capabilities: []string{"CAP_NET_BIND_SERVICE"}}),
		"glusterd.yaml": func() runtime.Process {
			p := daemon("glusterd", "n1", runtime.Needs{Privileged: true, Directories: []runtime.Directory{
				{Path: "/run/gluster", Make: true}, {Path: "/bricks", Mounts: runtime.MountsFromHost},
			}})
			p.Needs.Directories[0].Mounts = runtime.MountsBoth
			return p
		}(),
	} {
		got, err := yaml.Marshal(podOf(cfg, p, 2))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", file)
		if *rewrite {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-rewrite writes it anew):\n%s", file, diff)
		}
	}
}

// What every pod has, whatever its daemon is called: names that the API server takes, no volume
// that 'kubectl drain' minds, nothing of the cluster's secrets, and the same name again for the
// same process.
func TestPodOf_always(t *testing.T) {
	cfg := &Config{Node: strings.Repeat("n", 200), Image: "i"}
	cfg.setDefaults()
	p := daemon("x_y", strings.Repeat("ü", 40), runtime.Needs{Devices: true, Directories: []runtime.Directory{
		{Path: "/A b"}, {Path: "/" + strings.Repeat("d", 90)}, {Path: "/---"},
	}})
	p.StopTimeout = 0
	pod := podOf(cfg, p, 0)
	for key, value := range pod.Labels {
		if bad := validation.IsValidLabelValue(value); len(bad) > 0 {
			t.Errorf("label %s: %v", key, bad)
		}
	}
	seen := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		if bad := validation.IsDNS1123Label(v.Name); len(bad) > 0 || seen[v.Name] || v.HostPath == nil || v.EmptyDir != nil {
			t.Errorf("volume %+v: %v", v, bad)
		}
		seen[v.Name] = true
	}
	c := &pod.Spec.Containers[0]
	if *pod.Spec.TerminationGracePeriodSeconds < 1 || *pod.Spec.AutomountServiceAccountToken ||
		c.Name != "daemon" || c.LivenessProbe != nil || c.EnvFrom != nil ||
		pod.Spec.RestartPolicy != corev1.RestartPolicyAlways || len(pod.Spec.ReadinessGates) != 1 {
		t.Errorf("%+v", pod.Spec)
	}
	p.Command = []string{"sh", "-c", "echo $$ $(HOSTNAME) $0"}
	if got := podOf(cfg, p, 0).Spec.Containers[0].Command[2]; got != "echo $$$$ $$(HOSTNAME) $$0" {
		t.Errorf("command %s", got)
	}
	pod = podOf(cfg, p, 0)
	other := p
	other.Command = []string{"other"}
	if hashOf(p) != pod.Annotations[annotationProcess] || hashOf(other) == hashOf(p) {
		t.Error("the hash does not tell processes apart")
	}
}
