package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
)

// nfsExport declares an export of the volume data.
func nfsExport(name, more string) string {
	if !strings.Contains(more, "squash:") {
		more += ", squash: None"
	}
	return fmt.Sprintf(`---
apiVersion: holdfast.io/v1alpha1
kind: NFSExport
metadata: {name: %s}
spec: {cluster: gluster, volume: data%s}
`, name, more)
}

// TestGlusterNFS exports a volume by NFS. A client in user space (the kernel here may have none) writes and reads; the server is killed and comes
// back, its node loses its power and another one serves; exports are added and deleted beside it; and the volume waits for its exports when it is
// deleted.
func TestGlusterNFS(t *testing.T) {
	begin(t)
	b := glusterBed(t, 3)
	spec := glusterPool + glusterVolume("data", "300Mi", "replicate: {count: 3}")
	for _, h := range b.Lab.Hosts() {
		spec += glusterNode(h, 1)
	}
	exports := nfsExport("data", "")
	b.applies(1, spec+exports)
	b.awaitPool("the export to be served", b.exported(1, "data"))
	b.nfsPut("data", "before")
	for _, step := range []struct {
		name string
		do   func(*bed)
	}{
		{"the server is killed", (*bed).nfsKilled},
		{"exports come and go beside it", (*bed).nfsBeside},
		{"rights are taken away", (*bed).nfsRights},
		{"its node loses its power", (*bed).nfsNodeLost},
		{"the volume waits for its exports", (*bed).nfsVolumeWaits},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(&bed{t, b.Home}) }) {
			return
		}
	}
	b.glusterGone(spec)
}

// export reads an NFSExport that is there.
func (b *bed) export(server int, name string) (*api.NFSExport, error) {
	e, err := read[api.NFSExport](b, server, "nfsexports", name)
	return &e, err
}

// exported checks that an export is served.
func (b *bed) exported(server int, name string) func() error {
	return func() error {
		e, err := b.export(server, name)
		if err == nil && e.Status.State != api.ResourceOnline {
			err = fmt.Errorf("it is %s: %s", e.Status.State, e.Status.Message)
		}
		return err
	}
}

// nfs runs a program of libnfs on the first host that is on. The last argument is a path within the export.
func (b *bed) nfs(export, path, program string, args ...string) (string, error) {
	b.Helper()
	e, err := b.export(b.someServer(), export)
	if err != nil {
		return "", err
	}
	url := "nfs://" + strings.Replace(e.Status.Source, ":", "", 1) + "/" + path + "?version=4"
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return b.Lab.Host(b.someServer()).Try(ctx, program, append(args, url)...)
}

// someServer is a host that is on.
func (b *bed) someServer() int {
	for i, h := range b.Lab.Hosts() {
		if h.On() {
			return i + 1
		}
	}
	return 1
}

// nfsPut writes a file by NFS that has its own name in it, and reads it back by NFS.
func (b *bed) nfsPut(export, name string) {
	b.Helper()
	file := "/var/lib/" + name
	if err := os.WriteFile(b.Lab.Host(b.someServer()).Path(file), []byte(name), 0o600); err != nil {
		b.Fatalf("%v", err)
	}
	b.awaitPool(name+" to be written by NFS", func() error {
		_, err := b.nfs(export, name, "nfs-cp", file)
		return err
	})
	b.nfsHas(export, name)
}

// nfsHas fails the test unless a file reads by NFS as it was written.
func (b *bed) nfsHas(export, name string) {
	b.Helper()
	b.awaitPool(name+" to be read by NFS", func() error {
		if out, err := b.nfs(export, name, "nfs-cat"); err != nil || out != name {
			return fmt.Errorf("it reads %q: %w", out, err)
		}
		return nil
	})
}

// nfsServer is the Daemon of the NFS server.
func (b *bed) nfsServer(server int) (*api.Daemon, error) {
	daemons, err := b.daemonsFrom(server)
	for i := range daemons {
		if daemons[i].Spec.Type == ganesha.Type && daemons[i].DeletionTimestamp == nil {
			return &daemons[i], nil
		}
	}
	return nil, errors.Join(err, errors.New("there is no NFS server"))
}

// nfsKilled kills the server: it is started again.
func (b *bed) nfsKilled() {
	d, err := b.nfsServer(1)
	if err != nil {
		b.Fatalf("%v", err)
	}
	b.hostNamed(d.Spec.Host).Run(b, b.Context(), "bash", "-c", "kill -9 $(pgrep -x ganesha.nfsd)")
	b.awaitPool("the server to be started again", func() error {
		if now, err := b.nfsServer(1); err != nil || now.Status.Restarts == 0 {
			return fmt.Errorf("it was not: %w", err)
		}
		return nil
	})
	b.awaitPool("the export to be served", b.exported(1, "data"))
	b.nfsHas("data", "before")
	b.nfsPut("data", "killed")
}

// nfsBeside adds an export that may be read alone, one that nobody here may use, and one that cannot be; and takes them away. The process stays.
func (b *bed) nfsBeside() {
	was, err := b.nfsServer(1)
	if err != nil {
		b.Fatalf("%v", err)
	}
	others := nfsExport("reads", ", accessType: ReadOnly") + nfsExport("theirs", ", clients: [192.0.2.0/24]")
	b.applies(1, others)
	for _, name := range []string{"reads", "theirs"} {
		b.awaitPool("the export "+name+" to be served", b.exported(1, name))
	}
	b.nfsHas("reads", "killed")
	if out, err := b.nfs("reads", "no", "nfs-cp", "/etc/hostname"); err == nil {
		b.Errorf("a file was written where files may be read alone: %s", out)
	}
	if out, err := b.nfs("theirs", "killed", "nfs-cat"); err == nil {
		b.Errorf("a client that may not use it reads %q", out)
	}
	if out, code := b.apply(1, nfsExport("again", ", pseudo: /data")); code != 3 || !strings.Contains(out, "has the pseudo path /data already") {
		b.Errorf("holdfast apply ended with %d:\n%s", code, out)
	}
	b.run("delete", "nfsexport", "reads")
	b.run("delete", "nfsexport", "theirs")
	if out, err := b.nfs("data", "killed", "nfs-cat"); err != nil || out != "killed" {
		b.Errorf("it reads %q: %v", out, err)
	}
	if now, err := b.nfsServer(1); err != nil || now.Status.PID != was.Status.PID {
		b.Errorf("the server was process %d, and is %d: %v", was.Status.PID, now.Status.PID, err)
	}
}

// nfsNodeLost takes the power of the node that serves: another one does.
func (b *bed) nfsNodeLost() {
	d, err := b.nfsServer(1)
	if err != nil {
		b.Fatalf("%v", err)
	}
	off := b.hostNamed(d.Spec.Host)
	off.PowerOff(b)
	b.awaitPool("another node to serve", func() error {
		e, err := b.export(b.someServer(), "data")
		if err == nil && (e.Status.Node == off.Name || e.Status.State != api.ResourceDegraded) { // its volume misses a brick
			err = fmt.Errorf("%s on %s: %s", e.Status.State, e.Status.Node, e.Status.Message)
		}
		return err
	})
	b.nfsHas("data", "before")
	b.nfsPut("data", "moved")
	off.PowerOn(b)
	b.StartServer(b, b.number(off.Name))
	b.awaitPool("all to be well", func() error {
		return errors.Join(b.bricksServe(b.someServer(), "data", 3)(), b.exported(b.someServer(), "data")())
	})
	b.awaitPool("one server to be left", func() error {
		if out := off.Run(b, b.Context(), "bash", "-c", "pgrep -x ganesha.nfsd || true"); strings.TrimSpace(out) != "" {
			return fmt.Errorf("%s has another one", off.Name)
		}
		return nil
	})
}

// nfsVolumeWaits deletes the volume before its export.
func (b *bed) nfsVolumeWaits() {
	b.deleteByPlan("volume/data", "--wait=false")
	b.awaitPool("the reason to be told", func() error {
		v, err := read[api.Volume](b, 1, "volumes", "data")
		if err == nil && !strings.Contains(v.Status.Message, "delete NFSExport data first") {
			err = fmt.Errorf("%s: %s", v.Status.State, v.Status.Message)
		}
		return err
	})
	b.nfsHas("data", "moved")
	b.deleteByPlan("nfsexport/data") // with it, the data of the volume goes
	b.awaitPool("the server to be gone", func() error {
		if d, err := b.nfsServer(1); err == nil {
			return fmt.Errorf("it is on %s", d.Spec.Host)
		}
		return nil
	})
}

// deleteByPlan deletes what destroys data.
func (b *bed) deleteByPlan(object string, args ...string) {
	b.Helper()
	plan := regexp.MustCompile("plan-[0-9a-f]+").FindString(b.run("plan", "--delete", object))
	b.run(append([]string{"delete", "--plan", plan}, args...)...)
}
