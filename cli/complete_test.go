package cli

import (
	"io"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/complete"
)

// TestComplete_places: each command and flag that names are completed for is there.
func TestComplete_places(t *testing.T) {
	if missing := complete.Add(newRoot(streams{out: io.Discard, err: io.Discard}), complete.Home{}); len(missing) > 0 {
		t.Errorf("there is no %q", missing)
	}
}

// TestComplete asks as a shell does.
func TestComplete(t *testing.T) {
	t.Parallel()
	p := newHome(t, "complete")
	manifest := "apiVersion: holdfast.io/v1alpha1\nkind: StorageCluster\n" +
		"metadata: {name: alpha}\nspec: {type: ceph, ceph: {}}\n"
	p.must(t, exitOK, manifest, []string{"apply", "-f", "-"})
	d := &api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Namespace: "complete", Name: "ceph-osd-3"},
		Spec: api.DaemonSpec{
			Cluster: "alpha", Type: "ceph-osd", ID: "3", Host: "complete-1", State: api.WantRunning,
			Command: []string{"ceph-osd"},
		},
	}
	if err := p.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"status al":                     "alpha",
		"why osd":                       "osd.3\ton host complete-1",
		"why cluster/":                  "cluster/alpha",
		"why clus":                      "cluster/",
		"logs ceph-":                    "ceph-osd-3\ton host complete-1",
		"daemon restart ":               "osd.3\ton host complete-1",
		"get storagec":                  "storageclusters",
		"get storageclusters ":          "alpha",
		"delete storagecluster/a":       "storagecluster/alpha",
		"plan --delete storagecluster/": "storagecluster/alpha",
		"host show complete-2":          "complete-2",
		"host drain complete-1 ":        "",
		"device list complete-1 complete-2 complete-3": "complete-3",
		"device wipe wwn-10":                           "wwn-10\t/dev/sdb of host complete-1",
		"action wait ":                                 "",
		"apply --plan ":                                "",
	} {
		args := append([]string{"__complete", "--kubeconfig", p.kubeconfig, "-n", "complete"},
			strings.Split(line, " ")...)
		code, out := runHere(t, args...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		names := lines[:max(0, len(lines)-2)] // the directive, and what it means
		// Devices are not in a namespace: those of other tests are there, too.
		names = slices.DeleteFunc(names, func(n string) bool {
			return strings.Contains(n, " of host ") && !strings.Contains(n, " of host complete-")
		})
		if code != exitOK || strings.Join(names, "\n") != want {
			t.Errorf("%q: %d\n%s", line, code, out)
		}
	}
}

// TestComplete_alone: where there is no API, nothing is completed, and nothing is said.
func TestComplete_alone(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nonexistent")
	code, out := runHere(t, "__complete", "why", "")
	if code != exitOK || !strings.HasPrefix(out, ":4\n") {
		t.Errorf("%d: %s", code, out)
	}
}
