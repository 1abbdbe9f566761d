package orch_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/orch"
	"github.com/holdfast-storage/holdfast/test/tier"
)

// TestWrites makes each call that changes something, as the CLI of each release makes it, compares
// what stands in the API afterwards, and has the module prometheus scraped.
func TestWrites(t *testing.T) {
	tier.Full(t)
	for version, tree := range releases {
		t.Run(version, func(t *testing.T) {
			// One after the other: a call is answered within 2.3 s, or refused.
			r, h := startBoth(t, tree)
			for name, text := range documents {
				write(t, r, name, text)
			}
			h.Ceph.Stick(0, true) // a removal of osd.0 can be stopped
			major, _, _ := strings.Cut(version, ".")
			for _, c := range calls {
				if n, _ := strconv.Atoi(major); c.isOf(n) {
					do(t, r, h, c)
				}
			}
			compare(t, h)
			scrapes(t, r)
			checkLog(t, r)
		})
	}
}

// startBoth starts a release and a home that answers it.
func startBoth(t *testing.T, tree string) (*orch.Release, *orch.Home) {
	t.Helper()
	r := orch.Start(t, rootOf(t, tree))
	h := orch.StartHome(t)
	h.Relay(r)
	r.Await("the mgr", func() error { return available(r) })
	if out, err := r.Ceph("config", "set", "mgr", "mgr/orchestrator/orchestrator", "holdfast", "--force"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r.Await("ceph orch", func() error { return says(r, "orch status", "Available: Yes") })
	r.Await("its methods", func() error { return says(r, "orch ls", "mon") })
	return r, h
}

func write(t *testing.T, r *orch.Release, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.Dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// recorded is the Action that an answer names.
var recorded = regexp.MustCompile(`action/(orch-\w+)`)

// do makes a call, and waits until what it declares is written: a call whose Action has not come so
// far within its time says that it is scheduled.
func do(t *testing.T, r *orch.Release, h *orch.Home, c call) {
	t.Helper()
	out, err := r.Ceph(strings.Fields(strings.ReplaceAll(c.command, "@", r.Dir+"/"))...)
	switch {
	case c.refused == "" && (err != nil || !strings.Contains(out, c.says)):
		t.Errorf("ceph %s: %v\n%s", c.command, err, out)
	case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
		t.Errorf("ceph %s is not refused: %v\n%s", c.command, err, out)
	case err != nil && strings.Contains(err.Error(), "Traceback"):
		t.Errorf("ceph %s: %v", c.command, err)
	}
	for _, name := range recorded.FindAllStringSubmatch(out, -1) {
		h.AwaitWritten(name[1])
	}
}

// compare compares what stands in the API after the calls.
func compare(t *testing.T, h *orch.Home) {
	t.Helper()
	for name, wanted := range map[string]map[string]any{
		"DriveGroup/slow":                  {"spec.placement.pattern": "*"},
		"DriveGroup/fast":                  {"spec.newDevices": "Hold"},
		"RBDMirror/rbd-mirror":             {"spec.placement.count": int64(1)},
		"Filesystem/home":                  {"spec.standbyMDS": int64(3)},
		"StorageCluster/ceph":              {"spec.mode": "Active", "spec.ceph.mgr.count": int64(3)},
		"ObjectStore/s4":                   nil,
		"DriveGroup/odd":                   nil,
		"ObjectStore/s3":                   {"spec.gateways.port": int64(7480)},
		"DriveGroup/all-available-devices": nil,
	} {
		checkObject(t, h, name, wanted)
	}
	for _, a := range h.Actions() {
		if a.Status.State == "" || a.Status.State == api.ActionLost {
			t.Errorf("action %s %s is %+v", a.Spec.Kind, a.Spec.Target, a.Status)
		}
	}
}

// checkObject compares fields of an object. Without any the object must not be there.
func checkObject(t *testing.T, h *orch.Home, name string, wanted map[string]any) {
	t.Helper()
	u := h.Object(name)
	if (u == nil) != (wanted == nil) {
		t.Errorf("%s is %v", name, u)
		return
	}
	for path, value := range wanted {
		has, _, _ := unstructured.NestedFieldNoCopy(u.Object, strings.Split(path, ".")...)
		if !reflect.DeepEqual(has, value) {
			t.Errorf("%s: %s is %v, want %v", name, path, has, value)
		}
	}
}

// fault is what a module that fails leaves in the log of a mgr. Ceph writes the traceback of each
// refusal there, too, and of each method that there is not: these end with the refusal, or with
// NotImplementedError alone. The module restful of Ceph 18 does not load on Debian 13.
var fault = regexp.MustCompile(`(?m)^(?:[A-Za-z_.]*(?:Error|Exception))\b.*`)

// checkLog looks for failures of Python in the log of the mgr.
func checkLog(t *testing.T, r *orch.Release) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.Dir, "ceph-mgr.log"))
	if err != nil {
		t.Fatal(err)
	}
	known := regexp.MustCompile(
		`^(orchestrator\._interface\.OrchestratorError: .*|NotImplementedError|ImportError: PyO3 modules .*)$`)
	for _, line := range fault.FindAllString(string(text), -1) {
		if !known.MatchString(line) {
			t.Errorf("in the log of the mgr: %s", line)
		}
	}
}
