package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
)

// victims are what a round kills: 30 times the active mgr, and 10 times the server that leads.
func victims(r *rand.Rand) (all []victim) {
	for count, v := range map[int]victim{24: {mgr: true}, 4: {leader: true}, 6: {mgr: true, leader: true}} {
		for range count {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(x, y victim) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

type victim struct{ mgr, leader bool }

// TestOrchKilled kills the active mgr and the server that leads at random instants of calls of 'ceph
// orch' that change something. Each call is answered with success, and then holds, or with a
// sentence, and then succeeds when it is repeated. HOLDFAST_SEED repeats a run.
func TestOrchKilled(t *testing.T) {
	begin(t)
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("HOLDFAST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("HOLDFAST_SEED=%d", seed)
	b := newBed(t, 4, 2)
	b.mustApply(killedManifest(b))
	b.awaitOrch()
	k := &killer{session: &session{b}, rand: rand.New(rand.NewPCG(seed, 0))}
	k.prepare()
	calls := k.calls()
	for i, v := range victims(k.rand) {
		if k.round(i, calls[i%len(calls)], v); t.Failed() {
			return
		}
	}
	k.finish()
}

// killedManifest is orchManifest with all hosts, of a cluster in which another mgr takes over soon.
func killedManifest(b *bed) string {
	wanted := home.SpecFor(b.Lab, 3, 2, 2)
	wanted.Interval = "2s"
	wanted.Config = maps.Clone(home.Quick)
	wanted.Config["mon_mgr_beacon_grace"] = "5"
	return withOrch(wanted)
}

// killer has calls disturbed.
type killer struct {
	*session
	rand *rand.Rand
	// sent are the calls so far that may make an Action, each time that Ceph may have sent them.
	sent int
	// declared is what has to stand, by what it is about, each with a check.
	declared map[string]func() error
	// osd is the number of the OSD that is told to leave, again and again, and disk and node are where it is.
	osd, disk, node string
	// down is the server that was killed last, 0 for none.
	down int
	// failed and answered count what calls that were disturbed were answered with.
	failed, answered int
}

// killedCall is a call that changes something.
type killedCall struct {
	args, about string
	stands      func() error
	// then comes after it.
	then func()
}

// stillFlags keep data where it is. A group that has seen few writes moves by its log, which is
// recovery to Ceph.
var stillFlags = []string{"norebalance", "nobackfill", "norecover"}

// fillPool makes the pool data, with objects in each of its placement groups.
func (s *session) fillPool() {
	s.says("osd pool create data 32")
	s.says("osd pool application enable data rados")
	s.run("ceph", "shell", "--", "rados", "-p", "data", "bench", "1", "write", "-b", "4096", "--no-cleanup")
}

// holdData keeps all data where it is ("set"), so that no OSD can leave, or lets it move ("unset").
func (s *session) holdData(verb string) {
	for _, flag := range stillFlags {
		s.says("osd " + verb + " " + flag)
	}
}

// prepare makes what the calls change. There is data, which does not move, so that what is asked to
// leave does not do so before it is called back.
func (k *killer) prepare() {
	k.declared = map[string]func() error{}
	k.says("fs volume create home")
	k.becomes("orch ls mds", "2/2")
	k.fillPool()
	k.holdData("set")
	k.osd = k.osdOn("h3")
	for _, d := range k.daemons() {
		if d.Spec.Type == "ceph-osd" && d.Spec.ID == k.osd {
			k.disk = d.Spec.Devices[0].ID
		}
	}
	k.node = "ceph-h3"
}

// calls come again and again. There are three mgrs most of the time: each waits longer and longer
// before it is started again, because it does not stay.
func (k *killer) calls() []killedCall {
	return []killedCall{
		{args: "orch apply mgr 3", about: "mgr", stands: k.mgrCount(3)},
		{args: "orch host label add h4 gw", about: "label", stands: k.labelled(true)},
		{args: "orch apply mds home --placement=3", about: "mds", stands: k.mdsCount(3)},
		{args: "orch osd rm " + k.osd, about: "osd", stands: k.leaving(true)},
		{args: "orch osd rm stop " + k.osd, about: "osd", stands: k.leaving(false)},
		{args: "orch host drain h4", about: "drain", stands: k.mode(api.HostDrain)},
		{args: "orch host label rm h4 gw", about: "label", stands: k.labelled(false)},
		{args: "orch apply mds home --placement=2", about: "mds", stands: k.mdsCount(2)},
		{args: "orch cancel", about: "drain", stands: k.drainsNoMore, then: k.undrain},
		{args: "orch apply mgr 2", about: "mgr", stands: k.mgrCount(2)},
	}
}

func (k *killer) mgrCount(want int32) func() error {
	return func() error {
		c, err := read[api.StorageCluster](k.bed, 1, "storageclusters", "ceph")
		if err == nil && c.Spec.Ceph.Mgr.Count != want {
			err = fmt.Errorf("%d mgrs are declared, not %d", c.Spec.Ceph.Mgr.Count, want)
		}
		return err
	}
}

func (k *killer) mdsCount(want int32) func() error {
	return func() error {
		f, err := read[api.Filesystem](k.bed, 1, "filesystems", "home")
		if err == nil && (f.Spec.StandbyMDS == nil || f.Spec.ActiveMDS+*f.Spec.StandbyMDS != want) {
			err = fmt.Errorf("the MDS that are declared are %+v, not %d", f.Spec, want)
		}
		return err
	}
}

func (k *killer) labelled(want bool) func() error {
	return func() error {
		h, err := read[api.Host](k.bed, 1, "hosts", "h4")
		if _, has := h.Labels["ceph.holdfast.io/label.gw"]; err == nil && has != want {
			err = fmt.Errorf("the labels of h4 are %v", h.Labels)
		}
		return err
	}
}

func (k *killer) leaving(want bool) func() error {
	return func() error {
		n, err := read[api.StorageNode](k.bed, 1, "storagenodes", k.node)
		if err == nil && slices.Contains(n.Spec.Exclude, k.disk) != want {
			err = fmt.Errorf("StorageNode %s excludes %v", k.node, n.Spec.Exclude)
		}
		return err
	}
}

func (k *killer) mode(want api.HostMode) func() error {
	return func() error {
		h, err := read[api.Host](k.bed, 1, "hosts", "h4")
		if err == nil && h.ModeOf() != want {
			err = fmt.Errorf("h4 is in mode %s, not %s", h.ModeOf(), want)
		}
		return err
	}
}

// drainsNoMore: 'ceph orch cancel' ends the drain that is under way. One that has ended stays.
func (k *killer) drainsNoMore() error {
	for _, a := range k.actions() {
		if !a.Status.State.Final() {
			return fmt.Errorf("action %s (%s) is %s: %+v", a.Name, a.Spec.Kind, a.Status.State, a.Status)
		}
	}
	return nil
}

// undrain gives the host back where the drain had ended before it was cancelled.
func (k *killer) undrain() {
	if k.mode(api.HostActive)() != nil {
		k.run("host", "maintenance", "exit", "h4", "--wait", "--timeout", "100s")
	}
	k.declared["drain"] = k.mode(api.HostActive)
}

// actions are those that 'ceph orch' asked for.
func (k *killer) actions() (all []api.Action) {
	k.Helper()
	for _, a := range list[api.Action](k.bed, "actions", "-A") {
		if a.Spec.Requester == "holdfast:orch:default:ceph" {
			all = append(all, a)
		}
	}
	return all
}

// callLimit bounds a call while a mgr is dead: Ceph's client waits for another one.
const callLimit = 90 * time.Second

func (k *killer) call(args string) (string, error) {
	if makesAction(args) {
		k.sent++
	}
	ctx, cancel := context.WithTimeout(k.Context(), callLimit)
	defer cancel()
	command := append([]string{"ceph", "shell", "--", "ceph"}, strings.Fields(args)...)
	out, err := k.Lab.Host(1).Try(ctx, k.Binary, command...)
	if err != nil {
		out = err.Error()
	}
	return out, err
}

// makesAction says whether a call may make an Action.
func makesAction(args string) bool {
	verb := strings.Fields(args)[1]
	return verb == "apply" || strings.HasPrefix(args, "orch osd rm ") && !strings.Contains(args, "stop") ||
		strings.HasPrefix(args, "orch host drain")
}

// killWithin is the time within which a call is disturbed: one that is not takes about a second.
const killWithin = 1800 * time.Millisecond

// round makes one call and kills processes while it runs.
func (k *killer) round(i int, c killedCall, v victim) {
	k.Helper()
	mgr, leader := k.activeMgr(), 0
	kills := []instant{}
	if v.mgr {
		kills = append(kills, k.instant("mgr", func() { mgr.kill(k.bed) }))
	}
	if v.leader {
		leader = k.leaderWithOthers()
		kills = append(kills, k.instant("leader", func() { k.Server(leader).Kill(k) }))
	}
	slices.SortFunc(kills, func(x, y instant) int { return int(x.at - y.at) })
	began := time.Now()
	answer := make(chan error, 1)
	go func() {
		_, err := k.call(c.args)
		answer <- err
	}()
	for _, kill := range kills {
		time.Sleep(time.Until(began.Add(kill.at)))
		kill.do()
	}
	err := <-answer
	took := time.Since(began)
	if v.leader {
		k.StartServer(k, leader)
		k.down = leader
	}
	if v.leader && v.mgr && makesAction(c.args) {
		k.sent++ // another mgr may have sent it to another leader, which had not written what the first one recorded
	}
	k.Logf("round %d: ceph %s; killed %v; after %.1f s: %v", i, c.args, kills, took.Seconds(), err)
	k.answeredOrRepeated(c.args, err)
	k.declared[c.about] = c.stands
	k.holds()
	if c.then != nil {
		c.then()
		k.holds()
	}
}

// answeredOrRepeated repeats a call that was answered with an error, which has to be a sentence.
func (k *killer) answeredOrRepeated(args string, err error) {
	k.Helper()
	if err == nil {
		k.answered++
		return
	}
	k.failed++
	k.sentence(args, err)
	k.awaitOrch()
	if _, err := k.call(args); err != nil {
		k.Errorf("ceph %s, repeated: %v", args, err)
	}
}

// leaderWithOthers is the server that leads, when the one that was killed last is back: two of three
// members of etcd have to be left.
func (k *killer) leaderWithOthers() int {
	k.Helper()
	if k.down != 0 {
		k.await("the server that was killed", func() error {
			_, err := k.leaderFrom(k.down)
			return err
		})
	}
	return k.leader()
}

// instant is when something is killed, from the beginning of a call.
type instant struct {
	of string
	at time.Duration
	do func()
}

func (i instant) String() string { return fmt.Sprintf("%s at %v", i.of, i.at.Round(time.Millisecond)) }

func (k *killer) instant(of string, do func()) instant {
	return instant{of, time.Duration(k.rand.Int64N(int64(killWithin))), do}
}

// sentence fails the test if an error is none that a person reads.
func (k *killer) sentence(args string, err error) {
	k.Helper()
	switch text := err.Error(); {
	case errors.Is(err, context.DeadlineExceeded):
		k.Errorf("ceph %s was not answered within %s", args, callLimit)
	case strings.Contains(text, "Traceback"), !strings.Contains(text, "Error E"):
		k.Errorf("ceph %s was answered with no sentence: %v", args, err)
	}
}

// holds waits until everything that was declared is in the API.
func (k *killer) holds() {
	k.Helper()
	for about, check := range k.declared {
		k.await("what was declared of "+about, check)
	}
}

// killedProcess is a process of a daemon on a host.
type killedProcess struct {
	host string
	pid  string
}

// activeMgr is the process of the mgr that is active, when another one stands by.
func (k *killer) activeMgr() (p killedProcess) {
	k.Helper()
	k.await("an active mgr and one that stands by", func() error {
		m := k.mgrs()
		if !m.Available || len(m.Standbys) == 0 {
			return fmt.Errorf("they are %+v", m)
		}
		active := m.Active
		for _, d := range k.daemons() {
			if d.Spec.Type != mgrType || d.Spec.ID != active {
				continue
			}
			out := k.hostNamed(d.Spec.Host).Run(k, k.Context(), "ps", "-e", "-o", "pid=,args=")
			for line := range strings.Lines(out) {
				fields := strings.Fields(line)
				i := slices.Index(fields, "-i")
				if i > 1 && strings.HasSuffix(fields[1], mgrType) && fields[i+1] == active {
					p = killedProcess{d.Spec.Host, fields[0]}
					return nil
				}
			}
		}
		return fmt.Errorf("mgr.%s has none", active)
	})
	return p
}

func (p killedProcess) kill(b *bed) {
	b.Helper()
	if _, err := b.hostNamed(p.host).Try(b.Context(), "kill", "-KILL", p.pid); err != nil {
		b.Logf("process %s of %s had ended: %v", p.pid, p.host, err)
	}
}

// restartMgrs does what a user does after the cause of the ends is gone: a mgr that ended four
// times within ten minutes keeps the cluster from being Ready, until it is restarted.
func (k *killer) restartMgrs() {
	for _, d := range k.daemons() {
		if d.Spec.Type == "ceph-mgr" {
			k.run("daemon", "restart", "mgr."+d.Spec.ID, "--force", "--wait")
		}
	}
}

// finish takes everything back, and looks that nothing was done twice or stays undone.
func (k *killer) finish() {
	k.restartMgrs()
	k.awaitOrch()
	if k.leaving(true)() == nil { // held data keeps it in the cluster
		k.says("orch osd rm stop " + k.osd)
		k.declared["osd"] = k.leaving(false)
	}
	k.holdData("unset")
	if k.mode(api.HostActive)() != nil {
		k.says("orch cancel")
		k.await("the drain to end", k.drainsNoMore)
		k.undrain()
	}
	k.await("all actions to end", k.drainsNoMore)
	k.holds()
	if made := k.actions(); len(made) > k.sent {
		k.Errorf("%d calls made %d actions: %+v", k.sent, len(made), made)
	}
	k.await("Ceph to be well", func() error { return k.health(3, 8) })
	k.noOrphans()
	k.says("orch status", "Available: Yes")
	k.Logf("of the calls that were disturbed %d were answered, %d failed; %d calls made %d actions", k.answered,
		k.failed, k.sent, len(k.actions()))
}
