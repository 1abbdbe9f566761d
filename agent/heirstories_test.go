package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/heir"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// frailInheritor takes over nothing of a Daemon that is gone.
type frailInheritor struct{ frail }

func (frailInheritor) Name() string { return "inheritor" }

// Foreign implements service.Inheritor.
func (f frailInheritor) Foreign(l *service.Local) (is bool, err error) {
	err = f.w.life.do(func() error { is, err = heir.Foreign(l, ""); return err })
	return is, err
}

func (f frailInheritor) ConfigureLocalService(_ context.Context, l *service.Local) error {
	return f.w.life.do(func() error { return heir.Inherit(l, "") })
}

// newcomer is a Daemon that its system knows nothing of yet.
func newcomer(d *api.Daemon) {
	d.UID, d.Spec.Type, d.Spec.Parameters = "uid-new", "inheritor", map[string]string{api.ParameterNewcomer: "true"}
}

// heirs are stories of a Daemon that finds what an earlier one of its name left: a process and data, or
// data that an earlier Holdfast noted no owner of.
func heirs() []story {
	set := func(w *world) { disk(w); w.also = append(w.also, frailInheritor{frail{w.service, w}}) }
	leave := func(w *world) {
		if err := os.MkdirAll(w.data("one"), 0o700); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w.data("one"), "state"), []byte("of another one"), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	inherits := func(w *world) bool { return w.read("one", "owner") == "uid-new" && runs("one", 1)(w) }
	check := func(w *world) {
		w.wantStarts("daemons/*", 1)
		found, err := filepath.Glob(filepath.Join(w.dir, "data/agent/*/*/data/state"))
		if err != nil || len(found) != 1 || !strings.Contains(found[0], "/retired/") {
			w.t.Errorf("what the other one left is at %v, %v", found, err)
		}
	}
	former := talker("one", func(d *api.Daemon) { d.Finalizers, d.Spec.Type = nil, "inheritor" })
	return []story{
		{"another of the name", nil, set, []step{
			created(former),
			{"another Daemon", func(w *world) { leave(w); w.delete("one"); w.create(talker("one", newcomer)) }, inherits},
		}, check},
		{"what an earlier version left", nil, func(w *world) { set(w); leave(w) }, []step{
			{"another Daemon", func(w *world) { w.create(talker("one", newcomer)) }, inherits},
		}, check},
	}
}
