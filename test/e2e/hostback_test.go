package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// goneIsBack takes a host's power away, says that it is gone for good, and brings it back when its OSD was removed from Ceph and its agent has only to
// clear it away, of a cluster that wipes what leaves it: nothing is wiped, and when the removal is over the OSD is back as it was.
func (b *bed) goneIsBack() {
	const number = 5
	h := b.Lab.Host(number)
	osd, label := b.osdOn(h.Disk(0).ID()), b.label(h)
	h.PowerOff(b)
	b.await("the host to be found silent", b.heard(1, h.Name, false))
	b.holdfast(0, "host", "remove", h.Name, "--gone", "--delete-nodes")
	b.await("its OSD to be removed", func() error {
		if d := b.daemon(osd); d.DeletionTimestamp == nil {
			return fmt.Errorf("it is wanted %s: %v", d.Spec.State, d.Spec.Parameters)
		}
		return nil
	})
	h.PowerOn(b)
	b.StartAgent(b, number, "")
	b.removalEnds(h.Name)
	b.await("Ceph to be well with the host's OSD", func() error { return b.health(3, 4) })
	if is := b.hostObject(h.Name); is.ModeOf() != api.HostActive || engine.DisksKept(is) {
		b.Errorf("the host's mode is %s, with %v", is.ModeOf(), is.Annotations)
	}
	if now := b.label(h); now != label {
		b.Errorf("the OSD of the disk was made anew: %+v, was %+v", now, label)
	}
}

// removalEnds waits until the removal of a host that is back has failed. Where its agent was faster, and has cleared the last of its daemons away,
// the removal waits whether the host stays, and is cancelled.
func (b *bed) removalEnds(host string) {
	b.Helper()
	var is api.Action
	b.await("the removal to know that the host is back", func() error {
		is = b.actionsOn(host)[0]
		if !strings.Contains(is.Status.Message, "--gone refused: the agent of host") && !strings.Contains(is.Status.WaitsFor, ", which reconnected although") {
			return fmt.Errorf("it is %s: %s; it waits for %q", is.Status.State, is.Status.Message, is.Status.WaitsFor)
		}
		return nil
	})
	b.Logf("the removal is %s: %s; it waits for %q", is.Status.State, is.Status.Message, is.Status.WaitsFor)
	if is.Status.WaitsFor != "" {
		b.holdfast(0, "action", "cancel", is.Name)
	}
	b.await("the removal to be over", func() error {
		if err := b.lastAction(host, api.ActionFailed); err != nil {
			return b.lastAction(host, api.ActionCancelled)
		}
		return nil
	})
}

// label is what the label of the OSD says that is on the first disk of a host: which one it is, and when it was made.
type label struct {
	UUID   string `json:"osd_uuid"`
	Number string `json:"whoami"`
	Made   string `json:"btime"`
}

func (b *bed) label(h *hosts.Host) label {
	b.Helper()
	file := strings.TrimPrefix(h.Disk(0).ID(), "file-")
	out := b.Lab.Host(1).Run(b, context.Background(), "ceph-bluestore-tool", "show-label", "--dev", file)
	var all map[string]label
	if err := json.Unmarshal([]byte(out), &all); err != nil || all[file].Made == "" {
		b.Fatalf("reading the label of %s: %v:\n%s", file, err, out)
	}
	return all[file]
}

// removedIsBack switches a machine on that was taken out as one that is gone for good: neither the control plane nor Ceph lets it in. Then it joins
// anew, and gives its disk with what is on it.
func (b *bed) removedIsBack() {
	const number = 4
	h := b.Lab.Host(number)
	label := b.label(h)
	h.PowerOn(b)
	b.keptOut(number)
	b.refused("host show "+h.Name, "host "+h.Name+" does not exist")
	b.Server(number).Stop(b, limit)
	b.StartAgent(b, number, b.Token(b, "agent"))
	b.await("the host to be heard", b.heard(1, h.Name, true))
	b.await("what it had to be stopped", func() error {
		if left := b.runsOn(number); len(left) > 0 {
			return fmt.Errorf("there run %q", left)
		}
		return nil
	})
	b.await("its disk to be told of as one that holds an OSD", func() error { return b.deviceIs(h.Name, h.Disk(0).ID(), api.DeviceUnavailable) })
	b.mustApply(home.Spec{Devices: map[string][]string{h.Name: {h.Disk(0).ID()}}}.NodesYAML())
	if now := b.label(h); now != label {
		b.Errorf("the OSD of the disk was made anew: %+v, was %+v", now, label)
	}
}

// keptOut starts the agent of a host that was taken out, and waits until it and all daemons that it starts were refused. One of them is a mgr:
// nothing changes in Ceph.
func (b *bed) keptOut(number int) {
	b.Helper()
	h := b.Lab.Host(number)
	mgrs, crush, refused := b.mgrs(), b.crush(), b.refusedOn(h)
	if _, had := refused["default.ceph-mgr-a"]; !had {
		b.Fatalf("it had %v, and no mgr", refused)
	}
	b.StartAgent(b, number, "")
	b.await("the agent to say that it is not let in", func() error {
		log, err := os.ReadFile(h.Dir() + "/logs/holdfast.log")
		if err == nil && !strings.Contains(string(log), "host "+h.Name+" was deleted, so this certificate is revoked") {
			err = fmt.Errorf("its log is\n%s", log)
		}
		return err
	})
	b.await("Ceph to refuse its daemons", func() error {
		for daemon, count := range b.refusedOn(h) {
			if count == refused[daemon] {
				return fmt.Errorf("%s was not refused: there run %q, and the mgrs are %+v", daemon, b.runsOn(number), b.mgrs())
			}
		}
		return nil
	})
	if now := b.mgrs(); !maps.Equal(now.names(), mgrs.names()) {
		b.Errorf("the mgrs were %+v, are %+v", mgrs, now)
	}
	compare(b, "the CRUSH map", b.crush(), crush)
}

// refusedOn counts how often each daemon of a host has ended because Ceph did not let it in, by its log.
func (b *bed) refusedOn(h *hosts.Host) map[string]int {
	b.Helper()
	logs, err := filepath.Glob(h.Path("/var/lib/holdfast/agent/daemons/*/log/daemon.log"))
	if err != nil {
		b.Fatal(err)
	}
	count := map[string]int{}
	for _, file := range logs {
		text, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		count[filepath.Base(filepath.Dir(filepath.Dir(file)))] = strings.Count(string(text), "failed to fetch mon config")
	}
	return count
}
