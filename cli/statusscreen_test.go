package cli

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/screen"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// cephSnapshot is a Ceph cluster with so many OSDs.
func cephSnapshot(osds int) snapshot {
	s := testSnapshot(1, 1)
	s.Cluster.Spec.Type = api.StorageCeph
	s.Status = &api.StorageStatus{Status: api.StorageStatusStatus{
		Type: api.StorageCeph, Status: api.StorageOnline, Health: "HEALTH_OK",
		Daemons: []api.DaemonCount{{Type: "ceph-osd", Version: "16.2.15", Wanted: int32(osds), Running: int32(osds)}},
		Ceph:    &api.CephStatus{OSDs: int32(osds), OSDsUp: int32(osds), OSDsIn: int32(osds), PGs: 33, PGsClean: 33},
	}}
	for i := range osds {
		d := api.Daemon{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("ceph-osd-%d", i)}}
		d.Spec.Type, d.Spec.ID, d.Spec.Host = "ceph-osd", fmt.Sprint(i), fmt.Sprintf("h%d", i/4+1)
		d.Status.State, d.Status.ObservedGeneration = api.DaemonRunning, 1
		s.Daemons = append(s.Daemons, d)
	}
	s.figures = &api.StorageFigures{
		RawBytes: 100 << 30, UsedBytes: 13 << 30, AvailableBytes: 87 << 30, UsedPercent: 13,
		DataBytes: 4 << 30, Objects: 1000,
		PlacementGroups: []api.PlacementGroupCount{{State: "active+clean", Count: 33}}, ClientIO: &api.ClientIO{},
	}
	return s
}

func movingSnapshot() snapshot {
	s := cephSnapshot(4)
	st := &s.Status.Status
	st.Status, st.Health, st.Message = api.StorageDegraded, "HEALTH_WARN", "osd.3 on h1 is out"
	st.Ceph.OSDsIn = 3
	s.Daemons[3].Status.Service = &api.DaemonService{
		State: api.OutOfService, Reason: api.ReasonMarkedOut, Message: "it is marked out",
		Next: "take it in again with 'holdfast ceph osd in 3'",
	}
	s.figures.ClientIO = &api.ClientIO{
		ReadBytesPerSecond: 1 << 20, ReadsPerSecond: 256, WriteBytesPerSecond: 4 << 20, WritesPerSecond: 1,
	}
	s.figures.PlacementGroups = []api.PlacementGroupCount{
		{State: "active+clean", Count: 30}, {State: "active+remapped+backfilling", Count: 3},
	}
	s.figures.Recovery = &api.RecoveryFigures{
		MisplacedCopies: 600, TotalCopies: 3000, BytesPerSecond: 80 << 20, ObjectsPerSecond: 20, SecondsLeft: 31,
	}
	return s
}

func manySnapshot() snapshot {
	s := cephSnapshot(120)
	s.Daemons[38].Status.State, s.Daemons[38].Status.Message = api.DaemonFailed, "the device is gone: was it pulled?"
	s.Daemons[7].Status.State = api.DaemonPending
	return s
}

// TestStatusScreen shows screens of 'holdfast status', with and without colour.
func TestStatusScreen(t *testing.T) {
	datadriven.RunTest(t, "testdata/status.txt", func(t *testing.T, d *datadriven.TestData) string {
		made := map[string]func() snapshot{
			"well": func() snapshot { return cephSnapshot(3) }, "moving": movingSnapshot, "many": manySnapshot,
		}[d.Cmd]
		var b strings.Builder
		screen.Print(words.NewVisibleWriter(&b), screen.Colour(d.CmdArgs[0].Key), picture("ceph", made(), 3*time.Second))
		if page := screensIn[d.Cmd]; page != "" && d.CmdArgs[0].Key == string(screen.Never) {
			if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), b.String()) {
				t.Errorf("%s does not have the screen, %v:\n%s", page, err, b.String())
			}
		}
		return words.Visible(b.String())
	})
}

// screensIn are the pages that show screens.
var screensIn = map[string]string{"well": "../docs/tutorial.md", "moving": "../docs/how-to/keep-ceph.md"}

// TestStatusValues: programs read what people see.
func TestStatusValues(t *testing.T) {
	for _, output := range []string{"json", "yaml"} {
		var b strings.Builder
		p := newPrinter(&b, output)
		p.showJSON("ceph", movingSnapshot())
		var got struct {
			Cluster string
			Figures *api.StorageFigures
			Ceph    *api.CephStatus
			State   api.StorageState
			Objects []line
		}
		if err := yaml.Unmarshal([]byte(b.String()), &got); err != nil {
			t.Fatalf("%s: %v:\n%s", output, err, b.String())
		}
		want := movingSnapshot()
		if !reflect.DeepEqual(got.Figures, want.figures) || got.Ceph.OSDsIn != 3 || got.State != api.StorageDegraded ||
			len(got.Objects) != 4 || strings.HasPrefix(b.String(), "{") != (output == "json") {
			t.Errorf("%s:\n%s", output, b.String())
		}
	}
}

// TestStatusValues_again: figures that change are told of again, figures that were only read again
// are not, and what is empty is a list.
func TestStatusValues_again(t *testing.T) {
	var b strings.Builder
	p := newPrinter(&b, "json")
	s := cephSnapshot(0)
	s.Status.Status.Daemons = nil
	for _, change := range []func(f *api.StorageFigures){
		func(*api.StorageFigures) {},
		func(f *api.StorageFigures) { f.Time = metav1.Unix(1000, 0) },
		func(f *api.StorageFigures) { f.ClientIO.ReadsPerSecond = 7 },
	} {
		change(s.figures)
		p.showJSON("ceph", s)
	}
	if lines := strings.Count(b.String(), "\n"); lines != 2 || !strings.Contains(b.String(), `"readsPerSecond":7`) {
		t.Errorf("%d lines:\n%s", lines, b.String())
	}
	for _, list := range []string{`"objects":[]`, `"daemons":[]`} {
		if strings.Count(b.String(), list) != 2 {
			t.Errorf("without %s:\n%s", list, b.String())
		}
	}
}
