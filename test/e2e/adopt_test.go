package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// TestAdopt takes over a real cluster that was made by hand, while a client writes to it: it is looked at, adopted, forgotten, adopted
// again, and handed over, with an agent that is killed on the way. Nothing is restarted before the hand-over, and each daemon once by it.
func TestAdopt(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 3, Disks: 1})
	handMade(t, lab)
	b := &bed{t, home.Start(t, lab, binary)}
	b.await("the cluster that was made by hand", func() error {
		return b.byHand("ceph osd pool create client 8 >&2 && ceph osd pool application enable client test >&2")
	})
	client := b.newClient(1, "client")
	client.command = client.script("rados", "client")
	client.start(b)
	places := b.placesByHand()
	for _, h := range lab.Hosts() { // what the kernel calls a machine does not count
		h.Run(t, t.Context(), "hostname", "DEBIAN")
	}
	before := started(t, lab)
	if len(before) != 8 {
		t.Fatalf("%v", before)
	}
	unchanged := func(what string) {
		t.Helper()
		if now := started(t, lab); !maps.Equal(before, now) {
			t.Fatalf("%s: processes are others:\n%v\n%v", what, before, now)
		}
	}

	b.refusedAdoption("has no key of client.nobody", "--name", "client.nobody")
	wrong := b.Lab.Host(1).Path("/var/wrong.keyring")
	if err := os.WriteFile(wrong, []byte("[client.admin]\nkey = AQDAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAAAAAA\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.refusedAdoption("cannot connect to the cluster", "--keyring", "/var/wrong.keyring")
	words := b.adopt(false)
	for _, want := range []string{
		"mon." + lab.Host(3).Name, "osd.2", lab.Host(1).Disk(0).ID(), "hand", "/var/lib/ceph/mon/ceph-",
		"osd.0 osd_max_backfills = 1, osd.1 osd_max_backfills = 2, osd.2 osd_max_backfills = 3", "each OSD keeps its CRUSH location",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("it does not tell of %q:\n%s", want, words)
		}
	}
	if n := len(b.daemons()); n != 0 {
		t.Fatalf("looking made %d Daemons", n)
	}

	b.adopt(true)
	b.await("the cluster to be online", b.watchedOnline)
	unchanged("adopted")
	b.undoAdoption()
	unchanged("forgotten")
	b.adopt(true)
	b.await("the cluster to be online", b.watchedOnline)
	unchanged("adopted again")
	client.goesOn(t)

	first := lab.Host(1).Name
	b.run("ceph", "adopt", "ceph", "--hand-over", "--hosts", first, "--approve", b.code(b.run("ceph", "adopt", "ceph", "--hand-over", "--hosts", first)))
	b.await("what is Holdfast's to be told so", func() error {
		if out, err := b.Holdfast("ceph", "adopt", "ceph"); err != nil || strings.Count(out, "stays daemon/") != 3 {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	b.handOver()
	b.await("all to be Holdfast's", func() error { return b.health(3, 3) })
	for name, was := range started(t, lab) {
		if before[name] == was {
			t.Errorf("%s is the process of before", name)
		}
	}
	for _, h := range lab.Hosts() {
		if left := h.Run(t, t.Context(), "sh", "-c", "ps -e -o args= | grep -E '^(/usr/bin/)?ceph-(mon|mgr|osd)' | grep -v agent/daemons || true"); left != "" {
			t.Errorf("on %s run still: %s", h.Name, left)
		}
	}
	b.await("the cluster to be online", func() error {
		s := list[api.StorageStatus](b, "storagestatuses")
		if len(s) != 1 || s[0].Status.Status != api.StorageOnline {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	client.goesOn(t)
	client.end(t)
	compare(b, "the places of the OSDs", b.placesByHand(), places)
	// Holdfast sets the options after the last daemon is handed over.
	b.await("the option of osd.2 to be set", func() error {
		if out := b.ceph("config", "get", "osd.2", "osd_max_backfills"); strings.TrimSpace(out) != "3" {
			return errors.New(out)
		}
		return nil
	})
	b.staysWhereItWasPut()
	b.noOrphans()
}

// placesByHand is where CRUSH has each OSD: "osd.0 in h1 in r1 in default".
func (b *bed) placesByHand() (places []string) {
	b.Helper()
	for id := range b.Lab.Hosts() {
		var at struct {
			Crush map[string]string `json:"crush_location"`
		}
		b.await(fmt.Sprintf("Ceph to tell where osd.%d is", id), func() error {
			out, err := b.Lab.Host(1).Try(context.Background(), "timeout", "20", "ceph", "osd", "find", fmt.Sprint(id), "-f", "json")
			if err != nil {
				return err
			}
			return json.Unmarshal([]byte(out), &at)
		})
		places = append(places, fmt.Sprintf("osd.%d in %s in %s in %s", id, at.Crush["host"], at.Crush["rack"], at.Crush["root"]))
	}
	return places
}

// staysWhereItWasPut moves an OSD to a bucket that a person made, and has it started again: it stays, and that is told.
func (b *bed) staysWhereItWasPut() {
	b.Helper()
	b.await("osd.0 to be moved", func() error { return b.byHand("ceph osd crush move osd.0 root=default rack=r1 host=mine >&2") })
	b.osdAgain()
	if at := b.placesByHand()[0]; at != "osd.0 in mine in r1 in default" {
		b.Errorf("it does not stay where it was put: %s", at)
	}
	b.await("its place to be told", func() error {
		c := meta.FindStatusCondition(list[api.StorageCluster](b, "storageclusters")[0].Status.Conditions, api.ClusterPlaced)
		if c == nil || c.Reason != api.PlacesElsewhere {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
}

// byHand runs a shell command with Ceph's own tools and files on the first host.
func (b *bed) byHand(command string) error {
	_, err := b.Lab.Host(1).Try(context.Background(), "timeout", "20", "bash", "-c", command)
	return err
}

// adopt looks at the cluster, and adopts it by the code that is printed then.
func (b *bed) adopt(approve bool) string {
	b.Helper()
	var out string
	b.await("the cluster to be adoptable", func() (err error) {
		out, err = b.Holdfast("ceph", "adopt", "ceph")
		return err
	})
	b.Logf("%s", out)
	if approve {
		out = b.run("ceph", "adopt", "ceph", "--approve", b.code(out))
	}
	return out
}

func (b *bed) code(out string) string {
	b.Helper()
	code := regexp.MustCompile(`--approve ([0-9a-f]+)`).FindStringSubmatch(out)
	if code == nil {
		b.Fatalf("it names no code: %s", out)
	}
	return code[1]
}

// refusedAdoption expects exit code 3, and a reason.
func (b *bed) refusedAdoption(why string, args ...string) {
	b.Helper()
	out, err := b.Holdfast(append([]string{"ceph", "adopt", "ceph"}, args...)...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(out+err.Error(), why) {
		b.Fatalf("%v: %s", err, out)
	}
}

// watchedOnline says whether all eight daemons are watched and the cluster is well.
func (b *bed) watchedOnline() error {
	for _, d := range b.daemons() {
		if d.Spec.State != api.WantWatched || d.Status.State != api.DaemonRunning {
			return fmt.Errorf("%s: %s, %s", d.Name, d.Spec.State, d.Status.State)
		}
	}
	s := list[api.StorageStatus](b, "storagestatuses")
	if len(s) != 1 || s[0].Status.Status != api.StorageOnline {
		return fmt.Errorf("%+v", s)
	}
	return nil
}

func (b *bed) undoAdoption() {
	b.Helper()
	b.Logf("%s", b.run("ceph", "adopt", "ceph", "--undo", "--approve", b.code(b.run("ceph", "adopt", "ceph", "--undo"))))
	if n := len(b.daemons()) + len(list[api.StorageNode](b, "storagenodes")) + len(list[api.StorageCluster](b, "storageclusters")); n != 0 {
		b.Fatalf("%d objects are left", n)
	}
}

// handOver hands all over. The agent of the third host is killed while its mon is in its turn.
func (b *bed) handOver() {
	b.Helper()
	code := b.code(b.run("ceph", "adopt", "ceph", "--hand-over"))
	done := make(chan error, 1)
	go func() {
		out, err := b.Holdfast("ceph", "adopt", "ceph", "--hand-over", "--approve", code)
		b.Logf("%s", out)
		done <- err
	}()
	third := "ceph-mon-" + b.Lab.Host(3).Name
	b.await("the third mon to be handed over", func() error {
		i := slices.IndexFunc(b.daemons(), func(d api.Daemon) bool { return d.Name == third && d.Spec.State == api.WantRunning })
		if i < 0 {
			return errStill
		}
		return nil
	})
	b.Server(3).Kill(b)
	b.StartServer(b, 3)
	if err := <-done; err != nil {
		b.Fatalf("handing over: %v", err)
	}
}
