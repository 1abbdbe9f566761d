package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action/hostaction"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// hardwareAction is an action on the hardware of the host, whose turn has come.
func hardwareAction(kind, target string, parameters map[string]api.ActionParameter) *api.Action {
	return &api.Action{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: api.SystemNamespace, Name: "hardware", UID: types.UID("uid-hardware"), CreationTimestamp: metav1.Now(),
		},
		Spec:   api.ActionSpec{Kind: kind, Target: target, Host: "h1", Want: api.WantDone, Parameters: parameters},
		Status: api.ActionStatus{State: api.ActionNew, Executor: api.ByAgent},
	}
}

// hardwareEnds says that the action on hardware ended so, with a text in its message.
func hardwareEnds(state api.ActionState, text string) func(*world) bool {
	return func(w *world) bool {
		a := &api.Action{}
		if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: api.SystemNamespace, Name: "hardware"}, a); err != nil {
			w.t.Fatal(err)
		}
		if s := a.Status; s.State.Final() && (s.State != state || !strings.Contains(s.Message, text)) {
			w.t.Fatalf("it ended as %s: %s", s.State, s.Message)
		}
		return a.Status.State == state
	}
}

// hardwareStories are the actions on the hardware of the host. What a wipe does to a disk is tested by package deviceaction: here
// the disk is a daemon's.
func hardwareStories() []story {
	file := func(w *world, path string) {
		path = filepath.Join(w.dir, "root/sys/class", path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600)); err != nil {
			w.t.Fatal(err)
		}
	}
	holds := func(w *world, path, want string) {
		text, err := os.ReadFile(filepath.Join(w.dir, "root/sys/class", path))
		if err != nil || string(text) != want {
			w.t.Errorf("%s holds %q, %v", path, text, err)
		}
	}
	set := func(w *world) {
		disk(w)
		w.sys = filepath.Join(w.dir, "root")
		w.devices.devices = []api.Device{{ID: "disk", Path: "/dev/a", Kind: api.DeviceDisk}}
		file(w, "scsi_host/host0/scan")
		file(w, "enclosure/e/7/locate")
		file(w, "enclosure/e/7/device/block/a/size")
	}
	create := func(a *api.Action) func(*world) { return func(w *world) { w.create(a.DeepCopy()) } }
	rescan := hardwareAction(hostaction.Rescan, "host/h1", nil)
	light := hardwareAction(hostaction.Light, "device/disk", map[string]api.ActionParameter{
		hostaction.ParamLight: hostaction.Ident, hostaction.ParamState: hostaction.On,
	})
	wipe := hardwareAction(hostaction.Wipe, "device/disk", map[string]api.ActionParameter{hostaction.ParamConfirm: "disk"})
	keeper := talker("one", func(d *api.Daemon) { d.Spec.Devices = []api.DaemonDevice{{Name: "block", ID: "disk"}} })
	return []story{
		{rescan.Spec.Kind, nil, set, []step{
			{"the rescan", create(rescan), hardwareEnds(api.ActionDone, "asked 1 SCSI adapter for new devices; host h1 has")},
		}, func(w *world) {
			holds(w, "scsi_host/host0/scan", "- - -")
			h := &api.Host{}
			err := w.api.Get(w.t.Context(), client.ObjectKey{Name: "h1"}, h)
			if err != nil || len(h.Status.Devices) != 1 || h.Status.Facts == nil || h.Status.Facts.Kernel == "" {
				w.t.Errorf("the server knows %+v, %v", h.Status, err)
			}
		}},
		{light.Spec.Kind, nil, set, []step{
			{"the light", create(light), hardwareEnds(api.ActionDone, "the ident light of disk disk (/dev/a) of host h1 is on")},
		}, func(w *world) { holds(w, "enclosure/e/7/locate", "1") }},
		{wipe.Spec.Kind, nil, set, []step{
			created(keeper),
			{"the wipe", create(wipe), hardwareEnds(api.ActionFailed, "device disk is in use by daemon one")},
		}, func(*world) {}},
	}
}
