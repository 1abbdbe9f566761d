package e2e

import (
	"fmt"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
)

// TestLastWords has daemons end for causes that only their logs tell: the Daemon's status and 'holdfast why' name the
// cause and the next step.
func TestLastWords(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 1)
	spec := home.SpecFor(b.Lab, 3, 2, 1)
	b.mustApply(spec.YAML())
	b.await("Ceph to be well", func() error { return b.health(3, 3) })
	h := b.Lab.Host(1)

	mon := b.daemonOf(1, "ceph-mon")
	b.run("daemon", "stop", mon.Name, "--wait")
	taken := b.listen(1, "3300")
	b.run("daemon", "start", mon.Name)
	b.endedFor(mon.Name, api.ReasonPortInUse, "port 3300 is taken by python3", "stop python3 on host h1")
	taken()
	b.await("Ceph to be well with the mon", func() error { return b.health(3, 3) })

	taken = b.listen(2, "7480")
	b.apply(1, storeYAML("s3", "gateways: {placement: {count: 1, hosts: [h2]}}"))
	b.await("the gateway to name who has its port", func() error {
		d, err := read[api.Daemon](b, 1, "daemons", "ceph-rgw-s3-a")
		if err == nil && !strings.Contains(d.Status.Message, "python3 (process ") {
			err = fmt.Errorf("it is %s: %s", d.Status.State, d.Status.Message)
		}
		return err
	})
	taken()
	b.await("the gateway to run", b.state("ceph-rgw-s3-a", api.DaemonRunning))

	osd := b.daemonOf(1, "ceph-osd")
	b.run("daemon", "stop", osd.Name, "--wait")
	// The label stays: without it the agent would not start the OSD at all.
	h.Run(t, t.Context(), "dd", "if=/dev/zero", "of="+h.Disk(0).Path(), "bs=4k", "seek=1", "count=1", "conv=notrunc")
	b.run("daemon", "start", osd.Name)
	b.endedFor(osd.Name, api.ReasonDataDamaged, "what Ceph keeps on its device is damaged", "'dmesg' on host h1")
}

// listen has another program listen on a port of a host, until the function that it returns is called.
func (b *bed) listen(host int, port string) (end func()) {
	b.Helper()
	h := b.Lab.Host(host)
	p := h.Start(b, "python3", "-c", "import socket,time; s=socket.create_server((\"\","+port+")); time.sleep(9999)")
	b.await("the port to be taken", func() error {
		_, err := h.Try(b.Context(), "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/"+port)
		return err
	})
	return func() { p.Kill(b) }
}

// state says whether a daemon is in a state.
func (b *bed) state(name string, want api.DaemonState) func() error {
	return func() error {
		if d := b.daemon(name); d.Status.State != want {
			return fmt.Errorf("it is %s: %s", d.Status.State, d.Status.Message)
		}
		return nil
	}
}

// endedFor waits until a daemon has ended for a cause, and looks for it and the next step in what 'why' says.
func (b *bed) endedFor(name string, cause api.Reason, says, next string) {
	b.Helper()
	b.await(name+" to end for "+string(cause), func() error {
		d, err := read[api.Daemon](b, 1, "daemons", name)
		if err != nil {
			return err
		}
		e := d.Status.LastExit
		if d.Status.State != api.DaemonBackOff || e == nil || e.Cause != cause {
			return fmt.Errorf("it is %s: %s: %+v", d.Status.State, d.Status.Message, e)
		}
		if !strings.Contains(d.Status.Message, says) {
			return fmt.Errorf("its message is %q", d.Status.Message)
		}
		return nil
	})
	d := b.daemon(name)
	out := b.run("why", strings.TrimPrefix(d.Spec.Type, "ceph-")+"."+d.Spec.ID)
	if !strings.Contains(out, says) || !strings.Contains(out, next) {
		b.Errorf("why %s: %s", name, out)
	}
}
