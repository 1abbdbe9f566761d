package ceph

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/engine"
)

// TestHandOver_order is of the cluster of three hosts, each with a mon, a manager and an OSD, all of 17.2.7. What is installed decides what runs after
// a hand-over.
func TestHandOver_order(t *testing.T) {
	for name, tt := range map[string]struct {
		installed [3]string
		hosts     string
		change    func(*engine.View, map[string]string)
		want      string
	}{
		"the same everywhere":                 {[3]string{"17.2.7", "17.2.7", "17.2.7"}, "", nil, ""},
		"one host, the same":                  {[3]string{"17.2.7", "17.2.7", "17.2.7"}, "h1", nil, ""},
		"an upgrade on the way, all hosts":    {[3]string{"18.2.4", "18.2.4", "18.2.4"}, "", nil, ""},
		"newer on one host, which goes alone": {[3]string{"18.2.4", "17.2.7", "17.2.7"}, "h1", nil, "install Ceph 18.2.4 on host h2, too"},
		"newer on all, one goes alone":        {[3]string{"18.2.4", "18.2.4", "18.2.4"}, "h1", nil, "hand over host h2, too, or all hosts (without --hosts)"},
		"newer on one host, all go":           {[3]string{"18.2.4", "17.2.7", "17.2.7"}, "", nil, "install Ceph 18.2.4 on host h2, too"},
		"older on one host, all go":           {[3]string{"17.2.5", "17.2.7", "17.2.7"}, "", nil, ""},
		"too far":                             {[3]string{"20.2.0", "20.2.0", "20.2.0"}, "", nil, "over at most 2 releases"},
		"nobody knows what is installed":      {[3]string{}, "h1", nil, ""},
		"nobody knows what runs":              {[3]string{"18.2.4", "18.2.4", "18.2.4"}, "h1", func(_ *engine.View, running map[string]string) { clear(running) }, ""},
		"the others were handed over before": {[3]string{"18.2.4", "18.2.4", "18.2.4"}, "h1", func(v *engine.View, running map[string]string) {
			for i := range v.Daemons {
				if d := &v.Daemons[i]; d.Spec.Host != "h1" {
					d.Spec.State = api.WantRunning
					running[label(d)] = "18.2.4"
				}
			}
		}, ""},
		"one was handed over before the packages came": {[3]string{"18.2.4", "18.2.4", "18.2.4"}, "h1,h3", func(v *engine.View, _ map[string]string) {
			for i := range v.Daemons {
				if d := &v.Daemons[i]; d.Spec.Host == "h2" {
					d.Spec.State = api.WantRunning
				}
			}
		}, "holdfast daemon restart mon.h2"},
		"a host was handed over before the packages came, and mons of others were not": {[3]string{"18.2.4", "18.2.4", "18.2.4"}, "", func(v *engine.View, _ map[string]string) {
			for i := range v.Daemons {
				if d := &v.Daemons[i]; d.Spec.Type == TypeMgr && d.Spec.Host == "h2" {
					d.Spec.State = api.WantRunning
				}
			}
		}, ""},
		"a manager runs an older release than was installed since, and all mons the newer one": {[3]string{"18.2.4", "18.2.4", "18.2.4"}, "", func(v *engine.View, running map[string]string) {
			for i := range v.Daemons {
				switch d := &v.Daemons[i]; {
				case d.Spec.Type == TypeMon:
					running[label(d)] = "18.2.4"
				case d.Spec.Type == TypeMgr && d.Spec.Host == "h2":
					d.Spec.State = api.WantRunning
				}
			}
		}, "holdfast daemon restart mgr.h2"},
	} {
		t.Run(name, func(t *testing.T) {
			view, _ := adoptedView()
			h := newHandOver(view, api.ActionSpec{Parameters: map[string]api.ActionParameter{HandOverHosts: api.ActionParameter(tt.hosts)}})
			h.running = map[string]string{}
			for i := range view.Hosts {
				view.Hosts[i].Status.Packages = map[string]api.Release{}
				for _, daemonType := range coreTypes {
					if v := tt.installed[i]; v != "" {
						view.Hosts[i].Status.Packages[daemonType] = api.Release(v)
					}
				}
			}
			for i := range view.Daemons {
				if d := &view.Daemons[i]; d.Spec.Type != TypeOSD {
					h.running[label(d)] = "17.2.7"
				}
			}
			if tt.change != nil {
				tt.change(view, h.running)
			}
			err := h.releasesFit()
			if (tt.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if _, told := HandOverWords(view, api.ActionSpec{Parameters: map[string]api.ActionParameter{HandOverHosts: api.ActionParameter(tt.hosts)}}, h.running); (err == nil) != (told == nil) || err != nil && told.Error() != err.Error() {
				t.Errorf("before it is begun, %v is told, and then %v", told, err)
			}
			if err != nil && !strings.Contains(err.Error(), "mons, managers, OSDs") && tt.want != "over at most 2 releases" {
				t.Errorf("it does not say the order: %v", err)
			}
		})
	}
}

// Who is asked before a hand-over says what runs. What is approved does not depend on whether anybody could say it.
func TestHandOver_releases(t *testing.T) {
	view, _ := adoptedView()
	d := &Driver{Dial: func(rados.Config) rados.Client { return answering{} }}
	running, err := d.Releases(t.Context(), view, oneKey{})
	if err != nil || running["mon.h1"] != "17.2.7" || running["mgr.h2"] != "17.2.7" {
		t.Errorf("%v: %v", err, running)
	}
	lines, err := HandOverWords(view, api.ActionSpec{}, running)
	if unknown, again := HandOverWords(view, api.ActionSpec{}, nil); err != nil || again != nil || !slices.Equal(lines, unknown) {
		t.Errorf("%v, %v: %q and %q", err, again, lines, unknown)
	}
}

// answering are mons that tell their releases.
type answering struct{ rados.Client }

func (answering) Mon(_ context.Context, command any, _ []byte) ([]byte, error) {
	text, err := json.Marshal(command)
	if strings.Contains(string(text), "mgr metadata") {
		return []byte(`[{"name": "h2", "ceph_version_short": "17.2.7"}]`), err
	}
	return []byte(`[{"name": "h1", "ceph_version_short": "17.2.7"}]`), err
}

// oneKey is a store with one key.
type oneKey struct{}

func (oneKey) Secret(context.Context, string) (map[string][]byte, error) {
	return map[string][]byte{secretKey: []byte("k")}, nil
}
