package drift

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/driver/ceph/crushmap"
)

func TestCompare(t *testing.T) {
	osd := func(id int) *OSD {
		return map[int]*OSD{1: {Label: "osd.1", Bucket: "h2"}, 2: {Label: "osd.2", Bucket: "h3", Own: true}}[id]
	}
	keeps := func(entity string) bool { return entity == "osd.1" }
	for name, tt := range map[string]struct {
		declared Declared
		found    Found
		want     []string
	}{
		"nothing": {Declared{Mons: []string{"a"}, Monmap: []string{"a"}, Quorum: []string{"a"}}, Found{}, nil},
		"places":  {Declared{}, Found{Strays: []int{1, 2, 3}}, []string{"PutBack osd.1", "AwaitsWord osd.2"}},
		"keys": {Declared{}, Found{Keys: map[string]KeyState{"osd.1": KeyOther, "client.x": KeyMissing}}, []string{
			"PutBack osd.1",
		}},
		"mons": {Declared{
			Mons: []string{"a", "b"}, Others: []string{"c"}, Monmap: []string{"a", "c", "x"}, Quorum: []string{"a", "c"},
		}, Found{}, []string{"PutBack mon.b", "AwaitsWord mon.x"}},
		"no quorum":        {Declared{Mons: []string{"a", "b"}, Monmap: []string{"a"}}, Found{}, nil},
		"flags of its own": {Declared{}, Found{Flags: []string{"sortbitwise", "noout"}}, []string{"Reported flag/noout"}},
		"a drain": {Declared{Moving: "a drain"}, Found{Flags: []string{"noout", "norecover"}}, []string{
			"Reported flag/noout", "AwaitsWord flag/norecover",
		}},
	} {
		tt.declared.OSD, tt.declared.Keeps = osd, keeps
		var got []string
		for _, x := range Compare(&tt.declared, &tt.found) {
			got = append(got, string(x.Remedy)+" "+x.Object)
			if x.Text == "" {
				t.Errorf("%s: %s has no text", name, x.Object)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// In maps that did not change nothing is looked for.
func TestStrays(t *testing.T) {
	tree := &crushmap.Tree{Places: map[int]crushmap.Place{0: {}, 2: {}}}
	var s Strays
	looks := 0
	osds := func(yield func(int) bool) {
		looks++
		_ = yield(2) && yield(1) && yield(3) && yield(0)
	}
	up := func(id int) bool { return id != 3 }
	for range 3 {
		if got := s.Find(7, tree, osds, up); !slices.Equal(got, []int{1}) {
			t.Error(got)
		}
	}
	s.Find(8, tree, osds, up)
	s.Find(8, &crushmap.Tree{}, osds, up)
	if looks != 3 {
		t.Errorf("looked %d times, want 3", looks)
	}
}

func TestSizes(t *testing.T) {
	s := Sizes{Nodes: []size{{0, 4 << 20}}, Stray: []size{{1, 2 << 30}, {2, 0}}}
	for id, want := range map[int]float64{0: 0.0039, 1: 2} {
		if got, known := s.TiB(id); !known || got != want {
			t.Errorf("osd.%d: %v, %v", id, got, known)
		}
	}
	if _, known := s.TiB(2); known {
		t.Error("the size of osd.2 is not known yet")
	}
}

func TestFound_holding(t *testing.T) {
	for flags, want := range map[string]string{
		"noout": "", "norecover": "ceph osd unset norecover", "nobackfill norebalance": " and ",
	} {
		f := Found{Flags: strings.Fields(flags)}
		if got := f.Holding(); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q", flags, got)
		}
	}
}
