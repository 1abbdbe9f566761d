package figures

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func at(second int64, change func(*api.StorageFigures)) *api.StorageFigures {
	f := &api.StorageFigures{
		Time: metav1.Unix(second, 0), RawBytes: 1000, UsedBytes: 100, AvailableBytes: 900, DataBytes: 30, Objects: 100,
		PlacementGroups: []api.PlacementGroupCount{{State: "active+clean", Count: 8}},
	}
	if change != nil {
		change(f)
	}
	return f
}

func recovery(copies int64) func(*api.StorageFigures) {
	return func(f *api.StorageFigures) { f.Recovery = &api.RecoveryFigures{MisplacedCopies: copies} }
}

func TestPublish(t *testing.T) {
	had := at(0, nil)
	for name, c := range map[string]struct {
		had, now *api.StorageFigures
		written  bool
	}{
		"nothing":             {had, at(1000, nil), false},
		"client IO":           {had, at(1000, reads), false},
		"a little":            {had, at(1000, aLittle), false},
		"scrub":               {had, at(1000, scrub), false},
		"used":                {had, at(1000, func(f *api.StorageFigures) { f.UsedBytes = 120 }), true},
		"objects":             {had, at(1000, func(f *api.StorageFigures) { f.Objects = 110 }), true},
		"used, at once":       {had, at(3, func(f *api.StorageFigures) { f.UsedBytes = 120 }), false},
		"used, clock back":    {at(1000, nil), at(3, func(f *api.StorageFigures) { f.UsedBytes = 120 }), true},
		"a device more":       {had, at(3, func(f *api.StorageFigures) { f.RawBytes = 2000 }), true},
		"recovery begins":     {had, at(3, recovery(10)), true},
		"recovery ends":       {at(0, recovery(10)), at(3, nil), true},
		"recovery continues":  {at(0, recovery(10)), at(3, recovery(9)), false},
		"recovery, later":     {at(0, recovery(10)), at(11, recovery(5)), true},
		"recovery that waits": {at(0, recovery(10)), at(11, recovery(10)), false},
		"first":               {nil, at(0, nil), true},
	} {
		if got := Publish(c.had, c.now); (got != c.had) != c.written {
			t.Errorf("%s: written: %v", name, got != c.had)
		}
	}
}

func reads(f *api.StorageFigures) { f.ClientIO = &api.ClientIO{ReadsPerSecond: 7} }

func aLittle(f *api.StorageFigures) { f.UsedBytes, f.Objects = 105, 104 }

func scrub(f *api.StorageFigures) {
	f.PlacementGroups = []api.PlacementGroupCount{
		{State: "active+clean+scrubbing+deep", Count: 5}, {State: "active+clean", Count: 3},
	}
}

func TestPublish_content(t *testing.T) {
	now := at(7, scrub)
	now.ClientIO = &api.ClientIO{WritesPerSecond: 3}
	if got := Publish(nil, now); !reflect.DeepEqual(got, at(7, nil)) {
		t.Errorf("%+v", got)
	}
	if now.ClientIO == nil {
		t.Error("the figures that were given changed")
	}
	if Publish(at(0, nil), nil) != nil {
		t.Error("there are none any more")
	}
}

// TestSettle: figures without a time get that of now, and stale ones stay.
func TestSettle(t *testing.T) {
	now := time.Unix(1000, 0)
	s := &api.StorageStatusStatus{Figures: Of(1000, 100)}
	Settle(nil, s, now)
	if s.Figures.Time.Unix() != 1000 || s.Figures.AvailableBytes != 900 {
		t.Errorf("%+v", s.Figures)
	}
	later := &api.StorageStatusStatus{Figures: Of(1000, 101)}
	Settle(&api.StorageStatus{Status: *s}, later, now.Add(time.Hour))
	if later.Figures != s.Figures {
		t.Errorf("written again: %+v", later.Figures)
	}
	stale := &api.StorageStatusStatus{StaleSince: &metav1.Time{Time: now}, Figures: s.Figures}
	Settle(nil, stale, now.Add(time.Hour))
	if stale.Figures != s.Figures {
		t.Errorf("%+v", stale.Figures)
	}
}
