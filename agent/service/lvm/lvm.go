// Package lvm sees to the logical volumes that daemons lie on: it activates them, and removes those that ceph-volume has made. A volume is known by the
// UUIDs of its group and of itself, of which the kernel makes its identity (LVM2, lib/activate/dev_manager.c, build_dm_uuid); names may change.
package lvm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service/tool"
)

// timeout bounds one run of LVM, which reads all disks of the host.
const timeout = 2 * time.Minute

// Volume is a logical volume, by the UUIDs of its group and of itself as the kernel has them: 32 letters and digits.
type Volume struct{ Group, UUID string }

// identity is that of a device (package inventory). The volumes that others are made of, such as the halves of a mirror, have an ending, and are none.
var identity = regexp.MustCompile(`^dm-LVM-([0-9a-zA-Z!#]{32})([0-9a-zA-Z!#]{32})$`)

// Parse reads the volume from the identity of a device.
func Parse(id string) (v Volume, ok bool) {
	if found := identity.FindStringSubmatch(id); found != nil {
		return Volume{found[1], found[2]}, true
	}
	return Volume{}, false
}

// dashed is a UUID as LVM itself writes it.
func dashed(uuid string) string {
	parts, at := make([]string, 0, 7), 0
	for _, size := range []int{6, 4, 4, 4, 4, 4, 6} {
		parts = append(parts, uuid[at:at+size])
		at += size
	}
	return strings.Join(parts, "-")
}

// Activate has the kernel show the volume, if the disks that it lies on are there. It is no error where they are not. One that the kernel shows on disks that
// were pulled is shown on those that are there now.
func (v Volume) Activate(ctx context.Context) error {
	how := []string{"--activate", "y"}
	switch dir := v.shown(); {
	case dir != "" && !lost(dir):
		return nil
	case dir != "":
		how = []string{"--refresh"}
	}
	_, err := run(ctx, "lvchange", append(how, "--select", "lv_uuid="+dashed(v.UUID))...)
	return err
}

// blocks is where the kernel tells of its devices; another place in tests.
var blocks = "/sys/class/block"

// Active says whether the kernel shows the volume, on a disk that is there.
func (v Volume) Active() bool {
	dir := v.shown()
	return dir != "" && !lost(dir)
}

// shown is where the kernel tells of the volume; empty where it does not.
func (v Volume) shown() string {
	dirs, err := filepath.Glob(filepath.Join(blocks, "dm-*"))
	if err != nil {
		return ""
	}
	for _, dir := range dirs {
		if id, err := os.ReadFile(filepath.Join(dir, "dm/uuid")); err == nil && strings.TrimSpace(string(id)) == "LVM-"+v.Group+v.UUID {
			return dir
		}
	}
	return ""
}

// lost says whether all that a device lies on is gone: device-mapper keeps it when its disk is pulled, and every read fails.
func lost(dir string) bool {
	below, err := os.ReadDir(filepath.Join(dir, "slaves"))
	if err != nil || len(below) == 0 {
		return false
	}
	return !slices.ContainsFunc(below, func(e os.DirEntry) bool {
		_, err := os.Stat(filepath.Join(dir, "slaves", e.Name()))
		return err == nil
	})
}

// report asks LVM for some fields of what is selected, as text by their names.
func report(ctx context.Context, program, fields, what string) ([]map[string]string, error) {
	out, err := run(ctx, program, "--reportformat", "json", "--options", fields, "--select", what)
	if err != nil {
		return nil, err
	}
	return parseReport(out)
}

// parseReport reads a report (lvmreport(7), "JSON").
func parseReport(out []byte) (rows []map[string]string, err error) {
	var all struct {
		Report []map[string][]map[string]string `json:"report"`
	}
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("while reading what LVM says: %w", err)
	}
	for _, part := range all.Report {
		for _, found := range part {
			rows = append(rows, found...)
		}
	}
	return rows, nil
}

// one has room for the one run of LVM that may be under way.
var one = make(chan struct{}, 1)

// run runs one of LVM's programs, one at a time. LVM reads all disks: where one hangs it cannot be ended, not even by SIGKILL. It is left behind then, and no
// other is started before it has come back.
func run(ctx context.Context, program string, args ...string) ([]byte, error) {
	if err := tool.Require("lvm", "lvm2"); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	select {
	case one <- struct{}{}:
	case <-ctx.Done():
		cancel()
		return nil, fmt.Errorf("while running %s: an earlier run of LVM has not ended, which reads all disks of this host: one of them may hang: %w", program, context.Cause(ctx))
	}
	cmd := exec.CommandContext(ctx, "lvm", append([]string{program}, args...)...)
	cmd.WaitDelay = time.Second
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH"), "LVM_SUPPRESS_FD_WARNINGS=1"}
	type result struct {
		out []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		defer cancel()
		out, err := tool.Ask(cmd)
		<-one
		done <- result{out, err}
	}()
	select {
	case r := <-done:
		return r.out, explain(program, r.err)
	case <-ctx.Done():
	}
	select { // it ends at the same moment where it can be ended at all
	case r := <-done:
		if r.err == nil {
			return r.out, nil
		}
	case <-time.After(2 * cmd.WaitDelay):
	}
	return nil, fmt.Errorf("while running %s: it does not end in time, and reads all disks of this host: one of them may hang: %w", program, context.Cause(ctx))
}

// explain tells what LVM complained of.
func explain(program string, err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return fmt.Errorf("while running %s: %w", program, err)
	}
	return nil
}
