package memory

import (
	"maps"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/leadermemory"
)

// daemon has parameters in its spec, and notes.
func daemon(spec, notes map[string]string) *api.Daemon {
	d := &api.Daemon{Spec: api.DaemonSpec{State: api.WantRunning, Parameters: maps.Clone(spec)}}
	for name, value := range notes {
		leadermemory.Set(d, name, value)
	}
	return d
}

type values = map[string]string

// TestOf: each note that an earlier version made in the spec is read as long as there is none of
// its own.
func TestOf(t *testing.T) {
	for _, name := range names {
		n := string(name)
		for what, x := range map[string]struct {
			d    *api.Daemon
			want string
		}{
			"nothing":             {daemon(nil, nil), ""},
			"in the spec":         {daemon(values{n: "1"}, nil), "1"},
			"noted":               {daemon(nil, values{n: "2"}), "2"},
			"noted since":         {daemon(values{n: "1"}, values{n: "2"}), "2"},
			"forgotten since":     {daemon(values{n: "1"}, values{n: ""}), ""},
			"another one is kept": {daemon(values{n: "1"}, values{"x": "2"}), "1"},
		} {
			if got := Of(x.d, name); got != x.want {
				t.Errorf("%s, %s: %q, want %q", name, what, got, x.want)
			}
		}
	}
}

func TestSet(t *testing.T) {
	d := daemon(nil, nil)
	if Set(d, Flaps, "1"); Of(d, Flaps) != "1" {
		t.Errorf("noted: %v", d.Annotations)
	}
	if Set(d, Flaps, ""); d.Annotations != nil {
		t.Errorf("forgotten: %v", d.Annotations)
	}
}

// TestSettle: the spec of a daemon that is there is not written for the notes in it, and what is
// noted is what is wanted, whatever stands in the spec.
func TestSettle(t *testing.T) {
	for what, x := range map[string]struct {
		have, want *api.Daemon
		// spec and notes are what is written.
		spec, notes values
	}{
		"nothing was noted": {
			daemon(values{"a": "1"}, nil), daemon(values{"a": "1"}, values{"flaps": "1"}),
			values{"a": "1"},
			values{"flaps": "1"},
		},
		"the same": {
			daemon(values{"a": "1", "flaps": "1"}, nil), daemon(values{"a": "1"}, values{"flaps": "1"}),
			values{"a": "1", "flaps": "1"},
			nil,
		},
		"another note": {
			daemon(values{"a": "1", "flaps": "1"}, nil), daemon(values{"a": "1"}, values{"flaps": "2"}),
			values{"a": "1", "flaps": "1"},
			values{"flaps": "2"},
		},
		"forgotten": {
			daemon(values{"a": "1", "flaps": "1"}, nil), daemon(values{"a": "1"}, nil),
			values{"a": "1", "flaps": "1"},
			values{"flaps": ""},
		},
		"one more": {
			daemon(values{"flaps": "1"}, nil), daemon(nil, values{"flaps": "1", "drain": "true"}),
			values{"flaps": "1"},
			values{"drain": "true"},
		},
		"another spec": {
			daemon(values{"a": "1", "flaps": "1"}, nil), daemon(values{"a": "2"}, values{"flaps": "1"}),
			values{"a": "2"},
			values{"flaps": "1"},
		},
		"another spec, forgotten": {
			daemon(values{"a": "1", "flaps": "1"}, values{"flaps": ""}), daemon(values{"a": "2"}, nil),
			values{"a": "2"},
			nil,
		},
		"replaced": {
			daemon(values{"drain": "true"}, nil), daemon(values{"drain": "replace"}, nil),
			values{"drain": "replace"},
			nil,
		},
		"still replaced": {
			daemon(values{"drain": "replace", "flaps": "1"}, nil), daemon(values{"drain": "replace"}, nil),
			values{"drain": "replace", "flaps": "1"},
			values{"flaps": ""},
		},
		"not replaced": {daemon(values{"drain": "replace"}, nil), daemon(nil, nil), nil, nil},
	} {
		before := x.have.DeepCopy()
		Settle(x.want, x.have)
		if !maps.Equal(x.want.Spec.Parameters, x.spec) || !leadermemory.Same(x.want, daemon(nil, x.notes)) {
			t.Errorf("%s: %v and %v, want %v and %v", what, x.want.Spec.Parameters, x.want.Annotations, x.spec, x.notes)
		}
		if !x.have.Spec.Equal(&before.Spec) || !leadermemory.Same(x.have, before) {
			t.Errorf("%s: the daemon that is there was changed", what)
		}
	}
	d := daemon(nil, values{"flaps": "1"})
	if Settle(d, nil); Of(d, Flaps) != "1" {
		t.Errorf("of a new daemon: %v", d.Annotations)
	}
}

func TestMove(t *testing.T) {
	d := daemon(
		values{"a": "1", "flaps": "1", "monNewest": "c", "lostSince": "x", "drain": "replace"},
		values{"flaps": "2", "lostSince": ""},
	)
	Move(d)
	want := daemon(values{"a": "1", "drain": "replace"}, values{"flaps": "2", "monNewest": "c"})
	if !d.Spec.Equal(&want.Spec) || !leadermemory.Same(d, want) {
		t.Errorf("%v and %v", d.Spec.Parameters, d.Annotations)
	}
}
