package ceph

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// present is the reason of the condition Present; empty where that was never in doubt.
func present(r api.Resource) string {
	if c := meta.FindStatusCondition(r.Common().Conditions, api.ResourcePresent); c != nil {
		return c.Reason
	}
	return ""
}

// wantLost fails the test unless a resource is so, and its message has the words.
func wantLost(t *testing.T, r api.Resource, state api.ResourceState, reason, lost string, says ...string) {
	t.Helper()
	s := r.Common()
	if s.State != state || present(r) != reason || s.Lost != lost {
		t.Errorf("%s (%s), lost %q, and not %s (%s), lost %q: %s", s.State, present(r), s.Lost, state, reason, lost, s.Message)
	}
	for _, text := range says {
		if !strings.Contains(s.Message, text) {
			t.Errorf("%q does not say %q", s.Message, text)
		}
	}
}

// recreate accepts the loss of what a user takes to be lost, as of the time that the status tells.
func recreate(r api.Resource, lost string) {
	s := *r.Common()
	s.Lost = lost
	r.SetAnnotations(map[string]string{api.AnnotationRecreate: api.LossWord(&s)})
}

// A pool is known by its number: one that was renamed or deleted by hand is not made anew, and another one of its name is not used.
func TestLost_pool(t *testing.T) {
	f := poolsOn(3, replicated("vms", 3))
	f.settle(t)
	id := fmt.Sprint(f.pool().Status.ID)
	if present(f.pool()) != "" || f.ceph.PoolID("vms") != f.pool().Status.ID {
		t.Fatalf("%+v", f.pool().Status)
	}

	f.ceph.RenamePool("vms", "vms-old")
	f.settle(t)
	wantLost(t, f.pool(), api.ResourceOffline, api.ReasonRenamedOutside, id, "vms-old", "'holdfast recreate pool vms --lost "+id+"' creates a new, empty one")
	if f.ceph.PoolID("vms") != 0 || fmt.Sprint(f.pool().Status.ID) != id || !strings.Contains(strings.Join(f.status.Status.Reasons, ";"), "vms-old") {
		t.Errorf("%v, %v", f.ceph.Pools(), f.status.Status)
	}
	writes := f.writes
	if f.settle(t); f.writes != writes {
		t.Errorf("%d writes while nothing changes", f.writes-writes)
	}

	f.ceph.MakePool("vms", "by-hand", "host")
	other := f.ceph.PoolID("vms")
	before := f.ceph.Pools()
	f.settle(t)
	wantLost(t, f.pool(), api.ResourceOffline, api.ReasonNameTaken, id, "vms-old", fmt.Sprintf("(id %d)", other))
	if !slices.Equal(f.ceph.Pools(), before) {
		t.Errorf("another pool of its name was changed: %v", f.ceph.Pools())
	}

	f.ceph.DropPool("vms")
	f.ceph.RenamePool("vms-old", "vms")
	f.settle(t)
	wantLost(t, f.pool(), api.ResourceOnline, api.ReasonPresent, "")

	f.ceph.DropPool("vms")
	f.settle(t)
	wantLost(t, f.pool(), api.ResourceOffline, api.ReasonDeletedOutside, id, "was deleted outside Holdfast")
	recreate(f.pool(), "77")
	if f.settle(t); f.ceph.PoolID("vms") != 0 {
		t.Error("the word was for another pool")
	}
	recreate(f.pool(), id)
	f.settle(t)
	wantLost(t, f.pool(), api.ResourceOnline, "", "")
	if f.pool().Status.ID == 0 || fmt.Sprint(f.pool().Status.ID) == id {
		t.Errorf("%+v", f.pool().Status)
	}
	f.ceph.DropPool("vms") // the word counts once
	if f.settle(t); f.ceph.PoolID("vms") != 0 {
		t.Error("it was made anew once more")
	}
}

// Another pool that has the name of a lost one is not mirrored either.
func TestLost_mirroredPool(t *testing.T) {
	f := poolsOn(3, vms())
	f.settle(t)
	f.ceph.DropPool("vms")
	f.ceph.MakePool("vms", "by-hand", "host")
	f.objects = append(f.objects, mirrorOf("dr"))
	f.settle(t)
	if s := f.objects[0].(*api.RBDMirror).Status; !strings.Contains(s.Message, "another id") || f.mirrored["vms"].Mode != "" {
		t.Errorf("%s: %s, %+v", s.State, s.Message, f.mirrored)
	}
}

// A person may also have another pool taken for the lost one.
func TestLost_poolTaken(t *testing.T) {
	f := poolsOn(3, replicated("vms", 3))
	f.settle(t)
	id := fmt.Sprint(f.pool().Status.ID)
	f.ceph.RenamePool("vms", "vms-old")
	f.ceph.MakePool("vms", "by-hand", "host")
	f.settle(t)
	recreate(f.pool(), id)
	f.settle(t)
	if s := f.pool().Status; s.State != api.ResourceOnline || s.ID != f.ceph.PoolID("vms") || f.ceph.PoolID("vms-old") == 0 {
		t.Errorf("%+v", s)
	}
}

// A Pool that is deleted with its data takes neither the pool that was renamed with it, nor another one of its name.
func TestLost_poolWiped(t *testing.T) {
	for name, other := range map[string]bool{"renamed": false, "and another one of its name": true} {
		t.Run(name, func(t *testing.T) {
			f := poolsOn(3, replicated("vms", 3))
			f.settle(t)
			f.ceph.RenamePool("vms", "vms-old")
			if other {
				f.ceph.MakePool("vms", "by-hand", "host")
			}
			f.deletePool(api.DeletionWipe)
			f.settle(t)
			if len(f.pools) != 0 || f.ceph.PoolID("vms-old") == 0 || (f.ceph.PoolID("vms") != 0) != other {
				t.Errorf("%v, %v", f.pools, f.ceph.Pools())
			}
		})
	}
}

// The command that deletes a pool looks at its number at the last moment: it may have been renamed since it was planned.
func TestLost_poolRenamedMeanwhile(t *testing.T) {
	f := poolsOn(3, replicated("vms", 3))
	f.settle(t)
	f.deletePool(api.DeletionWipe)
	ctx := t.Context()
	f.until(t, "its deletion is planned", func() bool {
		v, p, err := f.observed(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(commandsOf(p, verbPoolDelete)) == 0 {
			return false
		}
		f.ceph.RenamePool("vms", "vms-old")
		f.ceph.MakePool("vms", "by-hand", "host")
		if err := f.apply(ctx, v, p); err != nil {
			t.Fatal(err)
		}
		return true
	})
	if f.ceph.PoolID("vms") == 0 || f.ceph.PoolID("vms-old") == 0 {
		t.Errorf("pools: %v", f.ceph.Pools())
	}
}

// The status of an earlier version is taken by what is there: it has the numbers already, or none.
func TestLost_poolOfBefore(t *testing.T) {
	f := poolsOn(3, replicated("vms", 3))
	f.settle(t)
	id := f.pool().Status.ID
	f.pool().Status.ID = 0
	f.settle(t)
	if s := f.pool().Status; s.ID != id || s.State != api.ResourceOnline {
		t.Errorf("%+v", s)
	}
}

// The key of a client that somebody deleted in Ceph is put there again: it is the same key, and it is told.
func TestLost_clientKey(t *testing.T) {
	f := poolsOn(3)
	f.clients = append(f.clients, clientOf("app", api.ClientCaps{"mon": "allow r", "osd": "allow rw pool=p"}))
	f.settle(t)
	key := string(f.secrets["c-key-client.app"].data[secretKey])
	f.ceph.Unauthorize("client.app")
	p := f.round(t)
	if got := word(decisions(p, api.VerdictDo), "client.app"); !strings.Contains(got, "added again with the same key") {
		t.Errorf("told: %q", got)
	}
	f.settle(t)
	if again := string(f.secrets["c-key-client.app"].data[secretKey]); again != key || f.ceph.Key("client.app") != key || f.ceph.Caps("client.app")["osd"] == "" {
		t.Errorf("key %s, in Ceph %s with %v, and before %s", again, f.ceph.Key("client.app"), f.ceph.Caps("client.app"), key)
	}
}

// A word counts for one loss: what came back, and is lost again under the same number or name, is not made anew.
func TestLost_wordCountsOnce(t *testing.T) {
	f := poolsOn(3, replicated("vms", 3))
	f.settle(t)
	id := fmt.Sprint(f.pool().Status.ID)
	f.ceph.RenamePool("vms", "vms-old")
	f.settle(t)
	recreate(f.pool(), id)
	f.ceph.RenamePool("vms-old", "vms") // before the leader saw the word
	f.settle(t)
	f.now = f.now.Add(time.Hour)
	f.ceph.RenamePool("vms", "vms-old")
	f.settle(t)
	wantLost(t, f.pool(), api.ResourceOffline, api.ReasonRenamedOutside, id)
	if f.ceph.PoolID("vms") != 0 {
		t.Error("a new pool was made")
	}

	f = withFilesystem(t, func(fs *api.Filesystem) { fs.Spec.SubvolumeGroups = []api.SubvolumeGroup{{Name: "a"}} })
	for _, other := range []string{"b", "c"} {
		f.now = f.now.Add(time.Hour)
		f.ceph.DropGroup("home", "a")
		f.filesystems[0].Spec.SubvolumeGroups = append(f.filesystems[0].Spec.SubvolumeGroups, api.SubvolumeGroup{Name: other})
		f.settle(t)
		if s := f.filesystems[0].Status; s.Lost != "group-a" || !slices.Equal(s.LostSubvolumeGroups, []string{"a"}) {
			t.Fatalf("lost beside %s: %+v", other, s)
		}
		recreate(f.filesystems[0], "group-a")
		f.settle(t)
		if s := f.filesystems[0].Status; s.Lost != "" || len(s.LostSubvolumeGroups) > 0 || len(s.SubvolumeGroups) != len(f.filesystems[0].Spec.SubvolumeGroups) {
			t.Fatalf("accepted beside %s: %+v", other, s)
		}
	}
}

// The identity of very many losses fits into the status, and they are remembered one by one.
func TestLost_many(t *testing.T) {
	group := func(i int) string { return fmt.Sprintf("home-of-the-department-%02d", i) }
	f := withFilesystem(t, func(fs *api.Filesystem) {
		for i := range 12 {
			fs.Spec.SubvolumeGroups = append(fs.Spec.SubvolumeGroups, api.SubvolumeGroup{Name: group(i)})
		}
	})
	for i := range 12 {
		f.ceph.DropGroup("home", group(i))
	}
	fs := func() *api.Filesystem { return f.filesystems[0] }
	fs().Spec.SubvolumeGroups = append(fs().Spec.SubvolumeGroups, api.SubvolumeGroup{Name: "c"})
	f.settle(t)
	if s := fs().Status; len(s.Lost) == 0 || len(s.Lost) > maxLostID || len(s.LostSubvolumeGroups) != 12 {
		t.Fatalf("lost: %q, %d groups", s.Lost, len(s.LostSubvolumeGroups))
	}
	recreate(fs(), fs().Status.Lost)
	if f.settle(t); fs().Status.Lost != "" || len(fs().Status.LostSubvolumeGroups) > 0 || len(fs().Status.SubvolumeGroups) != 13 {
		t.Errorf("accepted: %+v", fs().Status)
	}
}
