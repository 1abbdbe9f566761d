package main

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestReads measures a small cluster: each read is answered, also while a call hangs.
func TestReads(t *testing.T) {
	s, err := serve(fleet(500), t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.end()
	quiet, beside, err := measureReads(s, options{calls: 3})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range reads {
		q, b := quiet[i], beside[i]
		if len(q.took) != 3 || len(b.took) != 3 || q.size < 20 || q.size != b.size {
			t.Errorf("%s: %+v, %+v", r.name, q, b)
		}
	}
}

// TestQuantile takes times of one call apart.
func TestQuantile(t *testing.T) {
	x := times{}
	for n := range 200 {
		x.took = append(x.took, time.Duration(200-n))
	}
	if x.quantile(0.5) != 101 || x.quantile(0.99) != 199 {
		t.Errorf("%d, %d", x.quantile(0.5), x.quantile(0.99))
	}
}

// TestSince counts the threads that came meanwhile, and that of the module by its name.
func TestSince(t *testing.T) {
	before := threads{"1": {"ceph-mgr", time.Second}, "2": {moduleThread, time.Second}}
	after := threads{
		"1": {"ceph-mgr", 2 * time.Second}, "2": {moduleThread, 2 * time.Second}, "3": {"new", time.Second},
	}
	if used := after.since(before, 10*time.Second); used != (idle{mgr: 30, module: 10}) {
		t.Errorf("%+v", used)
	}
}
