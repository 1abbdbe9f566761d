package ceph

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/engine"
)

// TestRealFilesystem makes a filesystem in a real Ceph, kills the MDS at work, has two share the work, and takes all of it away again.
func TestRealFilesystem(t *testing.T) {
	quota := resource.MustParse("1Gi")
	w := realWorld()
	w.filesystems = append(w.filesystems, filesystemOf("home", func(f *api.Filesystem) {
		f.Spec.DeletionPolicy, f.Spec.SubvolumeGroups = api.DeletionWipe, []api.SubvolumeGroup{{Name: "users", Quota: &quota}}
		f.Spec.DataPools = []api.FilesystemDataPool{{}, {Name: "cold", FilesystemPool: api.FilesystemPool{ErasureCoded: &api.PoolErasureCoded{DataChunks: 2, CodingChunks: 1}}}}
	}))
	a, c := bringUpReal(t, w)
	s := w.filesystems[0].Status
	if s.State != api.ResourceOnline || s.Active == "" || s.Standby == "" || len(s.SubvolumeGroups) != 1 || len(s.Pools) != 3 {
		t.Fatalf("%+v", s)
	}
	out, err := c.Mon(t.Context(), ask("fs dump"), nil)
	if err != nil {
		t.Fatal(err)
	}
	missing := missingKeys(readRecord(t, "fs dump"), decodeAny(t, out), "fs dump")
	missing = slices.DeleteFunc(missing, func(key string) bool { return strings.Contains(key, "/gid_") }) // which has a number of its own
	if len(missing) > 0 {
		t.Errorf("a real answer lacks what the recorded one has: %v", missing)
	}
	checkRestarts(t, w, c, "mds ok-to-stop", "standby MDS daemons to stop active gids", []string{s.Active, s.Standby}, "c-mds-"+s.Active, "c-mds-"+s.Standby)
	killed := rankZero(t, c)
	begun := time.Now()
	cmd := a.running["c-mds-"+s.Active]
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	delete(a.running, "c-mds-"+s.Active)
	// It is started again at once, and Ceph takes that as its failure. Which of the two is at work then is Ceph's choice.
	a.until("another process has the rank", 30*time.Second, func(*engine.Plan) bool { return rankZero(t, c) != killed })
	a.until("the filesystem is at work", 30*time.Second, func(*engine.Plan) bool {
		s := w.filesystems[0].Status
		return s.State == api.ResourceOnline && s.Active != "" && s.Standby != ""
	})
	t.Logf("an MDS that was killed was started again, and the filesystem was at work and had a standby, after %.1f s", time.Since(begun).Seconds())
	w.filesystems[0].Spec.ActiveMDS = 2
	a.until("two MDS are at work", 30*time.Second, func(p *engine.Plan) bool { return p.Done && strings.Contains(w.filesystems[0].Status.Active, ",") })
	w.filesystems[0].Spec.ActiveMDS, w.filesystems[0].Spec.SubvolumeGroups[0].Quota = 1, nil
	a.until("one MDS is at work", 60*time.Second, func(p *engine.Plan) bool { return p.Done && !strings.Contains(w.filesystems[0].Status.Active, ",") })
	filesystemBack(t, a, w, c)
	filesystemKept(t, a, w, c)
	w.deleteFilesystem()
	gone := func(p *engine.Plan) bool { return len(w.filesystems) == 0 && p.Done }
	a.until("the filesystem is gone", 30*time.Second, gone)
	for _, prefix := range []string{"fs ls", "osd pool ls", "auth ls"} {
		out, err := c.Mon(t.Context(), ask(prefix), nil)
		if err != nil || strings.Contains(string(out), "home") || strings.Contains(string(out), "mds.") {
			t.Errorf("%s: %s, %v", prefix, out, err)
		}
	}
}

// deleteFilesystem deletes the filesystem, which nobody has mounted.
func (w *world) deleteFilesystem() {
	now := metav1.Now()
	w.filesystems[0].DeletionTimestamp = &now
	for _, d := range w.daemons {
		if d.Spec.Type == TypeMDS {
			d.Status.Report = `{"mounts":[]}`
		}
	}
}

// filesystemKept deletes the Filesystem while Ceph keeps the filesystem, which leaves Ceph healthy,
// and takes it up again.
func filesystemKept(t *testing.T, a *processes, w *world, c rados.Client) {
	t.Helper()
	again := filesystemOf("home", func(f *api.Filesystem) { f.Spec = *w.filesystems[0].Spec.DeepCopy() })
	again.Spec.SubvolumeGroups = nil // the mgr keeps a mount of before for two minutes: fsmap.Pauses
	w.filesystems[0].Spec.DeletionPolicy = api.DeletionRetain
	w.deleteFilesystem()
	gone := func(p *engine.Plan) bool { return len(w.filesystems) == 0 && p.Done }
	a.until("the Filesystem is gone", 60*time.Second, gone)
	out, err := c.Mon(t.Context(), ask("health"), nil)
	if err != nil || strings.Contains(string(out), "MDS_") || strings.Contains(string(out), "FS_") {
		t.Errorf("with a filesystem that is kept: %s, %v", out, err)
	}
	begun := time.Now()
	w.filesystems = append(w.filesystems, again)
	a.until("the filesystem is at work again", 60*time.Second, func(p *engine.Plan) bool {
		return p.Done && w.filesystems[0].Status.State == api.ResourceOnline
	})
	t.Logf("a filesystem that was kept was at work again after %.1f s", time.Since(begun).Seconds())
}

// rankZero is the number of the process that has rank 0, which is another one after each start; 0 if none has it.
func rankZero(t *testing.T, c rados.Client) int {
	t.Helper()
	out, err := c.Mon(t.Context(), ask("fs dump"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var dump struct {
		Filesystems []struct {
			MDSMap struct {
				Up map[string]int `json:"up"`
			} `json:"mdsmap"`
		} `json:"filesystems"`
	}
	if err := json.Unmarshal(out, &dump); err != nil || len(dump.Filesystems) != 1 {
		t.Fatalf("%s, %v", out, err)
	}
	return dump.Filesystems[0].MDSMap.Up["mds_0"]
}

// filesystemBack removes the filesystem by hand, and makes it again of its pools by the commands that the message has.
func filesystemBack(t *testing.T, a *processes, w *world, c rados.Client) {
	t.Helper()
	byHand := func(cmd command) {
		t.Helper()
		if _, err := c.Mon(t.Context(), cmd, nil); err != nil {
			t.Fatalf("%v: %v", cmd, err)
		}
	}
	id := w.filesystems[0].Status.ID
	byHand(command{"prefix": "fs fail", "fs_name": "home"})
	byHand(command{"prefix": "fs rm", "fs_name": "home", "yes_i_really_mean_it": true})
	a.until("the filesystem is lost", 30*time.Second, func(*engine.Plan) bool { return present(w.filesystems[0]) == api.ReasonDeletedOutside })
	says := fmt.Sprintf("'holdfast ceph fs new home home-metadata home-data --fscid %d --force --recover', then 'holdfast ceph fs set home joinable true', "+
		"'holdfast ceph fs add_data_pool home cold'", id)
	wantLost(t, w.filesystems[0], api.ResourceOffline, api.ReasonDeletedOutside, fmt.Sprint(id), says)
	byHand(command{"prefix": "fs new", "fs_name": "home", "metadata": "home-metadata", "data": "home-data", "fscid": id, "force": true, "recover": true})
	byHand(command{"prefix": "fs set", "fs_name": "home", "var": "joinable", "val": "true"})
	byHand(command{"prefix": "fs add_data_pool", "fs_name": "home", "pool": "cold"})
	a.until("the filesystem is found", 60*time.Second, func(*engine.Plan) bool {
		s := w.filesystems[0].Status
		return s.State == api.ResourceOnline && s.ID == id && s.Lost == ""
	})
}
