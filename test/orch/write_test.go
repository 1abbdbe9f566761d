package orch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/test/orch"
	"github.com/holdfast-storage/holdfast/test/tier"
)

// TestExplore is a scratch.
func TestExplore(t *testing.T) {
	tier.Full(t)
	only := os.Getenv("ONLY")
	for version, tree := range releases {
		if only != "" && only != version {
			continue
		}
		t.Run(version, func(t *testing.T) {
			r := orch.Start(t, rootOf(t, tree))
			h := orch.StartHome(t)
			h.Relay(r)
			r.Await("the mgr", func() error { return available(r) })
			if out, err := r.Ceph("config", "set", "mgr", "mgr/orchestrator/orchestrator", "holdfast", "--force"); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			r.Await("ceph orch", func() error { return says(r, "orch status", "Available: Yes") })
			r.Await("ceph orch", func() error { return says(r, "orch ls", "mon") })
			script, _ := os.ReadFile("/tmp/h6-script")
			for line := range strings.SplitSeq(string(script), "\n") {
				if line == "" || strings.HasPrefix(line, "#") {
					continue
				}
				if name, text, ok := strings.Cut(line, "<<"); ok {
					_ = os.WriteFile(filepath.Join(r.Dir, name), []byte(strings.ReplaceAll(text, "|", "\n")), 0o644)
					continue
				}
				out, err := r.Ceph(strings.Fields(strings.ReplaceAll(line, "@", r.Dir+"/"))...)
				fmt.Printf("$ ceph %s\n%s", line, out)
				if err != nil {
					fmt.Printf("ERR %v\n", err)
				}
			}
			for _, a := range h.Actions() {
				fmt.Printf("ACTION %s/%s %s %s %s: %s\n", a.Namespace, a.Name, a.Spec.Kind, a.Spec.Target, a.Status.State, a.Status.Message)
			}
			log, _ := os.ReadFile(filepath.Join(r.Dir, "ceph-mgr.log"))
			_ = os.WriteFile("/tmp/h6-mgr-"+version+".log", log, 0o644)
		})
	}
}
