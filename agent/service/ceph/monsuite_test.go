package ceph

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/servicetest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/monstore"
)

// monSubject is a mon of a cluster that is to be founded.
func monSubject() servicetest.Subject {
	return servicetest.Subject{
		Type: "ceph-mon", Install: []string{"apt-get install ceph-mon", "apt-get install ceph-common"}, New: newMon,
		Varies:   []string{"data/store/store.db", "data/monmap", "data/monmap.alone", "data/store.lost-*", "data/store.before-token"},
		Commands: func(*service.Local) []service.Command { return []service.Command{{Verb: monstore.VerbLook}} },
		Whole: func(t *testing.T, l *service.Local) {
			if value, err := storeValue(t.Context(), l, "monitor", "magic"); err != nil || !strings.HasPrefix(string(value), "ceph mon") {
				t.Errorf("the store was not made to its end: %q, %v", value, err)
			}
		},
	}
}

// briefMon is a mon that was made ready before, and is to be made ready in another way.
func briefMon(whole func(t *testing.T, l *service.Local), prepare func(t *testing.T, l *service.Local)) servicetest.Subject {
	s := monSubject()
	s.Brief, s.Whole = true, whole
	s.New = func(t *testing.T) *service.Local {
		l := newMon(t)
		prepare(t, l)
		return l
	}
	return s
}

func configureMon(t *testing.T, l *service.Local, order string) {
	t.Helper()
	l.Parameters[monstore.ParamRecover] = order
	if err := (Mon{}).ConfigureLocalService(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

// rubbish is what agents have left that were killed.
func rubbish(t *testing.T, l *service.Local, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		if err := os.MkdirAll(filepath.Join(l.Data, dir, "store.db"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// lostMon is one whose store is lost while the others are a quorum.
func lostMon() servicetest.Subject {
	return briefMon(nil, func(t *testing.T, l *service.Local) {
		l.Parameters[paramFounded], l.Parameters[paramRejoin] = "true", "true"
		rubbish(t, l, directoryName, "store.new")
	})
}

// isAlone is whether the others are in the map of the mon.
func isAlone(want bool) func(t *testing.T, l *service.Local) {
	return func(t *testing.T, l *service.Local) {
		if text := mapOf(t, l); !strings.Contains(text, "mon.a") || strings.Contains(text, "mon.b") == want {
			t.Errorf("its map: %s", text)
		}
	}
}

// aloneMon is one from whose map the others are to be taken.
func aloneMon() servicetest.Subject {
	return briefMon(isAlone(true), func(t *testing.T, l *service.Local) {
		configureMon(t, l, "")
		rubbish(t, l, "store.before-token.new")
		l.Parameters[monstore.ParamRecover] = "token alone"
	})
}

// backMon is one that gets back what it was before that.
func backMon() servicetest.Subject {
	return briefMon(isAlone(false), func(t *testing.T, l *service.Local) {
		configureMon(t, l, "")
		configureMon(t, l, "token alone")
		l.Parameters[monstore.ParamRecover] = "token back"
	})
}

// takenMon is one that somebody else runs, or has run, and that is removed with its data.
func takenMon(runs bool) servicetest.Subject {
	stores := map[*service.Local]string{}
	s := monSubject()
	s.Brief, s.Whole = true, nil
	s.New = func(t *testing.T) *service.Local {
		l, store := foreignMon(t)
		l.Daemon.Spec.OnRemoval = api.DeletionWipe
		stores[l] = store
		if runs {
			startMon(t, l)
		}
		return replaceDirs(t, l)
	}
	s.Varies = append(s.Varies, "data/"+fileBefore) // it has the process
	s.Outside = func(l *service.Local) []string { return []string{stores[l]} }
	return s
}
