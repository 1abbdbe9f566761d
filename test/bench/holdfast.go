package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// holdfast brings the cluster up by Holdfast: one command, on hosts where its servers run already.
type holdfast struct {
	*home.Home
	// spec is the file that the command applies.
	spec string
}

// newHoldfast starts the servers.
func newHoldfast(t hosts.T, lab *hosts.Lab, binary string) *holdfast {
	t.Helper()
	h := &holdfast{home.Start(t, lab, binary), filepath.Join(lab.Dir, "spec.yaml")}
	if err := os.WriteFile(h.spec, []byte(home.SpecFor(lab, mons, mgrs, 1).YAML()), 0o644); err != nil {
		t.Fatalf("%v", err)
	}
	return h
}

// run applies the spec and waits as a person would, and returns the CPU time of the command.
func (h *holdfast) run(ctx context.Context) (cpu, error) {
	cmd := h.Lab.Host(1).Command(ctx, h.Binary, "apply", "-f", h.spec, "--wait", "-o", "json")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("holdfast apply failed: %w\n%s", err, out)
	}
	return cpu{"holdfast apply": cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
}

// remove deletes the cluster, and waits until its devices are free.
func (h *holdfast) remove(t hosts.T) error {
	spec, err := os.ReadFile(h.spec)
	if err != nil {
		return err
	}
	h.Wipe(t, string(spec))
	h.AwaitFreeDisks(t)
	return nil
}

// servers returns what the servers have used since they were started: by themselves, by their children for librados, and by
// the programs that they ran to make stores and devices.
func (h *holdfast) servers() (cpu, error) {
	used := cpu{}
	for n := range h.Lab.Hosts() {
		u, err := usageOfServer(h.Server(n + 1).PID())
		if err != nil {
			return nil, err
		}
		used["holdfast servers"] += u.server.Own
		used["tools that servers ran"] += u.server.Children
		used["librados of the leader"] += u.librados.Own
	}
	return used, nil
}

// radosChild is what a server's child for librados is called.
const radosChild = "holdfast-rados"

// awaitRest waits until the servers have hardly anything to do. What one round has set in motion must not slow the next one;
// and agents wait a moment before they look at a device that has changed, which must not fall into the round.
func (h *holdfast) awaitRest(t hosts.T) {
	const window, most = 500 * time.Millisecond, 50 * time.Millisecond
	home.Await(t, "servers at rest", func() error {
		before, err := h.servers()
		if err != nil {
			return err
		}
		<-time.After(window)
		after, err := h.servers()
		if err != nil {
			return err
		}
		spent := time.Duration(0)
		for _, d := range after.minus(before) {
			spent += d
		}
		if spent > most {
			return fmt.Errorf("they used %s of CPU time within %s", spent, window)
		}
		return nil
	})
}

// leader is the name of the host whose server looks after the cluster.
func (h *holdfast) leader() (string, error) {
	out, err := h.Holdfast("get", "storageclusters", "ceph", "-o", "json")
	if err != nil {
		return "", err
	}
	var cluster struct {
		Status struct {
			Report struct{ Leader string }
		}
	}
	if err := json.Unmarshal([]byte(out), &cluster); err != nil {
		return "", fmt.Errorf("while looking for the leader: %w", err)
	}
	return cluster.Status.Report.Leader, nil
}
