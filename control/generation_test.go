package control

import (
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/control/backup"
)

// TestNextGeneration: what is restored counts for more than every life of the control plane that is known of, whatever the clock says.
func TestNextGeneration(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, tt := range []struct {
		name string
		own  int64
		h    *backup.Header
		want int64
	}{
		{"the first restore, from the data", 0, nil, 1000},
		{"another one, by a clock that is behind", 2000, nil, 2001},
		{"a backup of one that was never restored", 0, &backup.Header{Generation: new(int64(0)), Time: now}, 1000},
		{"a backup of one that was restored by a clock ahead of this one", 0, &backup.Header{Generation: new(int64(5000)), Time: now}, 5001},
		{"the data directory knows of a later one", 6000, &backup.Header{Generation: new(int64(5000)), Time: now}, 6001},
		{"a backup that does not say", 0, &backup.Header{Time: time.Unix(3000, 0)}, 3001},
		{"one that does not say, and is old", 0, &backup.Header{Time: time.Unix(300, 0)}, 1000},
	} {
		if got := nextGeneration(now, tt.own, tt.h); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}
