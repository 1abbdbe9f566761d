package sim_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action/actiontest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/sim"
)

// TestScenarios plays the files of testdata. They are written as text, one command and what comes of it after the other;
// 'go test ./engine/sim -rewrite' writes anew what comes. The commands:
//
//	add-host NAME [disks=(ID,…)]              a host joins
//	add-cluster NAME [policy=Wipe]            a toy cluster is declared
//	add-node NAME host=NAME [cluster=NAME] [devices=(NAME,…)]
//	add-volume NAME cluster=NAME, grow-volume NAME
//	mode CLUSTER Active|Observed|Paused
//	delete cluster=NAME | node=NAME | volume=NAME
//	fail-host NAME, restore-host NAME         power off and on
//	pull-disk HOST disk=ID, add-disk HOST disk=ID path=PATH
//	break DAEMON message=TEXT, mend DAEMON    a daemon fails, or not any more
//	silence-agent HOST, hear-agent HOST       the agent stops reporting and doing things, or starts again
//	silence on|off                            the storage system stops answering, or answers again
//	refuse VOLUME, allow VOLUME               agents cannot do what is asked of a volume, or can again
//	take-lock CLUSTER [holder=NAME]           another leader takes the lock, or nobody has it any more
//	host-mode HOST Active|Maintenance|Drain   somebody sets the mode of a host
//	action NAME KIND host=NAME [PARAMETER=VALUE …], cancel NAME
//	kill-leader, lead                         the leader ends in the middle of all, and another one leads
//	tick [DURATION]                           time passes; agents move each 100 ms (default: one such step)
//
// After each command 50 ms pass, in which the engine comes to rest and no agent moves. What it did since is printed: events, and the cluster's status. The command
// 'show CLUSTER' prints the conditions and the last report, 'writes' how many writes the engine did since the last 'writes'; 'show-host',
// 'show-volume' and 'show-action' print what the words say.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { play(t, file) })
		})
	}
}

// agentStep is how often agents move.
const agentStep = 100 * time.Millisecond

// stage is where a scenario plays: a world with the real scheduler, orchestrator and driver in it.
type stage struct {
	*sim.World
	ctx    context.Context
	toy    *sim.Toy
	told   map[string]int
	writes int

	leader      *leader
	actions     *actiontest.Memory
	actionNames []string
	killed      *killed
	refused     sync.Map
}

func play(t *testing.T, file string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := newStage(ctx)
	s.Fail = s.refusal
	s.lead()
	defer func() {
		if err := s.standDown(); err != nil {
			t.Error(err)
		}
	}()
	datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
		out, err := s.do(d)
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		return out
	})
}

func (s *stage) do(d *datadriven.TestData) (string, error) {
	switch d.Cmd {
	case "show":
		return s.show(d.CmdArgs[0].Key)
	case "show-action":
		return s.showAction(d.CmdArgs[0].Key)
	case "show-volume":
		return s.showVolume(d.CmdArgs[0].Key)
	case "show-host":
		return s.showHost(d.CmdArgs[0].Key)
	case "writes":
		n := s.Writes() - s.writes
		s.writes += n
		return fmt.Sprintln(n), nil
	}
	if err := s.act(d); err != nil {
		return "", err
	}
	// Long enough for changes to be gathered and acted on, and too short for agents to move.
	time.Sleep(agentStep / 2)
	return s.news()
}

// act does what a command says to the world.
func (s *stage) act(d *datadriven.TestData) error {
	first := ""
	if len(d.CmdArgs) > 0 {
		first = d.CmdArgs[0].Key
	}
	switch d.Cmd {
	case "add-host":
		return s.AddHost(s.ctx, first, values(d, "disks"))
	case "add-cluster":
		return s.Create(s.ctx, toyCluster(first, value(d, "policy")))
	case "add-node":
		return s.Create(s.ctx, toyNode(d, first))
	case "add-volume":
		return s.Create(s.ctx, toyVolume(first, value(d, "cluster")))
	case "grow-volume":
		return s.growVolume(first)
	case "mode":
		return s.mode(first, d.CmdArgs[1].Key)
	case "host-mode":
		return s.setMode(first, d.CmdArgs[1].Key)
	case "action":
		return s.startAction(d)
	case "cancel":
		return s.cancelAction(first)
	case "kill-leader":
		return s.standDown()
	case "lead":
		s.lead()
	case "delete":
		return s.delete(d)
	case "fail-host":
		return s.FailHost(s.ctx, first)
	case "restore-host":
		return s.RestoreHost(s.ctx, first)
	case "pull-disk":
		return s.RemoveDisk(s.ctx, first, value(d, "disk"))
	case "add-disk":
		return s.AddDisk(s.ctx, first, value(d, "disk"), value(d, "path"))
	case "break", "mend":
		s.Break(first, strings.ReplaceAll(value(d, "message"), "_", " "))
	case "silence-agent", "hear-agent":
		return s.SilenceAgent(s.ctx, first, d.Cmd == "silence-agent")
	case "silence":
		s.toy.Silence(first == "on")
	case "refuse":
		s.refused.Store("volume make "+first, true)
	case "allow":
		s.refused.Delete("volume make " + first)
	case "take-lock":
		s.Hold(types.NamespacedName{Namespace: "default", Name: first}, value(d, "holder"))
	case "tick":
		return s.tick(first)
	default:
		return fmt.Errorf("unknown command %q", d.Cmd)
	}
	return nil
}

func (s *stage) tick(long string) error {
	d := agentStep
	if long != "" {
		var err error
		if d, err = time.ParseDuration(long); err != nil {
			return err
		}
	}
	return s.Run(s.ctx, agentStep, d)
}

func (s *stage) delete(d *datadriven.TestData) error {
	if name := value(d, "node"); name != "" {
		return s.Delete(s.ctx, &api.StorageNode{ObjectMeta: meta(name)})
	}
	if name := value(d, "volume"); name != "" {
		return s.Delete(s.ctx, &api.Volume{ObjectMeta: meta(name)})
	}
	return s.Delete(s.ctx, &api.StorageCluster{ObjectMeta: meta(value(d, "cluster"))})
}

func (s *stage) mode(cluster, mode string) error {
	c := &api.StorageCluster{ObjectMeta: meta(cluster)}
	if err := s.Get(s.ctx, c); err != nil {
		return err
	}
	c.Spec.Mode = api.ClusterMode(mode)
	return s.Update(s.ctx, c)
}

// news prints the events of all clusters that were not printed before.
func (s *stage) news() (string, error) {
	synctest.Wait()
	var b strings.Builder
	clusters, err := s.Clusters(s.ctx)
	if err != nil {
		return "", err
	}
	for i := range clusters {
		name := clusters[i].Name
		events, err := s.Events(s.ctx, types.NamespacedName{Namespace: "default", Name: name})
		if err != nil {
			return "", err
		}
		for _, e := range events[min(s.told[name], len(events)):] {
			fmt.Fprintf(&b, "%s #%d %s %s: %s\n", name, e.Sequence, e.Code, e.Object, e.Message)
		}
		s.told[name] = len(events)
	}
	if b.Len() == 0 {
		return "nothing\n", nil
	}
	return b.String(), nil
}

func (s *stage) show(name string) (string, error) {
	c, err := s.Cluster(s.ctx, types.NamespacedName{Namespace: "default", Name: name})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, x := range c.Status.Conditions {
		fmt.Fprintf(&b, "%s=%s %s %q\n", x.Type, x.Status, x.Reason, x.Message)
	}
	view, err := s.View(s.ctx, types.NamespacedName{Namespace: "default", Name: name})
	if err != nil {
		return "", err
	}
	if view.Status != nil {
		b.WriteString(statusText(&view.Status.Status))
	}
	if r := c.Status.Report; r != nil {
		fmt.Fprintf(&b, "outcome %s %q\n", r.Outcome, r.Error)
		for _, d := range r.Decisions {
			fmt.Fprintf(&b, "  %s %s: %s\n", d.Verdict, d.Object, d.Message)
		}
	}
	return b.String(), nil
}

func statusText(s *api.StorageStatusStatus) string {
	text := fmt.Sprintf("%s health=%q nodes-down=%d agents-down=%d", s.Status, s.Health, s.NodesDown, s.AgentsDown)
	for _, d := range s.Daemons {
		text += fmt.Sprintf(" %s@%s=%d/%d", d.Type, d.Version, d.Running, d.Wanted)
	}
	if s.StaleSince != nil {
		text += " stale since " + s.StaleSince.UTC().Format(time.TimeOnly)
	}
	return text + "\n"
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }

func toyCluster(name, policy string) *api.StorageCluster {
	c := &api.StorageCluster{ObjectMeta: meta(name), Spec: api.StorageClusterSpec{
		Type: sim.ToyType, Interval: metav1.Duration{Duration: 10 * time.Second}, DeletionPolicy: api.DeletionRetain,
	}}
	if policy != "" {
		c.Spec.DeletionPolicy = api.DeletionPolicy(policy)
	}
	return c
}

func toyNode(d *datadriven.TestData, name string) *api.StorageNode {
	return &api.StorageNode{ObjectMeta: meta(name), Spec: api.StorageNodeSpec{
		Type: sim.ToyType, Cluster: value(d, "cluster"), Devices: values(d, "devices"),
		NodeSelector: map[string]string{api.LabelHostname: value(d, "host")},
	}}
}

func value(d *datadriven.TestData, key string) string {
	if v := values(d, key); len(v) > 0 {
		return v[0]
	}
	return ""
}

func values(d *datadriven.TestData, key string) []string {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return a.Vals
		}
	}
	return nil
}
