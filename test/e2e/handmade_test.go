package e2e

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

//go:embed handmade.sh
var handmadeScript string

// handMadeMgrs is how many managers the cluster has.
const handMadeMgrs = 2

// handMade makes a Ceph cluster of a mon and an OSD on each host of a lab and managers on the first two, as a person would: in the places of Ceph's
// packages, with daemons that are named after their hosts.
func handMade(t *testing.T, lab *hosts.Lab) (fsid string) {
	t.Helper()
	fsid = uuid.NewString()
	var mons, addresses []string
	for _, h := range lab.Hosts() {
		mons = append(mons, fmt.Sprintf("%s=[v2:%s:3300,v1:%s:6789]", h.Name, h.IP, h.IP))
		addresses = append(addresses, h.IP)
	}
	conf := fmt.Sprintf("# by hand\n[global]\nfsid = %s\nmon host = %s\nauth allow insecure global id reclaim = false\nosd pool default min size = 2\n"+
		"mon cluster log to file = false\n", fsid, strings.Join(addresses, ","))
	for _, option := range slices.Sorted(maps.Keys(home.Quick)) {
		conf += option + " = " + home.Quick[option] + "\n"
	}
	seed := seedKeyring(t, lab)
	var group errgroup.Group
	for i, h := range lab.Hosts() {
		// Each host has a file of its own, as where OSDs are placed by it.
		own := conf + fmt.Sprintf("[osd]\ncrush location = root=default rack=r%d host=%s\nosd max backfills = %d\n", i+1, h.Name, i+1)
		for name, text := range map[string]string{"ceph.conf": own, "seed.keyring": seed} {
			if err := os.WriteFile(h.Path("/etc/ceph/"+name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		args := append([]string{"-c", handmadeScript + "\n", "handmade", h.Name, fmt.Sprint(i), uuid.NewString(), h.Disk(0).Path(), fsid}, mons...)
		cmd := h.Command(t.Context(), "bash", args...)
		if i < handMadeMgrs {
			cmd.Env = append(cmd.Env, "MGR="+h.Name)
		}
		group.Go(func() error {
			log, err := os.Create(h.Path("/var/log/ceph/handmade.log")) // the daemons keep it open
			if err != nil {
				return err
			}
			defer log.Close()
			cmd.Stdout, cmd.Stderr = log, log
			if err := cmd.Run(); err != nil {
				text, _ := os.ReadFile(log.Name())
				return fmt.Errorf("on %s: %w: %s", h.Name, err, text)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return fsid
}

// seedKeyring has the keys of all.
func seedKeyring(t *testing.T, lab *hosts.Lab) string {
	t.Helper()
	var b strings.Builder
	key := func(entity string, caps ...string) {
		secret := make([]byte, 28)
		copy(secret, "\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00") // AES, made at no time, 16 bytes
		if _, err := rand.Read(secret[12:]); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "[%s]\n\tkey = %s\n", entity, base64.StdEncoding.EncodeToString(secret))
		for _, c := range caps {
			fmt.Fprintf(&b, "\tcaps %s\n", c)
		}
	}
	key("mon.", `mon = "allow *"`)
	key("client.admin", `mon = "allow *"`, `osd = "allow *"`, `mds = "allow *"`, `mgr = "allow *"`)
	for i, h := range lab.Hosts() {
		if i < handMadeMgrs {
			key("mgr."+h.Name, `mon = "allow profile mgr"`, `osd = "allow *"`, `mds = "allow *"`)
		}
		key(fmt.Sprintf("osd.%d", i), `mgr = "allow profile osd"`, `mon = "allow profile osd"`, `osd = "allow *"`)
	}
	return b.String()
}

// started are the processes of Ceph in all hosts, each as "host program id" with its process and its start.
func started(t *testing.T, lab *hosts.Lab) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, h := range lab.Hosts() {
		out := h.Run(t, context.Background(), "ps", "-e", "-o", "pid=,lstart=,args=")
		for line := range strings.Lines(out) {
			f := strings.Fields(line)
			if len(f) < 7 || !strings.HasPrefix(f[6][strings.LastIndexByte(f[6], '/')+1:], "ceph-") {
				continue
			}
			if i := slices.Index(f, "-i"); i > 0 {
				all[h.Name+" "+f[6]+" "+f[i+1]] = strings.Join(f[:6], " ")
			}
		}
	}
	return all
}

var errStill = errors.New("not yet")
