package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/pages"
)

// before brings about the situation in which a block is typed.
func (r *reader) before(block pages.Block) {
	r.Helper()
	for _, script := range block.Texts("before") {
		r.situation(block, script)
	}
}

// situation brings about one thing:
//
//	power off h2, power on h2   a machine is switched off, or on; nothing of Holdfast runs then
//	disconnected h2             its agent is seen to be disconnected
//	empty disk 1 of h2          a disk has nothing on it, and its agent has noticed
//	replace disk 1 of h2        another disk is in its place, after the machine was off
//	destroy 2 mons              so many of three mons have no store
//	systemctl stop holdfast     and start, restart, disable, enable, as on a machine with systemd
//	on h2 SCRIPT                a script, or a command of systemctl, runs on a host
//	SCRIPT                      it runs on the first host
func (r *reader) situation(block pages.Block, script string) {
	r.Helper()
	words := strings.Fields(script)
	switch {
	case words[0] == "power":
		r.power(words[1], r.numberOf(words[2]))
	case words[0] == "disconnected":
		home.Await(r, script, func() error { return r.connected(words[1], false) })
	case words[0] == "destroy":
		r.destroy(words[1])
	case words[0] == "empty":
		r.empty(words[2], r.numberOf(words[4]))
	case words[0] == "replace":
		r.replace(words[2], r.numberOf(words[4]))
	case words[0] == "on":
		host, rest := r.numberOf(words[1]), strings.Join(words[2:], " ")
		if !r.serviced(host, rest, func() {}) {
			r.runOn(host, block, r.filled(block, rest))
		}
	case r.serviced(1, script, func() {}):
	default:
		r.run(block, r.filled(block, script))
	}
}

func (r *reader) numberOf(name string) int {
	r.Helper()
	for i, h := range r.lab.Hosts() {
		if h.Name == name {
			return i + 1
		}
	}
	r.Fatalf("there is no host %q", name)
	return 0
}

// power switches a machine off, or on without anything that runs there.
func (r *reader) power(to string, number int) {
	r.Helper()
	h := r.lab.Host(number)
	if to == "off" {
		h.PowerOff(r)
		delete(r.running, number)
		return
	}
	h.PowerOn(r)
	for _, dir := range []string{"/etc/ceph", "/mnt"} {
		h.Run(r, r.Context(), "mount", "-t", "tmpfs", "none", dir)
	}
}

// connected checks whether the agent of a host is connected, as the leader sees it.
func (r *reader) connected(name string, want bool) error {
	h, err := read[api.Host](r.bed(), 1, "hosts", name)
	if err != nil {
		return err
	}
	if _, silent := h.SilentSince(); silent == want {
		return fmt.Errorf("its conditions are %+v", h.Status.Conditions)
	}
	return nil
}

// replace puts a new disk into the place of one of a machine, which is off meanwhile.
func (r *reader) replace(disk string, number int) {
	r.Helper()
	h, unit := r.lab.Host(number), "holdfast-agent"
	if _, err := os.Stat(h.Path("/var/lib/holdfast/server.json")); err == nil {
		unit = "holdfast"
	}
	n, err := strconv.Atoi(disk)
	if err != nil {
		r.Fatalf("a disk is a number: %v", err)
	}
	r.power("off", number)
	home.Await(r, h.Name+" to be disconnected", func() error { return r.connected(h.Name, false) })
	h.Disk(n).Replace(r)
	r.power("on", number)
	r.start(number, unit)
	r.available(h, h.Disk(n))
	r.manifests()
}

// empty has a disk of a machine be as new.
func (r *reader) empty(disk string, number int) {
	r.Helper()
	n, err := strconv.Atoi(disk)
	if err != nil {
		r.Fatalf("a disk is a number: %v", err)
	}
	h := r.lab.Host(number)
	if err := h.Disk(n).Discard(r.Context()); err != nil {
		r.Fatal(err)
	}
	r.available(h, h.Disk(n))
}

// available waits until a disk is reported as empty.
func (r *reader) available(h *hosts.Host, disk *hosts.Disk) {
	r.Helper()
	home.Await(r, "disk "+disk.ID()+" to be available", func() error {
		now, err := read[api.Host](r.bed(), 1, "hosts", h.Name)
		if err == nil && !slices.ContainsFunc(now.Status.Devices, func(d api.Device) bool {
			return d.ID == disk.ID() && d.Availability == api.DeviceAvailable
		}) {
			err = fmt.Errorf("the devices are %+v", now.Status.Devices)
		}
		return err
	})
}

// bed is the lab for the helpers of other tests.
func (r *reader) bed() *bed { return &bed{r.T, &home.Home{Lab: r.lab, Binary: binary}} }

// destroy takes the stores from so many of three mons.
func (r *reader) destroy(count string) {
	r.Helper()
	b := r.bed()
	n, err := strconv.Atoi(count)
	if err != nil {
		r.Fatalf("how many mons are lost is a number: %v", err)
	}
	var ids []string
	home.Await(r, "three mons", func() error {
		ids = nil
		for _, d := range b.daemons() {
			if d.Spec.Type == "ceph-mon" && d.Status.State == api.DaemonRunning {
				ids = append(ids, d.Spec.ID)
			}
		}
		if len(ids) != 3 {
			return fmt.Errorf("there are %q", ids)
		}
		return nil
	})
	b.destroyMons(ids[:n]...)
	b.noQuorum()
}

// manifests writes, for each host, a StorageNode with its first disk, with its second one, and with
// both.
func (r *reader) manifests() {
	r.Helper()
	dir := filepath.Join(r.clone, "lab")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		r.Fatal(err)
	}
	write := func(h *hosts.Host, name string, ids ...string) {
		text := home.Spec{Devices: map[string][]string{h.Name: ids}}.NodesYAML()
		if err := os.WriteFile(filepath.Join(dir, h.Name+"-"+name+".yaml"), []byte(text), 0o644); err != nil {
			r.Fatal(err)
		}
	}
	for _, h := range r.lab.Hosts() {
		a, b := h.Disk(0).ID(), h.Disk(1).ID()
		write(h, "disk0", a)
		write(h, "disk1", b)
		write(h, "disks", a, b)
	}
}

// serviced does what systemctl does with the units holdfast and holdfast-agent, in a lab that has
// no systemd. first is called before.
func (r *reader) serviced(host int, line string, first func()) bool {
	r.Helper()
	words := strings.Fields(strings.TrimPrefix(line, "sudo "))
	if len(words) < 3 || words[0] != "systemctl" {
		return false
	}
	unit := words[len(words)-1]
	first()
	switch words[1] {
	case "stop", "disable":
		r.stop(host)
	case "start", "enable":
		r.start(host, unit)
	case "restart":
		r.stop(host)
		r.start(host, unit)
	default:
		r.Fatalf("a reader does not know %q", line)
	}
	return true
}

func (r *reader) stop(host int) {
	r.Helper()
	if p := r.running[host]; p != nil {
		p.Stop(r, time.Minute)
	}
	delete(r.running, host)
}

// start starts a unit, and returns when its server or agent answers, as 'systemctl start' does for
// a unit that notifies.
func (r *reader) start(host int, unit string) {
	r.Helper()
	role := map[string]string{"holdfast": "server", "holdfast-agent": "agent"}[unit]
	if role == "" {
		r.Fatalf("a reader does not know the unit %q", unit)
	}
	command := r.command(context.Background(), host, "exec holdfast "+role)
	r.running[host] = r.lab.Host(host).Launch(r, "holdfast", command)
	home.Await(r, role+" on "+r.lab.Host(host).Name, func() error {
		select {
		case <-r.running[host].Done():
			return errors.New("it has ended")
		default:
		}
		if role == "agent" {
			return r.connected(r.lab.Host(host).Name, true)
		}
		_, err := r.lab.Host(host).Try(r.Context(), binary, "get", "host", r.lab.Host(host).Name)
		return err
	})
}
