package ceph

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/tool"
	"github.com/holdfast-storage/holdfast/internal/monstore"
)

// A store that was never in a quorum is told from one that is gone, and from one that can be used.
func TestMon_look(t *testing.T) {
	l, m := newMon(t), Mon{}
	look := func() monstore.State {
		t.Helper()
		text, err := m.Perform(t.Context(), l, service.Command{Verb: monstore.VerbLook})
		if err != nil {
			t.Fatal(err)
		}
		s, err := monstore.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := look(); s.Whole() || s.Problem != "it is gone" {
		t.Errorf("without a store: %+v", s)
	}
	if err := m.ConfigureLocalService(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if s := look(); s != (monstore.State{}) || !strings.Contains(s.String(), "new and empty") {
		t.Errorf("a new store: %+v", s)
	}
	value, err := storeValue(t.Context(), l, "monitor", "magic")
	if err != nil || !strings.HasPrefix(string(value), "ceph mon") {
		t.Errorf("a value of the store: %q, %v", value, err)
	}
}

func newMon(t *testing.T) *service.Local {
	return local(t, "ceph-mon", "a", map[string]string{paramMonmap: "a=[v2:127.0.0.1:33000,v1:127.0.0.1:33001] b=[v2:127.0.0.2:33000,v1:127.0.0.2:33001]"})
}

// mapOf is the map of mons in a store.
func mapOf(t *testing.T, l *service.Local) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "monmap")
	r := &recovery{Local: l}
	if err := r.mon(t.Context(), filepath.Join(l.Data, directoryName), "--extract-monmap", file); err != nil {
		t.Fatal(err)
	}
	out, err := tool.Output(t.Context(), l.Data, "monmaptool", "--print", file)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// The others are taken out of the map, once, however often the agent is cut off; and the store that was there can be put back.
func TestMon_alone(t *testing.T) {
	l, m := newMon(t), Mon{}
	configure := func(order string) {
		t.Helper()
		l.Parameters[monstore.ParamRecover] = order
		if err := m.ConfigureLocalService(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	configure("")
	configure("token alone")
	if text := mapOf(t, l); !strings.Contains(text, "mon.a") || strings.Contains(text, "mon.b") {
		t.Errorf("alone: %s", text)
	}
	if err := os.Remove(filepath.Join(l.Data, fileRecovered)); err != nil {
		t.Fatal(err)
	}
	configure("token alone") // as after a crash
	configure("token back")
	if text := mapOf(t, l); !strings.Contains(text, "mon.a") || !strings.Contains(text, "mon.b") {
		t.Errorf("put back: %s", text)
	}
	for _, order := range []string{"token", "to/ken alone", "token elsewhere"} {
		l.Parameters[monstore.ParamRecover] = order
		if err := m.ConfigureLocalService(t.Context(), l); err == nil {
			t.Errorf("order %q was carried out", order)
		}
	}
}

// Without maps no store is made, and the one that is there stays.
func TestMon_fromNothing(t *testing.T) {
	l, m := newMon(t), Mon{}
	if err := m.ConfigureLocalService(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	l.Parameters[monstore.ParamRecover] = "token osds"
	if err := m.ConfigureLocalService(t.Context(), l); err == nil || !strings.Contains(err.Error(), "no OSD of this host has given its maps") || !m.Kept(l) {
		t.Errorf("%v, kept: %v", err, m.Kept(l))
	}
}
