package spell_test

import (
	"testing"

	"github.com/holdfast-storage/holdfast/internal/spell"
)

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"node1", "node1", 0},
		{"", "osd", 3},
		{"nod1", "node1", 1},
		{"node12", "node1", 1},
		{"osd.4", "osd.3", 1},
		{"kitten", "sitting", 3},
		{"abc", "xyz", 3},
	} {
		if got := spell.Distance(tt.a, tt.b); got != tt.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if back := spell.Distance(tt.b, tt.a); back != tt.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", tt.b, tt.a, back, tt.want)
		}
	}
}

func TestAlike(t *testing.T) {
	for _, tt := range []struct {
		written  string
		distance int
		want     bool
	}{
		{"h1", 2, true}, {"h1", 3, false}, {"storagenode", 3, true}, {"storagenode", 4, false},
	} {
		if got := spell.Alike(tt.written, tt.distance); got != tt.want {
			t.Errorf("Alike(%q, %d) = %v", tt.written, tt.distance, got)
		}
	}
}
