package drift

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestOptions: by hand is what was seen as it is wanted, and is otherwise now.
func TestOptions(t *testing.T) {
	long := strings.Repeat("x", 2*longest)
	want := map[string]string{"a": "1", "b": "2", "long": long}
	for _, tt := range []struct {
		name   string
		noted  []string
		have   map[string]string
		byHand string
		set    []string
		reset  []string
	}{
		{"new", nil, nil, "", []string{"a", "b", "long"}, nil},
		{
			"of an earlier Holdfast",
			[]string{"a", "b", "long"},
			map[string]string{"a": "9"},
			"",
			[]string{"a", "b", "long"},
			nil,
		},
		{"as noted", []string{"a=1", "b=2", note("long", long)}, want, "", nil, nil},
		{
			"set by hand",
			[]string{"a=1", "b=2"},
			map[string]string{"a": "9", "b": "2", "long": long},
			"a was set to 9",
			[]string{"a"},
			nil,
		},
		{
			"reset by hand",
			[]string{note("long", long)},
			map[string]string{"a": "1", "b": "2"},
			"long was reset",
			[]string{"long"},
			nil,
		},
		{
			"declared otherwise",
			[]string{"a=0", "b=2"},
			map[string]string{"a": "0", "b": "2", "long": long},
			"",
			[]string{"a"},
			nil,
		},
		{
			"wanted no more",
			[]string{"c=3", "d=4"},
			map[string]string{"a": "1", "b": "2", "long": long, "c": "3"},
			"", nil,
			[]string{"c"},
		},
	} {
		set, reset, byHand, notes := Options(tt.noted, want, tt.have)
		if diff := cmp.Diff([][]string{tt.set, tt.reset}, [][]string{keys(set), keys(reset)}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if (byHand == "") != (tt.byHand == "") || !strings.Contains(byHand, tt.byHand) {
			t.Errorf("%s: by hand %q", tt.name, byHand)
		}
		for name := range want {
			if !slices.ContainsFunc(notes, func(n string) bool { return n == name || strings.HasPrefix(n, name+"=") }) {
				t.Errorf("%s: %s is not noted in %q", tt.name, name, notes)
			}
		}
	}
}

func keys(m map[string]string) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func brick(node, path, membership string) api.VolumeBrick {
	return api.VolumeBrick{Node: node, Path: path, Membership: membership}
}

func now(node, path string, own bool) Brick {
	return Brick{Names: []string{node}, Path: path, Own: own}
}

func TestBricks(t *testing.T) {
	one, two := brick("n1", "/s/v.1", Member), brick("n2", "/s/v.1", Member)
	for _, tt := range []struct {
		name     string
		recorded []api.VolumeBrick
		now      []Brick
		are      []string
		removed  string
	}{
		{
			"as recorded",
			[]api.VolumeBrick{one, two},
			[]Brick{now("n1", "/s/v.1", true), now("n2", "/s/v.1", true)},
			[]string{Member, Member},
			"",
		},
		{"removed", []api.VolumeBrick{one, two}, []Brick{now("n1", "/s/v.1", true)}, []string{Member}, "n2:/s/v.1"},
		{
			"still removed",
			[]api.VolumeBrick{one, brick("n2", "/s/v.1", Removed)},
			[]Brick{now("n1", "/s/v.1", true)},
			[]string{Member},
			"n2:/s/v.1",
		},
		{
			"accepted",
			[]api.VolumeBrick{one, brick("n2", "/s/v.1", Left)},
			[]Brick{now("n1", "/s/v.1", true)},
			[]string{Member},
			"",
		},
		{
			"planned and not there yet",
			[]api.VolumeBrick{one, brick("n2", "/s/v.1", "")},
			[]Brick{now("n1", "/s/v.1", true)},
			[]string{Member},
			"",
		},
		{
			"replaced by Holdfast",
			[]api.VolumeBrick{one, two},
			[]Brick{now("n1", "/s/v.1", true), now("n3", "/s/v.1", true)},
			[]string{Member, Member},
			"",
		},
		{
			"replaced by hand",
			[]api.VolumeBrick{one, two},
			[]Brick{now("n1", "/s/v.1", true), now("n3", "/x", false)},
			[]string{Member, Added},
			"n2:/s/v.1",
		},
		{"made by hand, and declared", nil, []Brick{now("n1", "/x", false)}, []string{Member}, ""},
		{
			"of an earlier Holdfast",
			[]api.VolumeBrick{brick("n1", "/x", "")},
			[]Brick{now("n1", "/x", false), now("n2", "/y", false)},
			[]string{Member, Member},
			"",
		},
	} {
		are, removed := Bricks(tt.recorded, tt.now, false)
		got := Names(removed)
		if !slices.Equal(are, tt.are) || got != tt.removed || (ID(removed) == "") != (tt.removed == "") {
			t.Errorf("%s: %v, removed %q (%s)", tt.name, are, got, ID(removed))
		}
	}
	added := []api.VolumeBrick{one, brick("n3", "/x", Added)}
	if are, _ := Bricks(added, []Brick{now("n1", "/s/v.1", true), now("n3", "/x", false)}, true); are[1] != Member {
		t.Errorf("somebody changed the spec since: %v", are)
	}
}

func TestOwn(t *testing.T) {
	for path, want := range map[string]bool{
		"/s/v.1": true, "/s/v.12": true, "/s/v.x": false, "/s/v.": false, "/s/w.1": false, "/t/v.1": false,
	} {
		if Own("v", "/s", path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}

// TestOptions_ofUsers: GlusterFS refuses to reset options of users: they stay, and nothing is asked
// for again.
func TestOptions_ofUsers(t *testing.T) {
	set, reset, _, notes := Options([]string{"user.cifs=off"}, nil, map[string]string{"user.cifs": "off"})
	if len(set)+len(reset)+len(notes) > 0 {
		t.Errorf("set %v, reset %v, noted %v", set, reset, notes)
	}
}
