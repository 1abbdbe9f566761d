package servicetest

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Dirs are the directories of a daemon, as an agent makes them. That for sockets has a short name.
func Dirs(t *testing.T) (l *service.Local) {
	t.Helper()
	run, err := os.MkdirTemp("", "hf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(run) }) // a daemon that ends may still write there
	base := t.TempDir()
	l = &service.Local{Data: filepath.Join(base, "data"), Log: filepath.Join(base, "log"), Run: run, Daemon: &api.Daemon{}, Devices: map[string]api.Device{}}
	for dir, perm := range map[string]os.FileMode{l.Data: 0o700, l.Log: 0o750} {
		if err := os.Mkdir(dir, perm); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(run, 0o755); err != nil {
		t.Fatal(err)
	}
	return l
}

func (s *Subject) look(t *testing.T, l *service.Local) {
	if s.Look != nil {
		s.Look(t, l)
	}
}

// bring makes a daemon ready as an agent does.
func (s *Subject) bring(ctx context.Context, t *testing.T, l *service.Local) error {
	a := s.agent(t)
	s.look(t, l)
	lacking := slices.ContainsFunc(l.Daemon.Spec.Devices, func(d api.DaemonDevice) bool { return l.Devices[d.Name].Path == "" })
	if maker, makes := a.(service.DeviceMaker); makes && lacking {
		if err := maker.MakeDevices(ctx, l); err != nil {
			return err
		}
		s.look(t, l)
	}
	if err := a.ConfigureLocalService(ctx, l); err != nil {
		return err
	}
	if keeper, keeps := a.(service.DeviceKeeper); keeps {
		return keeper.ConfigureDevices(ctx, l)
	}
	return nil
}

// destroy removes a daemon as an agent does.
func (s *Subject) destroy(ctx context.Context, t *testing.T, l *service.Local) error {
	a := s.agent(t)
	if closer, closes := a.(service.DeviceCloser); closes {
		if err := closer.CloseDevices(ctx, l); err != nil {
			return err
		}
	}
	if forker, forks := a.(service.Forker); forks {
		if err := forker.EndOthers(ctx, l); err != nil {
			return err
		}
	}
	s.look(t, l)
	return a.DestroyLocalService(ctx, l)
}

// live has an agent do something for as long as its life lasts. It fails the test where the Daemon was written to.
func (s *Subject) live(t *testing.T, l *service.Local, life *life, do func() error) (killed bool, err error) {
	t.Helper()
	before := l.Daemon.DeepCopy()
	life.code, life.secrets, life.t = s.Code, s.Secrets, t
	killed, err = life.run(do)
	if !reflect.DeepEqual(before, l.Daemon) {
		t.Errorf("the Daemon was written to (-before +after):\n%s", cmp.Diff(before, l.Daemon))
	}
	return killed, err
}

// mustBring brings a daemon to its end, and returns what was done on the way.
func (s *Subject) mustBring(t *testing.T, l *service.Local) []effect {
	t.Helper()
	all := &life{}
	if _, err := s.live(t, l, all, func() error { return s.bring(t.Context(), t, l) }); err != nil {
		t.Fatalf("to configure: %v", err)
	}
	s.isWhole(t, l)
	return all.effects
}

func (s *Subject) mustDestroy(t *testing.T, l *service.Local) []effect {
	t.Helper()
	all := &life{}
	if _, err := s.live(t, l, all, func() error { return s.destroy(t.Context(), t, l) }); err != nil {
		t.Fatalf("to destroy: %v", err)
	}
	s.isGone(t, l)
	return all.effects
}

func (s *Subject) isWhole(t *testing.T, l *service.Local) {
	t.Helper()
	s.look(t, l)
	if k, keeps := s.agent(t).(service.Keeper); keeps && !k.Kept(l) {
		t.Error("it is configured, and is said to have lost something")
	}
	if s.Whole != nil {
		s.Whole(t, l)
	}
}

func (s *Subject) outside(l *service.Local) []string {
	if s.Outside == nil {
		return nil
	}
	return s.Outside(l)
}

func (s *Subject) isGone(t *testing.T, l *service.Local) {
	t.Helper()
	s.look(t, l)
	for _, path := range s.outside(l) {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
	if s.Gone != nil {
		s.Gone(t, l)
	}
}

func testDestroyNothing(t *testing.T, s *Subject) {
	l := s.New(t)
	before := s.tree(t, l, true)
	for range 2 {
		if effects := s.mustDestroy(t, l); len(effects) > 0 {
			t.Errorf("it was never configured, and this was done: %v", effects)
		}
	}
	if diff := cmp.Diff(before, s.tree(t, l, true)); diff != "" {
		t.Errorf("it changed something (-before +after):\n%s", diff)
	}
}

func testDestroy(t *testing.T, s *Subject) {
	l := s.New(t)
	s.mustBring(t, l)
	for range 2 {
		s.mustDestroy(t, l)
	}
}
