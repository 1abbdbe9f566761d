package gluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// optionStates are what can be wanted of options, in an order in which one follows another.
var optionStates = []struct {
	name            string
	cluster, volume api.VolumeOptions
	want            map[string]string
}{
	{"a short name", nil, api.VolumeOptions{"ping-timeout": "7"}, map[string]string{"network.ping-timeout": "7"}},
	{
		"a group of the cluster, and an option of its own",
		api.VolumeOptions{"group": "virt"},
		api.VolumeOptions{"ping-timeout": "7"},
		map[string]string{"network.ping-timeout": "7", "features.shard": "on"},
	},
	{
		"the group alone",
		api.VolumeOptions{"group": "virt"},
		nil,
		map[string]string{"network.ping-timeout": "20", "features.shard": "on"},
	},
	{
		"another group", nil,
		api.VolumeOptions{"group": "samba", "shard": "off"},
		map[string]string{"cluster.cache": "on", "features.shard": "off"},
	},
	{"none", nil, nil, map[string]string{}},
}

// TestOptionNames: short names and groups are set once, and reset when they are taken out of the
// spec.
func TestOptionNames(t *testing.T) {
	w := poolOf(t, 3)
	w.volume("v", "1Gi", nil)
	w.settle()
	for _, tt := range optionStates {
		w.cluster.Spec.GlusterFS = &api.GlusterFSSpec{Options: tt.cluster}
		w.vol("v").Spec.Options = tt.volume
		if p := w.settle(); !p.Done || len(p.Commands) > 0 {
			t.Errorf("%s: %v %v", tt.name, commands(p), decisions(p))
		}
		tt.want["cluster.lookup-optimize"] = "off"
		if diff := cmp.Diff(tt.want, w.gluster.volumes["v"].options); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestOptionNames_byHand: a short name that was changed by hand is set back.
func TestOptionNames_byHand(t *testing.T) {
	w := poolOf(t, 3)
	w.volume("v", "1Gi", nil).Spec.Options = api.VolumeOptions{"ping-timeout": "7"}
	w.settle()
	w.gluster.volumes["v"].options["network.ping-timeout"] = "9"
	w.agents()
	if p := w.round(); !contains(decisions(p), "network.ping-timeout was set to 9 outside Holdfast") {
		t.Errorf("%v", decisions(p))
	}
	if w.settle(); w.gluster.volumes["v"].options["network.ping-timeout"] != "7" {
		t.Errorf("%v", w.gluster.volumes["v"].options)
	}
}

// TestOptions_asked: a volume whose options were changed is not Online before they are set, or
// refused.
func TestOptions_asked(t *testing.T) {
	for value, want := range map[api.VolumeOptionValue]metav1.ConditionStatus{"1": "True", badValue: "False"} {
		w := poolOf(t, 3)
		w.volume("v", "1Gi", nil)
		w.settle()
		v := w.vol("v")
		v.Generation++
		v.Spec.Options = api.VolumeOptions{"a.b": value}
		w.round()
		if s := w.vol("v").Status; s.State != api.ResourceCreating || s.ObservedGeneration != v.Generation {
			t.Errorf("%s: at first it is %s (%d)", value, s.State, s.ObservedGeneration)
		}
		w.agents()
		w.round()
		s := w.vol("v").Status
		accepted := meta.FindStatusCondition(s.Conditions, api.ResourceAccepted)
		if s.State != api.ResourceOnline || accepted.Status != want {
			t.Errorf("%s: then it is %s, %v", value, s.State, accepted)
		}
	}
}

// TestOptions_refused: an option that GlusterFS does not take, and a group that it does not have,
// stand on the Volume as refused until the spec is changed; all other options are set.
func TestOptions_refused(t *testing.T) {
	for name, wrong := range map[string]api.VolumeOptions{
		"value": {"a.b": badValue}, "name": {"nothing": "1"}, "group": {"group": "nope"},
		"who may mount": {"allow": "10.0.0.1"},
	} {
		w := poolOf(t, 3)
		v := w.volume("v", "1Gi", nil)
		v.Spec.Options = api.VolumeOptions{"c.d": "1"}
		for option, value := range wrong {
			v.Spec.Options[option] = value
		}
		for range 12 {
			w.agents()
			w.round()
		}
		p := w.plan()
		v = w.vol("v")
		accepted := meta.FindStatusCondition(v.Status.Conditions, api.ResourceAccepted)
		if accepted == nil || accepted.Status != "False" || v.Status.State != api.ResourceOnline {
			t.Errorf("%s: %v %s %s", name, accepted, v.Status.State, v.Status.Message)
		}
		if refusals := decisions(p, api.VerdictRefuse); len(refusals) != 1 ||
			p.Decisions[len(p.Decisions)-1].Reason == "" {
			t.Errorf("%s: %v", name, decisions(p))
		}
		if o := w.gluster.volumes["v"].options; o["c.d"] != "1" || o[optionAllow] != "" {
			t.Errorf("%s: %v", name, o)
		}
		v.Spec.Options = nil
		p = w.settle()
		if !p.Done || meta.IsStatusConditionFalse(w.vol("v").Status.Conditions, api.ResourceAccepted) {
			t.Errorf("%s: mended, and %v", name, decisions(p))
		}
	}
}

// TestOptions_wrongGroup: while a group is wrong, or the node that reports has none, nothing is
// reset; sharding never is.
func TestOptions_wrongGroup(t *testing.T) {
	w := poolOf(t, 3)
	w.volume("v", "1Gi", nil).Spec.Options = api.VolumeOptions{"group": "virt", "a.b": "1"}
	w.settle()
	want := map[string]string{
		"network.ping-timeout": "20", "features.shard": "on", "a.b": "1",
		"cluster.lookup-optimize": "off",
	}
	same := func(name string) {
		t.Helper()
		p := w.settle()
		if diff := cmp.Diff(want, w.gluster.volumes["v"].options); diff != "" || len(p.Commands) > 0 {
			t.Errorf("%s: %v (-want +got):\n%s", name, commands(p), diff)
		}
	}
	groups := fakeGroups
	defer func() { fakeGroups = groups }()
	fakeGroups = nil
	same("no groups are reported")
	fakeGroups = groups
	w.vol("v").Spec.Options = api.VolumeOptions{"group": "vrit"}
	same("a mistyped group")
	w.vol("v").Spec.Options = nil
	delete(want, "a.b")
	delete(want, "network.ping-timeout")
	if same("none"); !contains(decisions(w.plan(), api.VerdictSkip), "option features.shard stays on") {
		t.Errorf("nothing says that sharding stays: %v", decisions(w.plan()))
	}
	w.vol("v").Spec.Options = api.VolumeOptions{"shard": "off"}
	want["features.shard"] = "off"
	same("declared")
	w.vol("v").Spec.Options = nil
	delete(want, "features.shard")
	same("declared no more")
}

// TestOptions_allowOfBefore: who may mount a volume by an option that an earlier release set, and
// that is refused now, stays so.
func TestOptions_allowOfBefore(t *testing.T) {
	for _, note := range []string{"allow", "auth.allow", "auth.allow=10.0.0.*"} {
		w := poolOf(t, 3)
		w.volume("v", "1Gi", nil)
		w.settle()
		w.gluster.volumes["v"].options[optionAllow] = "10.0.0.*"
		v := w.vol("v")
		v.Spec.Options = api.VolumeOptions{"allow": "10.0.0.*"}
		v.Status.Options = append(v.Status.Options, note)
		w.settle()
		if o := w.gluster.volumes["v"].options[optionAllow]; o != "10.0.0.*" {
			t.Errorf("%s: %q may mount it", note, o)
		}
		w.vol("v").Spec.Options, w.vol("v").Spec.Auth.Allow = nil, []string{"10.0.0.*"}
		if p := w.settle(); !p.Done || w.gluster.volumes["v"].options[optionAllow] != "10.0.0.*" {
			t.Errorf("%s: moved to spec.auth.allow: %v", note, decisions(p))
		}
	}
}

// TestOptions_asked_offline: a volume that is Offline stays so, also while its options cannot be
// set.
func TestOptions_asked_offline(t *testing.T) {
	w := poolOf(t, 3)
	w.volume("v", "1Gi", replica3())
	w.settle()
	w.power(2, false)
	w.power(3, false)
	w.failing["volume set"] = "timed out"
	v := w.vol("v")
	v.Generation++
	v.Spec.Options = api.VolumeOptions{"a.b": "1"}
	for range 5 {
		w.agents()
		w.round()
		if s := w.vol("v").Status; s.State != api.ResourceOffline {
			t.Errorf("%s: %s", s.State, s.Message)
		}
	}
}
