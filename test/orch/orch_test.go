package orch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/agent/relay"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/orch/server"
	"github.com/holdfast-storage/holdfast/test/orch"
	"github.com/holdfast-storage/holdfast/test/tier"
)

// releases are the roots that releases of Ceph are in, by what 'ceph-mgr --version' says.
var releases = map[string]string{"16.2.15": "/", "18.2.7": "trixie", "20.2.4": "forky"}

// rootOf is the root of a release, which hack/ceph-tree makes.
func rootOf(t *testing.T, name string) string {
	t.Helper()
	if name == "/" {
		return name
	}
	if out, err := exec.Command("../../hack/ceph-tree", name).CombinedOutput(); err != nil {
		t.Fatalf("hack/ceph-tree %s: %v\n%s", name, err, out)
	}
	root, err := filepath.Abs(filepath.Join("../../.cache/ceph", name))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// serve has the agent's relay and the leader's server answer a mgr, until end is called.
func serve(t *testing.T, r *orch.Release, store server.Store) (end func()) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	leader := httptest.NewServer(&server.Handler{Store: store, Leader: "h1", Log: log})
	mgr := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: orch.Name.Namespace, Name: "ceph-mgr-x"}}
	mgr.Spec.Cluster, mgr.Spec.Parameters = orch.Name.Name, map[string]string{api.ParameterOrch: "born"}
	relays := relay.Relay{
		REST: &rest.Config{Host: leader.URL}, Log: log, Daemons: func() []*api.Daemon { return []*api.Daemon{mgr} },
		RunDir: func(types.NamespacedName) string { return r.RunDir },
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); relays.Run(ctx) }()
	end = sync.OnceFunc(func() { stop(); <-done; leader.Close() })
	t.Cleanup(end)
	return end
}

// TestReleases asks 'ceph orch' of each release of Ceph, with one module for all.
func TestReleases(t *testing.T) {
	tier.Full(t)
	for version, tree := range releases {
		t.Run(version, func(t *testing.T) {
			r := orch.Start(t, rootOf(t, tree))
			end := serve(t, r, orch.Store{Cluster: orch.NewView(3, 2)})
			r.Await("the mgr", func() error { return available(r) })
			if out, err := r.Ceph("config", "set", "mgr", "mgr/orchestrator/orchestrator", "holdfast", "--force"); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			r.Await("ceph orch", func() error { return says(r, "orch status", "Available: Yes") })
			reads(t, r)
			refused(t, r, "orch device zap h1 /dev/sdb --force", "This Orchestrator does not support `orch device zap`")
			refused(t, r, "orch upgrade status", "This Orchestrator does not support")
			if out, err := r.Ceph("health", "detail"); err != nil || strings.Contains(out, "MGR_MODULE") {
				t.Errorf("%s, %v", out, err)
			}
			end()
			const why = "the agent of Holdfast on this host does not answer"
			refused(t, r, "orch ps", why)
			if err := says(r, "orch status", "Available: No (the agent of Holdfast"); err != nil {
				t.Error(err)
			}
			if out, err := r.Ceph("mgr", "fail"); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			r.Await("a mgr that begins without a leader to know the commands", func() error {
				if _, err := r.Ceph("orch", "ps"); err == nil || !strings.Contains(err.Error(), why) {
					return fmt.Errorf("it says %w", err)
				}
				return available(r)
			})
		})
	}
}

func available(r *orch.Release) error {
	out, err := r.Ceph("mgr", "stat", "-f", "json")
	if err != nil {
		return err
	}
	var stat struct{ Available bool }
	if err := json.Unmarshal([]byte(out), &stat); err != nil || !stat.Available {
		return fmt.Errorf("%s, %w", out, err)
	}
	return nil
}

// says asks a command for texts in its answer.
func says(r *orch.Release, command string, texts ...string) error {
	out, err := r.Ceph(strings.Fields(command)...)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			return fmt.Errorf("ceph %s does not say %q:\n%s", command, text, out)
		}
	}
	return nil
}

// reads are the commands that show something, in each form that they have.
func reads(t *testing.T, r *orch.Release) {
	for command, texts := range map[string][]string{
		"orch status":                     {"Backend: holdfast", "Paused: No"},
		"orch status -f json":             {`"available": true`},
		"orch host ls":                    {"h1", "10.0.0.1", "gw", "3 hosts in cluster"},
		"orch host ls -f json":            {`"hostname": "h2"`},
		"orch host ls --format yaml":      {"hostname: h3"},
		"orch device ls":                  {"disk-0-0", "disk-2-1", "hdd", "holds OSD"},
		"orch device ls h2 --wide":        {"disk-1-0"},
		"orch device ls --refresh":        {"disk-1-0"},
		"orch device ls -f json":          {`"human_readable_size": "3.64 TB"`},
		"orch ls":                         {"mon", "3/3", "mgr", "2/2", "mds.home", "rgw.s3", "rbd-mirror", "osd"},
		"orch ls mon":                     {"3/3"},
		"orch ls --service_name mgr":      {"2/2"},
		"orch ls mon -f yaml":             {"service_name: mon", "running: 3"},
		"orch ls --export":                {"service_id: home", "label: gw", "host_pattern: h*", "unmanaged: true"},
		"orch ps":                         {"mon.a", "mgr.b", "osd.0", "mds.home-a", "rgw.s3-a", "10.0.0.1:7480"},
		"orch ps h3":                      {"mon.c"},
		"orch ps --daemon-type osd":       {"osd.2"},
		"orch ps --service_name mgr":      {"mgr.a"},
		"orch ps --daemon_type mon":       {"mon.b"},
		"orch ps -f json":                 {`"service_name": "rgw.s3"`, `"status_desc": "running"`},
		"orch ps --format yaml --refresh": {"daemon_type: mds"},
	} {
		if err := says(r, command, texts...); err != nil {
			t.Error(err)
		}
	}
}

// refused asks for what is refused, in a sentence and without a traceback.
func refused(t *testing.T, r *orch.Release, command, why string) {
	t.Helper()
	out, err := r.Ceph(strings.Fields(command)...)
	if err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "Traceback") {
		t.Errorf("ceph %s: %v\n%s", command, err, out)
	}
}
