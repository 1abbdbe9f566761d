package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// limit bounds one command.
const limit = 2 * time.Minute

// run runs a command of holdfast on the first host that must succeed.
func (b *bed) run(args ...string) string {
	b.Helper()
	out, err := b.Holdfast(args...)
	if err != nil {
		b.Fatalf("%s\n%v", out, err)
	}
	return out
}

// apply applies a manifest on a host and returns what was printed and the exit code.
func (b *bed) apply(host int, manifest string, args ...string) (string, int) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := b.Lab.Host(host).Command(ctx, b.Binary, append([]string{"apply", "-f", "-"}, args...)...)
	cmd.Stdin = strings.NewReader(manifest)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		b.Fatalf("holdfast apply: %v\n%s", err, out)
	}
	return string(out), 0
}

// mustApply applies a manifest and waits until the cluster is ready.
func (b *bed) mustApply(manifest string) {
	b.Helper()
	start := time.Now()
	out, code := b.apply(1, manifest, "--wait", "--timeout", "100s")
	if code != 0 {
		b.Fatalf("holdfast apply --wait ended with %d:\n%s", code, out)
	}
	b.Logf("ready after %.1f s:\n%s", time.Since(start).Seconds(), out)
}

// ceph runs the real client on a host.
func (b *bed) ceph(args ...string) string {
	b.Helper()
	return b.run(append([]string{"ceph", "shell", "--", "ceph"}, args...)...)
}

// list reads objects of a kind in the namespace default, or in another one ("-n", name), or in all ("-A").
func list[T any](b *bed, kind string, args ...string) []T {
	b.Helper()
	items, err := listFrom[T](b, 1, kind, args...)
	if err != nil {
		b.Fatalf("reading %s: %v", kind, err)
	}
	return items
}

// listFrom is list by the server of a host.
func listFrom[T any](b *bed, server int, kind string, args ...string) ([]T, error) {
	var l struct{ Items []T }
	text, err := b.Get(server, home.Resource{Kind: kind, Namespace: namespaceIn(kind, args)})
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	return l.Items, err
}

// namespaceIn is the namespace that arguments of 'holdfast get' name.
func namespaceIn(kind string, args []string) string {
	switch {
	case len(args) == 2 && args[0] == "-n":
		return args[1]
	case len(args) == 1 && args[0] == "-A", kind == "hosts":
		return ""
	}
	return "default"
}

func (b *bed) daemons() []api.Daemon { return list[api.Daemon](b, "daemons") }

// daemonsFrom reads the daemons by the server of a host.
func (b *bed) daemonsFrom(host int) ([]api.Daemon, error) {
	return listFrom[api.Daemon](b, host, "daemons")
}

func (b *bed) daemon(name string) api.Daemon {
	b.Helper()
	for _, d := range b.daemons() {
		if d.Name == name {
			return d
		}
	}
	b.Fatalf("there is no daemon %s", name)
	return api.Daemon{}
}

func (b *bed) hostNamed(name string) *hosts.Host {
	b.Helper()
	for _, h := range b.Lab.Hosts() {
		if h.Name == name {
			return h
		}
	}
	b.Fatalf("there is no host %s", name)
	return nil
}

// cephHealthy fails the test if Ceph is not well.
func (b *bed) cephHealthy(mons, osds int) {
	b.Helper()
	if err := b.health(mons, osds); err != nil {
		b.Fatalf("%v\n%s", err, b.ceph("-s"))
	}
}

// health checks by Ceph's own word that the cluster is well and whole: all monitors in quorum, all OSDs up and in, all
// placement groups active+clean.
func (b *bed) health(mons, osds int) error {
	var s struct {
		Health struct {
			Status string
			Checks map[string]struct{ Summary struct{ Message string } }
		}
		QuorumNames []string `json:"quorum_names"`
		OSDMap      struct {
			OSDs int `json:"num_osds"`
			Up   int `json:"num_up_osds"`
			In   int `json:"num_in_osds"`
		}
		PGMap struct {
			PGs    int `json:"num_pgs"`
			States []struct {
				Name  string `json:"state_name"`
				Count int
			} `json:"pgs_by_state"`
		}
	}
	out, err := b.Holdfast("ceph", "shell", "--", "ceph", "-s", "-f", "json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		return fmt.Errorf("reading ceph -s: %w", err)
	}
	clean := 0
	for _, state := range s.PGMap.States {
		if state.Name == "active+clean" {
			clean = state.Count
		}
	}
	// Heartbeats that were slow, because a network was cut or the machine busy, are remembered by Ceph for minutes after.
	delete(s.Health.Checks, "OSD_SLOW_PING_TIME_BACK")
	delete(s.Health.Checks, "OSD_SLOW_PING_TIME_FRONT")
	// A mon that joined may keep its own first log message as a request, on which nothing waits, until it is restarted.
	if b.keepsOwnLog(s.Health.Checks["SLOW_OPS"].Summary.Message) {
		delete(s.Health.Checks, "SLOW_OPS")
	}
	if s.Health.Status == "HEALTH_ERR" || len(s.Health.Checks) > 0 || len(s.QuorumNames) != mons || s.OSDMap.OSDs != osds || s.OSDMap.Up != osds ||
		s.OSDMap.In != osds || clean != s.PGMap.PGs {
		return fmt.Errorf("Ceph is not well: %+v", s)
	}
	return nil
}

// slowMon finds the mon of which SLOW_OPS says that it alone has one slow request.
var slowMon = regexp.MustCompile(`^1 slow ops, .*, (mon[.]\w+) has slow ops$`)

// keepsOwnLog says whether the only slow request is a mon's own message for the log, by the mon's word.
func (b *bed) keepsOwnLog(check string) bool {
	found := slowMon.FindStringSubmatch(check)
	if found == nil {
		return false
	}
	out, err := b.Holdfast("ceph", "shell", "--", "ceph", "tell", found[1], "ops")
	var answer struct {
		Ops []struct{ Description string }
	}
	if err != nil || json.Unmarshal([]byte(out), &answer) != nil {
		return false
	}
	return slices.ContainsFunc(answer.Ops, func(op struct{ Description string }) bool {
		return strings.HasPrefix(op.Description, "log(")
	})
}

// noOrphans checks that Ceph knows exactly the keys, OSDs and monitors of the daemons that are wanted, and that exactly
// their processes run.
func (b *bed) noOrphans() {
	b.Helper()
	var wantKeys, wantProcesses, wantOSDs, osds []string
	for _, d := range b.daemons() {
		kind := strings.TrimPrefix(d.Spec.Type, "ceph-")
		wantProcesses = append(wantProcesses, d.Spec.Host+" "+d.Spec.Type+" "+d.Spec.ID)
		if kind != "mon" {
			wantKeys = append(wantKeys, kind+"."+d.Spec.ID)
		}
		if kind == "osd" {
			wantOSDs = append(wantOSDs, d.Spec.ID)
		}
	}
	wantKeys = append(wantKeys, "client.admin")
	compare(b, "keys in Ceph's auth database", b.keys(), wantKeys)
	compare(b, "processes", b.cephProcesses(), wantProcesses)
	var ids []int
	if err := json.Unmarshal([]byte(b.ceph("osd", "ls", "-f", "json")), &ids); err != nil {
		b.Fatalf("reading ceph osd ls: %v", err)
	}
	for _, id := range ids {
		osds = append(osds, strconv.Itoa(id))
	}
	compare(b, "OSDs in Ceph's map", osds, wantOSDs)
}

// keys are the entities in Ceph's auth database, but for the bootstrap keys that every monitor makes by itself, and "mon.", which is
// there when a monitor's store was rebuilt from the OSDs and in the monitors' keyrings alone otherwise.
func (b *bed) keys() []string {
	b.Helper()
	var dump struct {
		Entities []struct{ Entity string } `json:"auth_dump"`
	}
	if err := json.Unmarshal([]byte(b.ceph("auth", "ls", "-f", "json")), &dump); err != nil {
		b.Fatalf("reading ceph auth ls: %v", err)
	}
	var keys []string
	for _, e := range dump.Entities {
		if e.Entity != "mon." && !strings.HasPrefix(e.Entity, "client.bootstrap-") {
			keys = append(keys, e.Entity)
		}
	}
	return keys
}

// cephProcesses are the running Ceph daemons as "host program id".
func (b *bed) cephProcesses() []string {
	b.Helper()
	var all []string
	for _, h := range b.Lab.Hosts() {
		if !h.On() {
			continue
		}
		out := h.Run(b, context.Background(), "ps", "-e", "-o", "args=")
		for _, line := range strings.Split(out, "\n") {
			fields := strings.Fields(line)
			if len(fields) == 0 || !strings.Contains(fields[0], "ceph-") || slices.Contains(fields, "--mkfs") {
				continue
			}
			if i := slices.Index(fields, "-i"); i > 0 {
				program := fields[0][strings.LastIndex(fields[0], "/")+1:]
				all = append(all, fmt.Sprintf("%s %s %s", h.Name, program, fields[i+1]))
			}
		}
	}
	return all
}

func compare(b *bed, what string, got, want []string) {
	b.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		b.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// await waits for a condition, and says how long it took where that may interest.
func (b *bed) await(what string, check func() error) {
	b.Helper()
	b.awaitFor(home.Limit, what, check)
}

func (b *bed) awaitFor(limit time.Duration, what string, check func() error) {
	b.Helper()
	start := time.Now()
	home.AwaitFor(b.T, limit, what, check)
	if took := time.Since(start); took > time.Second {
		b.Logf("waited %.1f s for %s", took.Seconds(), what)
	}
}

// read reads one object by the server of a host.
func read[T any](b *bed, server int, kind, name string, args ...string) (T, error) {
	var object T
	text, err := b.Get(server, home.Resource{Kind: kind, Name: name, Namespace: namespaceIn(kind, args)})
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	return object, err
}
