package scenario

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// TestScenarios plays the files of testdata: one command and what comes of it after the other; 'go test ./test/scenario
// -rewrite' writes anew what comes. Names are those of the namespace default, or NAMESPACE/NAME. The commands:
//
//	add-host NAME [disks=(ID,…)]              a host joins
//	apply                                     what the lines below declare (see stage.apply)
//	delete cluster=NAME | node=NAME | daemon=NAME
//	fail-host NAME, restore-host NAME         power off and on
//	silence-agent NAME, hear-agent NAME       the agent ends, and its daemons run on; it is back
//	host-mode NAME mode=MODE [disks=kept]     an administrator gives a host a mode; with its disks kept, as an action does that says that it is gone
//	label-host NAME rack=RACK                 an administrator says which rack a host is in
//	fail-disk HOST disk=ID                    a disk is not there any more
//	return-disk HOST disk=ID                  it is there again, with everything that is on it
//	add-disk HOST disk=ID path=PATH           an empty disk is there
//	use-disk HOST disk=ID                     somebody puts a file system on a disk
//	break DAEMON message=TEXT, mend DAEMON    a daemon fails, or not any more
//	flap-agent NAME | flap-daemon DAEMON times=N down=DURATION up=DURATION
//	                                          an agent falls silent and is back, or a daemon fails and is mended, N times
//	kill-leader                               another leader, that knows nothing, takes its place
//	end-leader                                no leader does, until kill-leader
//	tick [DURATION]                           time passes; agents move each 100 ms (default: one such step), or, where it is
//	                                          ten seconds or more, each second
//	settle                                    time passes until nothing happens any more
//
// After each of these 50 ms pass, in which the engine acts and no agent moves, and the events since the last command are
// printed. Others only print:
//
//	show plan | daemons | status | report | nodes | secrets | map of=CLUSTER, show devices of=HOST
//	writes                                    how many writes the engine did since the last 'writes'
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

// script plays a file.
type script struct {
	*stage
	told   map[types.UID]int
	writes int
}

func play(t *testing.T, file string) {
	s := &script{stage: newStage(), told: map[types.UID]int{}}
	s.lead()
	defer func() {
		if err := s.kill(); err != nil {
			t.Error(err)
		}
	}()
	datadriven.RunTest(t, file, func(_ *testing.T, d *datadriven.TestData) string {
		out, err := s.do(d)
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		return out
	})
	for _, text := range s.cephs.damaged() {
		t.Error(text)
	}
}

func (s *script) do(d *datadriven.TestData) (string, error) {
	a := arguments(d.CmdArgs)
	switch d.Cmd {
	case "show":
		return s.show(a.name(), a.value("of"))
	case "writes":
		n := s.Writes() - s.writes
		s.writes += n
		return fmt.Sprintln(n), nil
	}
	if err := s.act(d.Cmd, a, d.Input); err != nil {
		return "", err
	}
	// Long enough for changes to be gathered and acted on, and too short for agents to move.
	time.Sleep(agentStep/2 - time.Since(s.start)%(agentStep/2))
	return s.news()
}

// act does what a command says.
func (s *script) act(command string, a arguments, input string) error {
	host := a.name()
	switch command {
	case "add-host":
		return s.AddHost(s.ctx, host, a.values("disks"))
	case "apply":
		return s.apply(input)
	case "delete":
		return s.delete(a)
	case "fail-host":
		return s.FailHost(s.ctx, host)
	case "restore-host":
		return s.RestoreHost(s.ctx, host)
	case "host-mode":
		return s.hostMode(host, api.HostMode(a.value("mode")), a.value("disks") == "kept")
	case "label-host":
		return s.labelHost(host, a.value("rack"))
	case "silence-agent", "hear-agent":
		return s.SilenceAgent(s.ctx, host, command == "silence-agent")
	case "fail-disk":
		return s.failDisk(host, a.value("disk"))
	case "return-disk":
		return s.returnDisk(host, a.value("disk"))
	case "add-disk":
		return s.AddDisk(s.ctx, host, a.value("disk"), a.value("path"))
	case "use-disk":
		return s.useDisk(host, a.value("disk"))
	case "break", "mend":
		s.Break(a.name(), strings.ReplaceAll(a.value("message"), "_", " "))
	case "flap-agent":
		return s.flap(a, func(down bool) error { return s.SilenceAgent(s.ctx, host, down) })
	case "flap-daemon":
		return s.flap(a, func(down bool) error {
			s.Break(host, map[bool]string{true: "the process ends"}[down])
			return nil
		})
	case "kill-leader":
		return s.replaceLeader()
	case "end-leader":
		return s.kill()
	case "tick":
		return s.tickText(a.name())
	case "settle":
		return s.settle()
	default:
		return fmt.Errorf("unknown command %q", command)
	}
	return nil
}

// flap takes something down and brings it up again, as often and for as long as the arguments say.
func (s *script) flap(a arguments, set func(down bool) error) error {
	times, err := strconv.Atoi(a.value("times"))
	if err != nil {
		return err
	}
	for range times {
		for _, way := range []string{"down", "up"} {
			if err := set(way == "down"); err != nil {
				return err
			}
			if err := s.tickText(a.value(way)); err != nil {
				return err
			}
		}
	}
	return nil
}

// hostMode sets the mode of a host, and whether its disks are kept, in one write, as somebody else than the leader.
func (s *stage) hostMode(host string, mode api.HostMode, kept bool) error {
	h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: host}}
	if err := s.Get(s.ctx, h); err != nil || h.Spec.Mode == mode && engine.DisksKept(h) == kept {
		return err
	}
	h.Spec.Mode = mode
	engine.KeepDisks(h, kept)
	return s.Update(s.ctx, h)
}

func (s *stage) replaceLeader() error {
	if err := s.kill(); err != nil {
		return err
	}
	s.lead()
	return nil
}

func (s *script) tickText(long string) error {
	d := agentStep
	if long != "" {
		var err error
		if d, err = time.ParseDuration(long); err != nil {
			return err
		}
	}
	if d >= clusterInterval { // long times are those in which little happens
		s.step = time.Second
		defer func() { s.step = agentStep }()
	}
	return s.tick(d)
}

func (s *stage) failDisk(host, id string) error {
	return s.ChangeHost(s.ctx, host, func(h *api.HostStatus) {
		if i := slices.IndexFunc(h.Devices, func(d api.Device) bool { return d.ID == id }); i >= 0 {
			s.pulled[host+"/"+id] = h.Devices[i]
			h.Devices = slices.Delete(h.Devices, i, i+1)
		}
	})
}

func (s *stage) returnDisk(host, id string) error {
	d, ok := s.pulled[host+"/"+id]
	if !ok {
		return nil
	}
	delete(s.pulled, host+"/"+id)
	return s.ChangeHost(s.ctx, host, func(h *api.HostStatus) { h.Devices = append(h.Devices, d) })
}

// useDisk has an effect on a disk that is empty.
func (s *stage) useDisk(host, id string) error {
	return s.ChangeHost(s.ctx, host, func(h *api.HostStatus) {
		if i := slices.IndexFunc(h.Devices, func(d api.Device) bool { return d.ID == id && d.Availability == api.DeviceAvailable }); i >= 0 {
			h.Devices[i].Availability, h.Devices[i].Reasons = api.DeviceUnavailable, []string{"it has an ext4 file system"}
		}
	})
}

func (s *stage) delete(a arguments) error {
	kind := a[0].Key
	meta := arguments{{Key: a.value(kind)}}.meta()
	switch kind {
	case "cluster":
		return s.Delete(s.ctx, &api.StorageCluster{ObjectMeta: meta})
	case "node":
		return s.Delete(s.ctx, &api.StorageNode{ObjectMeta: meta})
	case "daemon":
		return s.Delete(s.ctx, &api.Daemon{ObjectMeta: meta})
	}
	return fmt.Errorf("deleting a %q is not known", kind)
}

// news prints the events that were not printed before.
func (s *script) news() (string, error) {
	synctest.Wait()
	clusters, err := s.Clusters(s.ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i := range clusters {
		c := &clusters[i]
		events, err := s.Events(s.ctx, nameOf(c))
		if err != nil {
			return "", err
		}
		for _, e := range events[min(s.told[c.UID], len(events)):] {
			name := c.Name
			if c.Namespace != "default" {
				name = c.Namespace + "/" + name
			}
			fmt.Fprintf(&b, "%s #%d %s %s: %s\n", name, e.Sequence, e.Code, e.Object, e.Message)
		}
		s.told[c.UID] = len(events)
	}
	if b.Len() == 0 {
		return "nothing\n", nil
	}
	return b.String(), nil
}
