package gctune

import (
	"runtime"
	"testing"
)

func TestAdapt(t *testing.T) {
	for _, tt := range []struct {
		name  string
		was   collector
		live  uint64
		share float64
		want  int
	}{
		{"idle and small", collector{thrifty, false}, 50, 0, thrifty},
		{"idle, nearly large", collector{thrifty, false}, 90, 0, thrifty},
		{"idle and large", collector{thrifty, false}, 100, 0, roomy},
		{"idle and larger", collector{roomy, false}, 240, 0.005, roomy},
		{"idle and as large as may be", collector{roomy, false}, 400, 0.005, 25},
		{"idle, just large before", collector{roomy, false}, 90, 0, roomy},
		{"small again", collector{roomy, false}, 60, 0, thrifty},
		{"busy and small", collector{thrifty, false}, 50, 0.65, most},
		{"still busy, with seldom collections", collector{most, true}, 50, 0.1, most},
		{"not busy yet", collector{thrifty, false}, 50, 0.5, thrifty},
		{"a large fleet comes up", collector{least, false}, 450, 0.65, 44},
		{"a fleet beyond the budget comes up", collector{least, false}, 515, 0.65, least},
		{"a large fleet still comes up", collector{44, true}, 450, 0.3, 44},
		{"heartbeats of a large fleet", collector{44, true}, 450, 0.2, least},
		{"heartbeats, seldom collected no more", collector{least, false}, 450, 0.45, least},
		{"not busy any more", collector{most, true}, 60, 0.005, thrifty},
		{"not busy any more, nearly large", collector{most, true}, 90, 0.005, roomy},
		{"busy within the budget", collector{most, true}, 400, 0.5, 62},
		{"busy, about as before", collector{70, true}, 400, 0.5, 70},
		{"busy and beyond the budget", collector{most, true}, 1000, 0.5, busyLeast},
	} {
		c := tt.was
		if changed := c.adapt(tt.live<<20, tt.share); c.percent != tt.want || changed != (tt.want != tt.was.percent) {
			t.Errorf("%s: GOGC=%d, want %d; changed: %v", tt.name, c.percent, tt.want, changed)
		}
	}
}

func TestReadHeap(t *testing.T) {
	_, before := readHeap()
	held := make([]byte, 32<<20)
	runtime.GC()
	live, after := readHeap()
	if live < uint64(len(held)) {
		t.Errorf("%d bytes live, and %d are held", live, len(held))
	}
	if after < before {
		t.Errorf("collections took %v s, and %v s before", after, before)
	}
	runtime.KeepAlive(held)
}
