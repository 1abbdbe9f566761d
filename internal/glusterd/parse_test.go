package glusterd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The files below testdata are what gluster 10.3 of Debian 12 printed: three nodes, with their addresses and paths shortened.
func recorded(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func volumes(t testing.TB, info, status string) map[string]*Volume {
	t.Helper()
	all, err := ParseVolumes(recorded(t, info))
	if err != nil {
		t.Fatal(err)
	}
	if err := AddStatus(all, recorded(t, status)); err != nil {
		t.Fatal(err)
	}
	byName := map[string]*Volume{}
	for i := range all {
		byName[all[i].Name] = &all[i]
	}
	return byName
}

func states(v *Volume) (text string) {
	for _, b := range v.Bricks {
		text += b.Address[len("10.0.0."):] + "=" + string(b.State) + " "
	}
	return strings.TrimSpace(text)
}

func TestParsePeers(t *testing.T) {
	for file, want := range map[string]string{
		"peer-status-alone.xml":    "",
		"peer-status.xml":          "10.0.0.2 true, 10.0.0.3 true",
		"peer-status-node-off.xml": "10.0.0.2 true, 10.0.0.3 false",
	} {
		peers, err := ParsePeers(recorded(t, file))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range peers {
			got = append(got, p.Address+" "+map[bool]string{true: "true", false: "false"}[p.Connected])
			if p.State != PeerInCluster || p.UUID == "" || p.Others != nil {
				t.Errorf("%s: %+v", file, p)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %v, want %s", file, got, want)
		}
	}
}

func TestParseVolumes(t *testing.T) {
	all := volumes(t, "volume-info.xml", "volume-status.xml")
	var got []string
	for _, name := range []string{"arb", "disp", "dist", "rep", "rep2"} {
		v := all[name]
		got = append(got, v.State, states(v))
		if v.ID == "" || v.Bricks[0].UUID == "" || v.Bricks[0].Path != "/bricks/"+name+".1" {
			t.Errorf("%s: %+v", name, v)
		}
	}
	three, two := "1=online 2=online 3=online", "1=online 2=online"
	if diff := cmp.Diff([]string{"Started", three, "Started", three, "Started", two, "Started", three, "Started", two}, got); diff != "" {
		t.Error(diff)
	}
	if a := all["arb"]; a.Replica != 3 || a.Arbiter != 1 || !a.Bricks[2].Arbiter || a.Bricks[0].Arbiter || a.SetSize() != 3 {
		t.Errorf("arbiter: %+v", a)
	}
	if d := all["disp"]; d.Disperse != 3 || d.Redundancy != 1 || d.SetSize() != 3 {
		t.Errorf("disperse: %+v", d)
	}
	if d := all["dist"]; d.SetSize() != 1 || len(d.Sets()) != 2 || d.Options["features.quota"] != "on" {
		t.Errorf("distribute: %+v", d)
	}
	if all["rep"].Options["auth.allow"] != "10.0.0.*" {
		t.Errorf("options: %v", all["rep"].Options)
	}
	if none := volumes(t, "volume-info-none.xml", "volume-status-none.xml"); len(none) != 0 {
		t.Errorf("no volumes: %v", none)
	}
	if v := volumes(t, "volume-info-created.xml", "volume-status-created.xml")["rep"]; v.State != VolumeCreated || states(v) != "1= 2= 3=" {
		t.Errorf("a volume that was not started: %+v", v)
	}
}

// A brick whose process is dead is told apart from one whose node nobody hears of: that one vanishes from the status.
func TestAddStatus_whatIsDown(t *testing.T) {
	if v := volumes(t, "volume-info.xml", "volume-status-brick-dead.xml")["rep"]; states(v) != "1=online 2=offline 3=online" {
		t.Errorf("a dead brick: %s", states(v))
	}
	if v := volumes(t, "volume-info.xml", "volume-status-node-off.xml")["disp"]; states(v) != "1=online 2=online 3=" {
		t.Errorf("a node that is off: %s", states(v))
	}
}

func TestAddHeals(t *testing.T) {
	for file, want := range map[string]string{
		"heal-summary-rep.xml": "0/0 0/0 0/0", "heal-summary-pending.xml": "10/0 0/0 10/0", "heal-summary-brick-dead.xml": "10/0 ? 10/0",
	} {
		v := volumes(t, "volume-info.xml", "volume-status.xml")["rep"]
		if err := AddHeals(v, recorded(t, file)); err != nil {
			t.Fatal(err)
		}
		if got := heals(v); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
	v := volumes(t, "volume-info.xml", "volume-status.xml")["rep2"]
	if err := errors.Join(AddHeals(v, recorded(t, "heal-summary-split.xml")), AddSplitBrains(v, recorded(t, "heal-info-split.xml"))); err != nil {
		t.Fatal(err)
	}
	if heals(v) != "0/1 0/1" || !cmp.Equal(v.Bricks[1].Heal.Files, []string{"/s"}) || !v.splitBrain() {
		t.Errorf("split-brain: %s %+v", heals(v), v.Bricks[1].Heal)
	}
	for _, file := range []string{"heal-summary-dist.xml", "heal-summary-stopped.xml"} {
		if err := AddHeals(v, recorded(t, file)); err == nil {
			t.Errorf("%s is no error", file)
		}
	}
}

func heals(v *Volume) string {
	var got []string
	for _, b := range v.Bricks {
		if b.Heal == nil {
			got = append(got, "?")
			continue
		}
		got = append(got, string(rune('0'+b.Heal.Pending/10))+string(rune('0'+b.Heal.Pending%10))+"/"+string(rune('0'+b.Heal.SplitBrain)))
	}
	return strings.ReplaceAll(strings.Join(got, " "), "00/", "0/")
}

func TestTasks(t *testing.T) {
	v := volumes(t, "volume-info-remove.xml", "volume-status-remove.xml")["dist"]
	brick := "10.0.0.3:/bricks/dist.1"
	if v.Task == nil || v.Task.Kind != TaskRemoveBrick || v.Task.State != TaskInProgress || !cmp.Equal(v.Task.Bricks, []string{brick}) {
		t.Fatalf("task: %+v", v.Task)
	}
	if !v.Brick(brick).Leaving || v.Bricks[0].Leaving {
		t.Errorf("leaving: %+v", v.Bricks)
	}
	if err := AddTask(v, recorded(t, "remove-status.xml")); err != nil || v.Task.Failures != 0 || v.Task.State != TaskInProgress {
		t.Errorf("%+v, %v", v.Task, err)
	}
	// Completed, and not all of it: as it was seen when clients were slow.
	failed := strings.NewReplacer("<failures>0", "<failures>5", "in progress", "completed").Replace(string(recorded(t, "remove-status.xml")))
	if err := AddTask(v, []byte(failed)); err != nil || v.Task.Failures != 5 || v.Task.State != TaskCompleted {
		t.Errorf("%+v, %v", v.Task, err)
	}
	v = volumes(t, "volume-info-remove.xml", "volume-status-rebalance.xml")["dist"]
	if v.Task == nil || v.Task.Kind != TaskRebalance {
		t.Fatalf("task: %+v", v.Task)
	}
	if err := AddTask(v, recorded(t, "rebalance-status-done.xml")); err != nil || v.Task.State != TaskCompleted {
		t.Errorf("%+v, %v", v.Task, err)
	}
}

func TestOthers(t *testing.T) {
	if n, err := ParseOpVersion(recorded(t, "global-op-version.xml")); n != 100000 || err != nil {
		t.Errorf("op-version: %d, %v", n, err)
	}
	for name, want := range map[string][2]string{"10.0.0.1:/a/b": {"10.0.0.1", "/a/b"}, "fd00::1:/a:/b": {"fd00::1", "/a:/b"}} {
		if a, p := SplitBrick(name); a != want[0] || p != want[1] {
			t.Errorf("%s: %q %q", name, a, p)
		}
	}
	for n, want := range map[int64]int64{0: 0, 1: 1, 99: 99, 100: 100, 109: 100, 98765: 98000} {
		if round(n) != want {
			t.Errorf("round(%d) = %d", n, round(n))
		}
	}
}

func TestResult(t *testing.T) {
	var f *Failure
	err := Result(recorded(t, "detach-with-bricks.xml"))
	if !errors.As(err, &f) || f.Errno != 3 || f.Busy() || !strings.Contains(err.Error(), "hosts one or more bricks") {
		t.Errorf("got %v", err)
	}
	if err := Result(recorded(t, "busy.xml")); !errors.As(err, &f) || !f.Busy() {
		t.Errorf("got %v, want one that says busy", err)
	}
	if err := Result(recorded(t, "glusterd-down.txt")); !errors.Is(err, ErrNoAnswer) || !strings.Contains(err.Error(), "Connection failed") {
		t.Errorf("got %v", err)
	}
	if err := Result(recorded(t, "probe-again.xml")); err != nil {
		t.Errorf("a second probe: %v", err)
	}
}

// What is asked for a second time is refused in these words.
func TestDone(t *testing.T) {
	for file, verb := range map[string]string{
		"detach-again.xml": VerbDetach, "start-again.xml": VerbStart, "stop-again.xml": VerbStop, "delete-again.xml": VerbDelete,
		"remove-again.xml": VerbRemoveStart, "remove-commit-again.xml": VerbRemoveCommit, "remove-none.xml": VerbRemoveStop,
		"rebalance-again.xml": VerbRebalance, "quota-enable-again.xml": VerbQuota,
	} {
		if err := Result(recorded(t, file)); !Done(verb, err) {
			t.Errorf("%s: %q is not taken for done: %v", file, verb, err)
		}
	}
	for file, verb := range map[string]string{
		"detach-with-bricks.xml": VerbDetach, "create-rep-again.xml": VerbCreate, "set-unknown.xml": VerbSet, "replace-again.xml": VerbReplace,
		"create-not-force.xml": VerbCreate, "busy.xml": VerbSet,
	} {
		if err := Result(recorded(t, file)); err == nil || Done(verb, err) {
			t.Errorf("%s: %q is taken for done: %v", file, verb, err)
		}
	}
}

func TestHas(t *testing.T) {
	all, err := ParseVolumes(recorded(t, "volume-info.xml"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]string{ParamBricks: "10.0.0.1:/bricks/dist.1 10.0.0.2:/bricks/dist.1"}
	more := map[string]string{ParamBricks: "10.0.0.1:/bricks/dist.1 10.0.0.3:/bricks/dist.1"}
	swap := map[string]string{ParamOld: "10.0.0.3:/bricks/dist.1", ParamNew: "10.0.0.2:/bricks/dist.1"}
	back := map[string]string{ParamOld: "10.0.0.2:/bricks/dist.1", ParamNew: "10.0.0.3:/bricks/dist.1"}
	for _, test := range []struct {
		verb, object string
		params       map[string]string
		want         bool
	}{
		{VerbCreate, "dist", there, true},
		{VerbCreate, "other", there, false},
		{VerbAddBrick, "dist", more, false},
		{VerbReplace, "dist", swap, true},
		{VerbReplace, "dist", back, false},
		{VerbStart, "dist", nil, false},
	} {
		if got := Has(all, test.verb, test.object, test.params); got != test.want {
			t.Errorf("%s %s %v: %v", test.verb, test.object, test.params, got)
		}
	}
}

func TestCommandLines(t *testing.T) {
	bricks := map[string]string{ParamBricks: "a:/x b:/x c:/x", ParamReplica: "2", ParamArbiter: "1"}
	for _, test := range []struct {
		verb, object string
		params       map[string]string
		want         string
	}{
		{VerbProbe, "10.0.0.2", nil, "peer probe 10.0.0.2"},
		{VerbDetach, "10.0.0.2", map[string]string{ParamForce: "true"}, "peer detach 10.0.0.2 force"},
		{VerbCreate, "v", bricks, "volume create v replica 2 arbiter 1 a:/x b:/x c:/x"},
		{VerbAddBrick, "v", map[string]string{ParamBricks: "a:/y", ParamForce: "true"}, "volume add-brick v a:/y force"},
		{VerbStart, "v", map[string]string{ParamForce: "true"}, "volume start v force"},
		{VerbStop, "v", nil, "volume stop v"},
		{VerbDelete, "v", nil, "volume delete v"},
		{VerbSet, "v", map[string]string{"b": "2", "a": "x y"}, "volume set v a x y b 2"},
		{VerbReset, "v", map[string]string{"b": "", "a": ""}, "volume reset v a|volume reset v b"},
		{VerbRebalance, "v", nil, "volume rebalance v start"},
		{VerbRemoveStart, "v", map[string]string{ParamBricks: "a:/x"}, "volume remove-brick v a:/x start"},
		{VerbRemoveStop, "v", map[string]string{ParamBricks: "a:/x"}, "volume remove-brick v a:/x stop"},
		{VerbRemoveCommit, "v", map[string]string{ParamBricks: "a:/x"}, "volume remove-brick v a:/x commit"},
		{VerbReplace, "v", map[string]string{ParamOld: "a:/x", ParamNew: "b:/y"}, "volume replace-brick v a:/x b:/y commit force"},
		{VerbResetBrick, "v", map[string]string{ParamOld: "a:/x"}, "volume reset-brick v a:/x start|volume reset-brick v a:/x a:/x commit"},
		{VerbHeal, "v", nil, "volume heal v"},
		{VerbHeal, "v", map[string]string{ParamFull: "true"}, "volume heal v full"},
		{VerbQuota, "v", map[string]string{ParamLimit: "1000"}, "volume quota v enable|volume quota v limit-usage / 1000"},
		{VerbQuota, "v", nil, "volume quota v disable"},
		{VerbOpVersion, "110000", nil, "volume set all cluster.op-version 110000"},
	} {
		lines, err := CommandLines(test.verb, test.object, test.params)
		var got []string
		for _, l := range lines {
			got = append(got, strings.Join(l, " "))
		}
		if err != nil || strings.Join(got, "|") != test.want {
			t.Errorf("%s: %v, %v, want %s", test.verb, got, err, test.want)
		}
	}
	if _, err := CommandLines(VerbDropBrick, "/x", nil); err == nil {
		t.Error("gluster is asked to drop a brick")
	}
}

func TestGather(t *testing.T) {
	files := map[string]string{
		"peer status": "peer-status.xml", "volume get all cluster.op-version": "global-op-version.xml",
		"volume get all cluster.max-op-version": "global-op-version.xml", "volume info all": "volume-info-remove.xml",
		"volume status all": "volume-status-remove.xml", "volume heal rep info summary": "heal-summary-rep.xml",
		"volume heal rep2 info summary": "heal-summary-split.xml", "volume heal rep2 info split-brain": "heal-info-split.xml",
		"volume heal arb info summary": "heal-summary-stopped.xml", "volume heal disp info summary": "heal-summary-rep.xml",
		"volume remove-brick dist 10.0.0.3:/bricks/dist.1 status": "remove-status.xml",
	}
	ask := func(_ context.Context, args ...string) ([]byte, error) {
		file := files[strings.Join(args, " ")]
		if file == "" {
			return nil, errors.New("nobody asks for this")
		}
		return recorded(t, file), nil
	}
	r, err := Gather(t.Context(), ask, DepthPool)
	if err != nil || r.Problem != "" || r.OpVersion != 100000 || len(r.Peers) != 2 || len(r.Pool.Volumes) != 5 {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, v := range r.Pool.Volumes {
		if (v.Unknown != "") != (v.Name == "arb") {
			t.Errorf("%s: %s", v.Name, v.Unknown)
		}
	}
	if v := r.Pool.Volumes[2]; v.Task.State != TaskInProgress {
		t.Errorf("%+v", v)
	}
	if r, err := Gather(t.Context(), ask, DepthPeer); err != nil || r.Pool != nil || len(r.Peers) != 2 {
		t.Errorf("of peers alone: %+v, %v", r, err)
	}
	delete(files, "volume status all")
	if r, err := Gather(t.Context(), ask, DepthPool); err != nil || r.Pool.Volumes[0].Unknown == "" || r.Problem != "" {
		t.Errorf("without a status: %+v, %v", r, err)
	}
	delete(files, "volume info all")
	if r, err := Gather(t.Context(), ask, DepthPool); err != nil || r.Pool != nil || !strings.Contains(r.Problem, "volume info all") {
		t.Errorf("without volumes: %+v, %v", r, err)
	}
	delete(files, "peer status")
	if _, err := Gather(t.Context(), ask, DepthPeer); err == nil {
		t.Error("no error when glusterd does not answer")
	}
}

// A rebalance of which glusterd refuses to tell, because a node has forgotten it, is the one that the volumes' status told of.
// Silence, or an answer that makes no sense, is something else.
func TestGather_forgottenRebalance(t *testing.T) {
	for name, test := range map[string]struct {
		answer  func() ([]byte, error)
		unknown bool
	}{
		"told":      {func() ([]byte, error) { return recorded(t, "rebalance-status.xml"), nil }, false},
		"forgotten": {func() ([]byte, error) { return recorded(t, "rebalance-again.xml"), nil }, false},
		"silence":   {func() ([]byte, error) { return nil, errors.New("no answer") }, true},
		"nonsense":  {func() ([]byte, error) { return []byte("<"), nil }, true},
	} {
		all, err := ParseVolumes(recorded(t, "volume-info.xml"))
		if err != nil {
			t.Fatal(err)
		}
		if err := AddStatus(all, recorded(t, "volume-status-rebalance.xml")); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(all, func(v Volume) bool { return v.Task != nil && v.Task.Kind == TaskRebalance })
		if i < 0 {
			t.Fatal("no volume is rebalanced")
		}
		v := &all[i]
		was := *v.Task
		v.gather(t.Context(), func(_ context.Context, args ...string) ([]byte, error) {
			if strings.Join(args, " ") != "volume rebalance "+v.Name+" status" {
				return nil, errors.New("nobody asks for " + strings.Join(args, " "))
			}
			return test.answer()
		}, nil)
		if (v.Unknown != "") != test.unknown {
			t.Errorf("%s: %q", name, v.Unknown)
		}
		if name != "told" && !cmp.Equal(was, *v.Task) {
			t.Errorf("%s: the task was %+v and is %+v", name, was, *v.Task)
		}
	}
}

// TestCommandLines_refuses: a name that a node reports becomes no option of gluster, and no second line.
func TestCommandLines_refuses(t *testing.T) {
	for what, call := range map[string]func() ([][]string, error){
		"peer":   func() ([][]string, error) { return CommandLines(VerbProbe, "--log-file=/tmp/x", nil) },
		"volume": func() ([][]string, error) { return CommandLines(VerbStart, "-x", nil) },
		"brick": func() ([][]string, error) {
			return CommandLines(VerbAddBrick, "v", map[string]string{ParamBricks: "10.0.0.1:/a --x"})
		},
		"old": func() ([][]string, error) {
			return CommandLines(VerbReplace, "v", map[string]string{ParamOld: "-x", ParamNew: "10.0.0.1:/a"})
		},
		"option": func() ([][]string, error) { return CommandLines(VerbSet, "v", map[string]string{"--x": "1"}) },
		"line": func() ([][]string, error) {
			return CommandLines(VerbSet, "v", map[string]string{"auth.allow": "10.0.0.1\n*"})
		},
	} {
		if lines, err := call(); err == nil {
			t.Errorf("a %s came to %q", what, lines)
		}
	}
}
