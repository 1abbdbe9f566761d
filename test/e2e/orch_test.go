package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
)

// orchOf has a cluster answer 'ceph orch', or not.
func orchOf(wanted home.Spec, state string) string {
	const mgr = "    mgr: {count: 2}\n"
	return strings.Replace(wanted.YAML(), mgr, mgr+"    orch: {state: "+state+"}\n", 1)
}

// TestOrch asks a real ceph-mgr what it shows by 'ceph orch': in a cluster that is made with it, after
// another mgr took over, and in one that gets it later.
func TestOrch(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 1) // a mgr may call a server that does not lead
	wanted := home.SpecFor(b.Lab, 3, 2, 1)
	wanted.Interval = "2s"
	b.mustApply(orchOf(wanted, "Enabled"))
	b.awaitOrch()
	t.Run("reads", func(t *testing.T) { (&bed{t, b.Home}).orchReads() })
	t.Run("another mgr", func(t *testing.T) { (&bed{t, b.Home}).orchAfterMgr() })
	t.Run("another host's certificate", func(t *testing.T) { (&bed{t, b.Home}).orchStranger() })
	t.Run("turned off and on", func(t *testing.T) { (&bed{t, b.Home}).orchTurned(wanted) })
	b.noOrphans()
}

// orch runs 'ceph orch' with arguments. The answer has the text of an error, too.
func (b *bed) orch(args ...string) (string, error) {
	out, err := b.Holdfast(append([]string{"ceph", "shell", "--", "ceph", "orch"}, args...)...)
	if err != nil {
		return err.Error(), err
	}
	return out, nil
}

// orchSays fails the test if 'ceph orch' does not answer with all of these texts.
func (b *bed) orchSays(args string, texts ...string) string {
	b.Helper()
	out, err := b.orch(strings.Fields(args)...)
	if err != nil {
		b.Errorf("ceph orch %s: %v\n%s", args, err, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			b.Errorf("ceph orch %s does not say %q:\n%s", args, text, out)
		}
	}
	return out
}

func (b *bed) awaitOrch() {
	b.Helper()
	b.await("'ceph orch' to answer", func() error {
		if out, err := b.orch("status"); err != nil || !strings.Contains(out, "Available: Yes") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

func (b *bed) orchReads() {
	b.run("host", "label", "h1", "ceph.holdfast.io/label.gw=")
	b.orchSays("status", "Backend: holdfast", "Available: Yes", "Paused: No")
	b.orchSays("status -f json", `"available": true`, `"backend": "holdfast"`, `"paused": false`)
	for _, h := range b.Lab.Hosts() {
		b.orchSays("host ls", h.Name, h.IP)
	}
	b.orchSays("host ls", "gw")
	b.orchHosts()
	b.orchDevices()
	b.orchSays("ls", "mon ", "3/3", "mgr ", "2/2", "osd ", "<unmanaged>")
	b.orchSays("ls mon -f yaml", "service_type: mon", "running: 3", "size: 3")
	b.orchSays("ls --export", "service_type: mgr", "count: 2", "service_type: osd", "unmanaged: true")
	b.orchDaemons()
	out, err := b.orch("upgrade", "status")
	if err == nil || !strings.Contains(out, "does not support `orch upgrade status`") {
		b.Errorf("what Holdfast does not do: %v\n%s", err, out)
	}
}

func (b *bed) orchHosts() {
	var hosts []struct {
		Hostname, Addr, Status string
		Labels                 []string
	}
	if err := json.Unmarshal([]byte(b.orchSays("host ls -f json")), &hosts); err != nil || len(hosts) != 3 {
		b.Fatalf("%v: %+v", err, hosts)
	}
	h := hosts[0]
	if h.Hostname != "h1" || h.Addr != b.Lab.Host(1).IP || h.Status != "" || !slices.Equal(h.Labels, []string{"gw"}) {
		b.Errorf("%+v", h)
	}
}

// orchDevices compares what is told of disks with what the Hosts say.
func (b *bed) orchDevices() {
	id := b.Lab.Host(2).Disk(0).ID()
	b.orchSays("device ls", "HOST", id)
	b.orchSays("device ls h2 --wide", id, "holds OSD")
	var hosts []struct {
		Name    string
		Devices []struct {
			Path      string
			Available bool
			Device_id string         //nolint:staticcheck // as Ceph has it
			Sys_api   map[string]any //nolint:staticcheck // as Ceph has it
		}
	}
	err := json.Unmarshal([]byte(b.orchSays("device ls h2 -f json --refresh")), &hosts)
	if err != nil || len(hosts) != 1 || hosts[0].Name != "h2" {
		b.Fatalf("%v: %+v", err, hosts)
	}
	host, err := read[api.Host](b, 1, "hosts", "h2")
	if err != nil {
		b.Fatal(err)
	}
	for _, d := range hosts[0].Devices {
		i := slices.IndexFunc(host.Status.Devices, func(x api.Device) bool { return x.ID == d.Device_id })
		if i < 0 {
			b.Fatalf("%+v is not what the Host says: %+v", d, host.Status.Devices)
		}
		is := &host.Status.Devices[i]
		if float64(is.Size.Value()) != d.Sys_api["size"] || d.Available != (is.Taken() == "") {
			b.Errorf("%+v is not what the Host says: %+v", d, is)
		}
	}
}

func (b *bed) orchDaemons() {
	var daemons []struct {
		Daemon_type, Daemon_id, Hostname, Version, Status_desc string //nolint:staticcheck // as Ceph has it
		Status                                                 int
		Started                                                string
	}
	if err := json.Unmarshal([]byte(b.orchSays("ps -f json")), &daemons); err != nil {
		b.Fatal(err)
	}
	var told, want []string
	for _, d := range daemons {
		told = append(told, d.Daemon_type+"."+d.Daemon_id+" "+d.Hostname)
		if d.Status != 1 || d.Version == "" || d.Started == "" {
			b.Errorf("%+v", d)
		}
	}
	for _, d := range b.daemons() {
		want = append(want, strings.TrimPrefix(d.Spec.Type, "ceph-")+"."+d.Spec.ID+" "+d.Spec.Host)
	}
	slices.Sort(told)
	slices.Sort(want)
	if !slices.Equal(told, want) {
		b.Errorf("ceph orch ps has %v, and there are %v", told, want)
	}
	out := b.orchSays("ps h1 --daemon-type osd", "osd.")
	if strings.Contains(out, "mon.") || strings.Count(out, "osd.") != 1 {
		b.Errorf("%s", out)
	}
}

// orchAfterMgr has another mgr take over.
func (b *bed) orchAfterMgr() {
	before := b.mgrs().Active
	b.ceph("mgr", "fail")
	b.await("another mgr", func() error {
		if m := b.mgrs(); m.Active == before || !m.Available {
			return fmt.Errorf("%+v", m)
		}
		return nil
	})
	b.awaitOrch()
	b.orchSays("ps", "mon.a", "osd.0")
}

// orchStranger calls as a host that has no mgr of the cluster, and for a cluster that is not the mgr's.
func (b *bed) orchStranger() {
	managers := map[string]bool{}
	for _, d := range b.daemons() {
		if d.Spec.Type == "ceph-mgr" {
			managers[d.Spec.Host] = true
		}
	}
	for _, h := range b.Lab.Hosts() {
		for _, cluster := range []string{"ceph", "other"} {
			want := "403"
			if managers[h.Name] && cluster == "ceph" {
				want = "200"
			}
			const dir = "/var/lib/holdfast/host"
			out, err := h.Command(context.Background(), "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}",
				"--max-time", "10", "-X", "POST", "-d", "{}",
				"--cacert", dir+"/ca.crt", "--cert", dir+"/host.crt", "--key", dir+"/host.key",
				"--connect-to", "holdfast::"+b.Lab.Host(1).IP+":7440",
				"https://holdfast/holdfast/v1/orch/default/"+cluster+"/get_hosts").CombinedOutput()
			if err != nil || string(out) != want {
				b.Errorf("%s calls for cluster %s: %s, %v; want %s", h.Name, cluster, out, err, want)
			}
		}
	}
}

// orchTurned turns 'ceph orch' off and on again: mgrs are started again one by one, and nothing else is.
func (b *bed) orchTurned(wanted home.Spec) {
	b.mustApply(orchOf(wanted, "Disabled"))
	b.await("'ceph orch' to answer no more", func() error {
		if out, err := b.orch("status"); err == nil || !strings.Contains(out, "No orchestrator configured") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	before := map[string]int32{}
	for _, d := range b.daemons() {
		before[d.Name] = d.Status.PID
	}
	b.mustApply(orchOf(wanted, "Enabled"))
	b.awaitOrch()
	for _, d := range b.daemons() {
		if d.Spec.Type != "ceph-mgr" && d.Status.PID != before[d.Name] {
			b.Errorf("%s was started again", d.Name)
		}
	}
}
