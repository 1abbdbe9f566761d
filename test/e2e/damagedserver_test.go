package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

const databaseFile = dataDir + "/etcd/member/snap/db"

// TestDamagedServer damages the database of one of three servers. While the others are a quorum it
// gets their data, once a day; the agent of its machine works meanwhile; and without a quorum
// people learn at once which servers do not answer, and what is damaged.
func TestDamagedServer(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 3, Disks: 1})
	b := &bed{t, home.StartServers(t, lab, binary, 3)}
	b.AwaitHosts(t, 3)
	third := lab.Host(3)
	three := func(q home.Quorum) bool { return len(q.Members) == 3 && b.votes(q, third.Name) && q.Degraded == "" }
	b.quorum(1, "three members", three)

	b.damageDatabase(3)
	begun := time.Now()
	b.StartServer(t, 3)
	b.await("the damaged files to be moved aside", func() error { return logged(third, "and were moved aside") })
	b.await("a new database", func() error {
		_, err := os.Stat(third.Path(databaseFile))
		return err
	})
	b.quorum(1, "three members again", three)
	t.Logf("whole again after %s", time.Since(begun).Round(time.Second))
	if out, _ := b.HoldfastOn(3, "doctor"); !strings.Contains(out, "this server got the data of the others") { // it warns
		t.Errorf("the doctor does not say that the files were damaged:\n%s", out)
	}

	b.damageDatabase(3)
	b.StartServer(t, 3)
	b.await("the second damage to be left to a person", func() error { return logged(third, "are damaged again") })
	b.await("the agent of its machine", func() error {
		if n, err := b.connectedOver(1); err != nil || n != 3 {
			return fmt.Errorf("%d of 3 agents are connected: %w", n, err)
		}
		return nil
	})

	b.Server(2).Stop(t, 30*time.Second)
	b.Server(1).Kill(t)
	b.saysLost(3, "etcd/member/snap/db", "holdfast restore")
}

// saysLost checks that commands on a host say at once which servers do not answer.
func (b *bed) saysLost(number int, words ...string) {
	b.Helper()
	for _, h := range b.Lab.Hosts()[:2] {
		words = append(words, h.IP)
	}
	name := b.Lab.Host(number).Name
	for _, command := range [][]string{{"quorum"}, {"status"}, {"get", "hosts"}, {"why", "host/" + name}} {
		begun := time.Now()
		out, err := b.HoldfastOn(number, command...)
		took := time.Since(begun).Round(100 * time.Millisecond)
		out += fmt.Sprint(err)
		b.Logf("%v, after %s: %s", command, took, out)
		for _, word := range append(words, "no server answered") {
			if err == nil || !strings.Contains(out, word) {
				b.Errorf("%v does not say %q", command, word)
			}
		}
		if took > 5*time.Second {
			b.Errorf("%v took %s", command, took)
		}
	}
}

// damageDatabase stops a server and overwrites both pages at the head of its database.
func (b *bed) damageDatabase(number int) {
	b.Helper()
	b.Server(number).Stop(b, 30*time.Second)
	b.Lab.Host(number).Run(b, context.Background(),
		"dd", "if=/dev/zero", "of="+databaseFile, "bs=4096", "count=2", "conv=notrunc")
}

// connectedOver counts the hosts whose agents are connected, by the word of a server.
func (b *bed) connectedOver(number int) (n int, err error) {
	out, err := b.HoldfastOn(number, "get", "hosts", "-o", "json")
	if err != nil {
		return 0, err
	}
	var list api.HostList
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return 0, err
	}
	for _, h := range list.Items {
		if meta.IsStatusConditionTrue(h.Status.Conditions, api.HostAgentConnected) {
			n++
		}
	}
	return n, nil
}

// TestFailedDisk has the disk of a server return I/O errors while it runs, after which its file
// system is read-only. The member ends with a sentence that says what to do, the others work, and
// the server is back when the disk is.
func TestFailedDisk(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 3, Disks: 1})
	failing := lab.Host(3)
	// What is written to the disk takes memory of a small file system: when that is full, the disk fails.
	failing.Run(t, t.Context(), "sh", "-c", "mkdir -p /run/back "+dataDir+
		" && mount -t tmpfs -o size=400m back /run/back && truncate -s 3G /run/back/disk && mkfs.ext4 -q /run/back/disk"+
		" && mount -o loop,errors=remount-ro /run/back/disk "+dataDir)
	b := &bed{t, home.StartServers(t, lab, binary, 3)}
	three := func(q home.Quorum) bool { return len(q.Members) == 3 && b.votes(q, failing.Name) && q.Degraded == "" }
	b.quorum(1, "three members", three)

	// While it takes its seat it does not end, but tries again.
	const held = "this server holds a member of etcd now"
	b.await("the server to hold its seat", func() error { return logged(failing, held) })
	failing.Run(t, t.Context(), "sh", "-c", "cat /dev/zero >/run/back/filler 2>/dev/null; true")
	b.await("the server to end", func() error {
		b.run("host", "label", failing.Name, "disk=bad") // Something is written.
		b.run("host", "label", failing.Name, "disk-")
		select {
		case <-b.Server(3).Done():
			return nil
		default:
			return errors.New("it runs")
		}
	})
	if err := logged(failing, "check 'dmesg'"); err != nil {
		t.Error(err)
	}
	b.quorum(1, "the other two", func(q home.Quorum) bool { return !b.votes(q, failing.Name) && q.Degraded != "" })

	failing.Run(t, t.Context(), "sh", "-c", "rm /run/back/filler && umount "+dataDir+
		" && (e2fsck -fy /run/back/disk >&2; true) && mount -o loop /run/back/disk "+dataDir)
	b.StartServer(t, 3)
	b.quorum(1, "three members again", three)

	// It serves, and has no quorum.
	b.Server(1).Kill(t)
	b.Server(2).Kill(t)
	b.saysLost(3)
}
