package gluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// node is a real glusterd with a device and a directory. It is alone in its pool: glusterd takes all of 127/8 for itself.
type node struct {
	*testing.T
	l     *service.Local
	words *strings.Replacer
	cmd   *exec.Cmd
	log   string
}

func newNode(t *testing.T) *node {
	t.Helper()
	l := newLocal(t, api.DeletionWipe)
	l.Parameters[glusterd.ParamDirectories] = filepath.Join(t.TempDir(), "bricks")
	with(t, l, loopDevice(t))
	n := nodeOf(t, l)
	if err := (Glusterd{}).Initialize(t.Context(), &service.Host{Name: "h"}); err != nil {
		t.Fatal(err)
	}
	if err := (Glusterd{}).ConfigureLocalService(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	configure(t, l)
	t.Cleanup(n.end)
	n.start()
	return n
}

// nodeOf gives a daemon an address and its file.
func nodeOf(t *testing.T, l *service.Local) *node {
	t.Helper()
	address := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
	l.Parameters[glusterd.ParamAddress], l.Parameters[glusterd.ParamReport] = address, glusterd.DepthPool
	n := &node{T: t, l: l, words: strings.NewReplacer("${DATA}", l.Data, "${RUN}", l.Run), log: filepath.Join(l.Log, "daemon.log")}
	if err := os.WriteFile(filepath.Join(l.Data, glusterd.FileVolfile), []byte(n.words.Replace(glusterd.Volfile(address))), 0o600); err != nil {
		t.Fatal(err)
	}
	return n
}

// start starts glusterd as its Daemon would be, and waits until it answers.
func (n *node) start() {
	n.Helper()
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.Fatal(err)
	}
	defer log.Close()
	var args []string
	for _, word := range glusterd.Command() {
		args = append(args, n.words.Replace(word))
	}
	n.cmd = exec.Command(args[0], args[1:]...)
	n.cmd.Stdout, n.cmd.Stderr, n.cmd.SysProcAttr = log, log, &syscall.SysProcAttr{Setsid: true}
	if err := n.cmd.Start(); err != nil {
		n.Fatal(err)
	}
	n.await("an answer", func() error {
		_, err := n.report()
		return err
	})
}

func (n *node) stop(sig syscall.Signal) {
	n.Helper()
	if err := n.cmd.Process.Signal(sig); err != nil {
		n.Error(err)
	}
	_ = n.cmd.Wait() // it was killed
}

// end removes everything, and looks whether anything is left.
func (n *node) end() {
	n.stop(syscall.SIGTERM)
	ctx := context.Background()
	for range 2 {
		if err := (Glusterd{}).EndOthers(ctx, n.l); err != nil {
			n.Error(err)
		}
	}
	if left, err := others(n.l); len(left) > 0 || err != nil {
		n.Errorf("processes are left: %v, %v", left, err)
	}
	if err := (Glusterd{}).DestroyLocalService(ctx, n.l); err != nil {
		n.Error(err)
	}
	if n.Failed() {
		text, _ := os.ReadFile(n.log)
		n.Logf("%s", text[max(0, len(text)-4000):])
	}
}

func (n *node) await(what string, check func() error) {
	n.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			n.Fatalf("waiting for %s: %v", what, err)
		}
	}
}

func (n *node) report() (*glusterd.Report, error) {
	text, err := Glusterd{}.Report(n.Context(), n.l)
	if err != nil {
		return nil, err
	}
	return glusterd.Parse(text)
}

func (n *node) mustReport() *glusterd.Report {
	n.Helper()
	r, err := n.report()
	if err != nil {
		n.Fatal(err)
	}
	return r
}

// volume is the only volume of the pool.
func (n *node) volume() *glusterd.Volume {
	n.Helper()
	r := n.mustReport()
	if r.Pool == nil || len(r.Pool.Volumes) != 1 {
		n.Fatalf("pool %+v, problem %s", r.Pool, r.Problem)
	}
	return &r.Pool.Volumes[0]
}

// twice carries out a command and repeats it, as after a crash whose outcome nobody saw.
func (n *node) twice(verb, object string, params map[string]string) {
	n.Helper()
	for i := range 2 {
		if _, err := (Glusterd{}).Perform(n.Context(), n.l, service.Command{Verb: verb, Object: object, Params: params}); err != nil {
			n.Fatalf("time %d: %v", i+1, err)
		}
	}
}

func (n *node) refuses(want, verb, object string, params map[string]string) {
	n.Helper()
	_, err := Glusterd{}.Perform(n.Context(), n.l, service.Command{Verb: verb, Object: object, Params: params})
	if err == nil || !strings.Contains(err.Error(), want) {
		n.Errorf("%s: error %v, want one with %q", verb, err, want)
	}
}

// bricks names places for bricks on the device of the node.
func (n *node) bricks(names ...string) string {
	var out []string
	for _, name := range names {
		out = append(out, n.l.Parameters[glusterd.ParamAddress]+":"+filepath.Join(brickRoot(mountPoint(n.l, n.l.Daemon.Spec.Devices[0].Name)), name))
	}
	return strings.Join(out, " ")
}

// The life of a volume by the real GlusterFS: each command is given twice.
func TestReal_volume(t *testing.T) {
	n := newNode(t)
	force := glusterd.ParamForce // three bricks on one node
	n.twice(glusterd.VerbCreate, "v", map[string]string{glusterd.ParamBricks: n.bricks("a", "b", "c"), glusterd.ParamReplica: "3", force: "true"})
	n.refuses("has a volume of this name already", glusterd.VerbCreate, "v", map[string]string{glusterd.ParamBricks: n.bricks("x")})
	n.twice(glusterd.VerbStart, "v", nil)
	n.twice(glusterd.VerbSet, "v", map[string]string{"network.ping-timeout": "20", "cluster.shd-max-threads": "2"})
	n.refuses("does not exist", glusterd.VerbSet, "v", map[string]string{"no.such-option": "1"})
	n.refuses("option no.such-option is refused", glusterd.VerbSet, "v", map[string]string{"no.such-option": "1", "network.ping-timeout": "21"})
	if got := n.volume().Options["network.ping-timeout"]; got != "21" {
		t.Errorf("an option beside one that is refused is %q", got)
	}
	n.optionNames()
	n.await("three bricks that serve and are clean", func() error {
		v := n.volume()
		for _, b := range v.Bricks {
			if b.State != glusterd.BrickOnline || b.Heal == nil || b.Heal.Pending+b.Heal.SplitBrain > 0 {
				return fmt.Errorf("brick %+v, %s", b, v.Unknown)
			}
		}
		return nil
	})
	first, err := Glusterd{}.Report(t.Context(), n.l)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := (Glusterd{}).Report(t.Context(), n.l); err != nil || first != second {
		t.Errorf("nothing changed, and the report did:\n%s\n%s (%v)", first, second, err)
	}
	if v := n.volume(); v.Options["network.ping-timeout"] != "21" || v.State != glusterd.VolumeStarted || v.Replica != 3 {
		t.Errorf("volume %+v", v)
	}
	n.twice(glusterd.VerbReset, "v", map[string]string{"network.ping-timeout": ""})
	if v := n.volume(); v.Options["network.ping-timeout"] != "" {
		t.Errorf("options %v", v.Options)
	}
	n.brickKilled()
	n.twice(glusterd.VerbReplace, "v", map[string]string{glusterd.ParamOld: n.bricks("a"), glusterd.ParamNew: n.bricks("d")})
	n.refuses("is a brick of the volume v", glusterd.VerbDropBrick, path(n.bricks("b")), map[string]string{glusterd.ParamVolumeID: n.volume().ID})
	n.refuses("none of the places for bricks", glusterd.VerbDropBrick, "/etc", nil)
	n.refuses("not to", glusterd.VerbDropBrick, path(n.bricks("a")), map[string]string{glusterd.ParamVolumeID: "other"})
	n.twice(glusterd.VerbDropBrick, path(n.bricks("a")), map[string]string{glusterd.ParamVolumeID: n.volume().ID})
	n.twice(glusterd.VerbStop, "v", nil)
	n.twice(glusterd.VerbDelete, "v", nil)
	if r := n.mustReport(); r.Pool == nil || len(r.Pool.Volumes) != 0 || len(r.Stores) != 2 || r.UUID == "" {
		t.Errorf("report %+v", r)
	}
}

// optionNames: the options of each group are kept as they are set, a short name is kept as the full
// one, and what was refused is reported. After a boot the link to the socket is made anew.
func (n *node) optionNames() {
	n.Helper()
	if r := n.volume().Refused; len(r) != 1 || r[0].Name != "no.such-option" || r[0].Value != "1" || r[0].Text == "" {
		n.Errorf("refused: %+v", r)
	}
	if err := os.Remove(packageSocket); err != nil {
		n.Fatal(err)
	}
	groups := n.mustReport().Groups
	if to, err := os.Readlink(packageSocket); to != socketOf(n.l) {
		n.Errorf("the link leads to %q: %v", to, err)
	}
	for _, name := range []string{"virt", "samba", "db-workload"} {
		if len(groups[name]) == 0 {
			n.Errorf("no group %s: %v", name, groups)
		}
		n.twice(glusterd.VerbSet, "v", groups[name])
		have := n.volume().Options
		for option, value := range groups[name] {
			if have[option] != value {
				n.Errorf("group %s: %s is %q, want %q", name, option, have[option], value)
			}
		}
	}
	n.twice(glusterd.VerbSet, "v", map[string]string{"ping-timeout": "21"})
	if o := n.volume().Options; o["network.ping-timeout"] != "21" || o["ping-timeout"] != "" {
		n.Errorf("a short name is kept as %v", o)
	}
}

func path(brick string) string {
	_, p := glusterd.SplitBrick(brick)
	return p
}

// processes returns a check of whether so many of this glusterd run.
func (n *node) processes(want int) func() error {
	return func() error {
		all, err := others(n.l)
		for _, p := range all {
			p.fd.Close()
		}
		if err == nil && len(all) != want {
			err = fmt.Errorf("%d processes, want %d: %v", len(all), want, all)
		}
		return err
	}
}

// startsBrick has the brick that was killed started, again after some seconds as the leader does while it is offline: glusterd may not know of its end
// yet, and does nothing then; and it loses one that is started once more before it has signed in.
func (n *node) startsBrick() {
	n.Helper()
	var started time.Time
	n.await("the brick to be up again", func() error {
		v := n.volume()
		if v.Bricks[1].State == glusterd.BrickOnline {
			return nil
		}
		if time.Since(started) > 10*time.Second {
			started = time.Now()
			if _, err := (Glusterd{}).Perform(n.Context(), n.l, service.Command{Verb: glusterd.VerbStart, Object: "v", Params: map[string]string{glusterd.ParamForce: "true"}}); err != nil {
				return err
			}
		}
		return fmt.Errorf("bricks %+v", v.Bricks)
	})
}

// brickKilled kills a brick: the report says so, and a start by force brings it back. It kills glusterd: bricks live on.
func (n *node) brickKilled() {
	n.Helper()
	n.await("three bricks, a self-heal daemon and glusterd itself", n.processes(5))
	all, err := others(n.l)
	if err != nil {
		n.Fatal(err)
	}
	pid := filepath.Join(n.l.Run, "vols", "v", strings.ReplaceAll(strings.Replace(n.bricks("b"), ":/", "-", 1), "/", "-")+".pid")
	text, err := os.ReadFile(pid)
	if err != nil {
		n.Fatal(err)
	}
	for _, p := range all {
		if fmt.Sprint(p.pid) == strings.TrimSpace(string(text)) {
			err = p.signal(syscall.SIGKILL)
		}
		p.fd.Close()
	}
	if err != nil {
		n.Fatal(err)
	}
	n.await("a brick that is down", func() error {
		if v := n.volume(); v.Bricks[1].State != glusterd.BrickOffline {
			return fmt.Errorf("bricks %+v", v.Bricks)
		}
		return nil
	})
	n.startsBrick()
	n.twice(glusterd.VerbStart, "v", map[string]string{glusterd.ParamForce: "true"})
	n.stop(syscall.SIGKILL)
	if n.processes(3)() != nil && n.processes(4)() != nil { // the self-heal daemon may just be on its way
		n.Errorf("after glusterd was killed: %v", n.processes(4)())
	}
	n.start()
	n.await("all bricks", func() error {
		for _, b := range n.volume().Bricks {
			if b.State != glusterd.BrickOnline {
				return fmt.Errorf("brick %+v", b)
			}
		}
		return nil
	})
}

// Bricks come and go with their data.
func TestReal_bricks(t *testing.T) {
	n := newNode(t)
	n.twice(glusterd.VerbCreate, "v", map[string]string{glusterd.ParamBricks: n.bricks("a", "b")})
	n.twice(glusterd.VerbStart, "v", nil)
	for _, limit := range []int64{100000000, 200000000} {
		n.twice(glusterd.VerbQuota, "v", map[string]string{glusterd.ParamLimit: fmt.Sprint(limit)})
		for _, b := range n.volume().Bricks {
			if got := limitOf(b.Path); got != limit {
				t.Errorf("brick %s has the limit %d, want %d", b.Path, got, limit)
			}
		}
	}
	n.twice(glusterd.VerbQuota, "v", nil)
	n.twice(glusterd.VerbQuota, "v", map[string]string{glusterd.ParamLimit: "300000000"}) // kept under another name this time
	if v := n.volume(); v.Options[glusterd.OptionQuota] != "on" || limitOf(v.Bricks[0].Path) != 300000000 {
		t.Errorf("turned on again: %v, limit %d", v.Options, limitOf(v.Bricks[0].Path))
	}
	n.twice(glusterd.VerbAddBrick, "v", map[string]string{glusterd.ParamBricks: n.bricks("c"), glusterd.ParamHas: n.bricks("b", "a")})
	n.refuses("but had 2 when the leader decided", glusterd.VerbAddBrick, "v",
		map[string]string{glusterd.ParamBricks: n.bricks("d"), glusterd.ParamHas: n.bricks("a", "b")})
	if got := len(n.volume().Bricks); got != 3 {
		t.Fatalf("the volume has %d bricks, want 3", got)
	}
	n.twice(glusterd.VerbRebalance, "v", nil)
	n.await("the rebalance to end", n.taskIs(glusterd.TaskRebalance, glusterd.TaskCompleted))
	drain := map[string]string{glusterd.ParamBricks: n.bricks("b")}
	n.twice(glusterd.VerbRemoveStart, "v", drain)
	n.twice(glusterd.VerbRemoveStop, "v", drain)
	n.twice(glusterd.VerbRemoveStart, "v", drain)
	n.await("the brick to be drained", n.taskIs(glusterd.TaskRemoveBrick, glusterd.TaskCompleted))
	n.twice(glusterd.VerbRemoveCommit, "v", drain)
	if v := n.volume(); len(v.Bricks) != 2 || v.Task != nil {
		t.Errorf("volume %+v", v)
	}
}

func (n *node) taskIs(kind, state string) func() error {
	return func() error {
		v := n.volume()
		if v.Task == nil || v.Task.Kind != kind || v.Task.State != state {
			return fmt.Errorf("task %+v, %s", v.Task, v.Unknown)
		}
		return nil
	}
}

func TestVersion(t *testing.T) {
	v, err := Glusterd{}.Version(t.Context())
	if err != nil || !strings.Contains(v, ".") {
		t.Errorf("%q, %v", v, err)
	}
	if _, err := parseVersion("something else"); err == nil {
		t.Error("something else is a version")
	}
}

func TestPerform_unknown(t *testing.T) {
	_, err := Glusterd{}.Perform(t.Context(), newLocal(t, api.DeletionRetain), service.Command{Verb: "polish"})
	if err == nil || !strings.Contains(err.Error(), "upgrade Holdfast") {
		t.Error(err)
	}
}
