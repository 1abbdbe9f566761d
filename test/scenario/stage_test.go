package scenario

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/driver/ceph/radostest"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/plandump"
	"github.com/holdfast-storage/holdfast/engine/sim"
)

const (
	// agentStep is how often agents move.
	agentStep = 100 * time.Millisecond
	// Of two things that happen at the same instant either may come first, and a scenario has to read the same each time.
	// So agents move beside the full second, where a driver may look again, and leaders start beside both.
	worldOffset  = 13 * time.Millisecond
	leaderOffset = 7 * time.Millisecond
	// quiet is how long nothing must have happened for a world to be at rest, longer than the pause after a failure; and
	// longest how long that may take.
	quiet, longest = 3 * time.Second, 5 * time.Minute
)

// stage is where a scenario plays: a world with Ceph clusters in it, and one leader at a time.
type stage struct {
	*sim.World
	ctx   context.Context
	gate  *gate
	cephs *cephs

	start   time.Time
	step    time.Duration // how often agents move
	quiet   time.Duration
	leaders int
	depose  context.CancelFunc // ends the leader; nil while there is none
	ended   chan error
	// given are the devices that StorageNodes have named, as "NAMESPACE HOST/ENTRY".
	given map[string]bool
	// pulled are the disks that are not in their hosts now, by HOST/ID.
	pulled map[string]api.Device
	// gone is a host that somebody says is dead and will not come back.
	gone string
	// watch, when set, is called after each step of the world; an error ends what goes on.
	watch func() error
}

func newStage() *stage {
	time.Sleep(worldOffset)
	g := newGate()
	c := newCephs(g)
	s := &stage{World: sim.NewWorld(c), ctx: context.Background(), gate: g, cephs: c, start: time.Now(), step: agentStep, quiet: quiet, given: map[string]bool{}, pulled: map[string]api.Device{}}
	s.Fail = g.store
	return s
}

// lead starts a leader that knows nothing of any before it.
func (s *stage) lead() {
	s.leaders++
	time.Sleep(leaderOffset)
	ctx, cancel := context.WithCancel(s.ctx)
	s.depose, s.ended = cancel, make(chan error, 1)
	ended := s.ended
	log := slog.New(slog.DiscardHandler)
	config := engine.Config{Store: s.Memory, Log: log, Managers: []engine.ServiceManager{&engine.Orchestrator{
		Store: s.Memory, Driver: &ceph.Driver{Dial: s.cephs.dial, Now: radostest.Clock()}, Leader: fmt.Sprintf("s%d", s.leaders), Log: log,
	}}}
	go func() { ended <- engine.Run(ctx, config) }()
}

// kill ends the leader in the middle of what it does.
func (s *stage) kill() error {
	if s.depose == nil {
		return nil
	}
	s.depose()
	s.depose = nil
	return <-s.ended
}

// tick lets time pass by steps of the agents. All take theirs at the same times, whatever is done in between.
func (s *stage) tick(long time.Duration) error {
	for range long / s.step {
		time.Sleep(s.step - time.Since(s.start)%s.step)
		if err := s.Tick(s.ctx); err != nil {
			return err
		}
		synctest.Wait()
		if s.watch == nil {
			continue
		}
		if err := s.watch(); err != nil {
			return err
		}
	}
	return nil
}

// settle lets time pass until nothing happens any more.
func (s *stage) settle() error {
	last, since := "", time.Now()
	for start := time.Now(); time.Since(start) < longest; {
		if err := s.tick(s.step); err != nil {
			return err
		}
		now, err := s.fingerprint()
		if err != nil {
			return err
		}
		if now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) >= s.quiet {
			return nil
		}
	}
	return errors.New("the world does not come to rest")
}

// fingerprint differs when anything but the time of the next orchestration differs.
func (s *stage) fingerprint() (string, error) {
	clusters, err := s.Clusters(s.ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i := range clusters {
		c := &clusters[i]
		v, err := s.View(s.ctx, nameOf(c))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s %s %d %v %v", c.Name, c.UID, len(v.Secrets), c.Status.Conditions, c.DeletionTimestamp)
		if c.Status.Report != nil {
			b.WriteString(c.Status.Report.Started.String())
		}
		if v.Status != nil {
			b.WriteString(v.Status.ResourceVersion)
		}
		for i := range v.Nodes {
			b.WriteString(" " + v.Nodes[i].Name + v.Nodes[i].ResourceVersion)
		}
		for i := range v.Hosts {
			b.WriteString(" " + v.Hosts[i].Name + v.Hosts[i].ResourceVersion)
		}
		for i := range v.Daemons {
			b.WriteString(" " + v.Daemons[i].Name + v.Daemons[i].ResourceVersion)
		}
	}
	return b.String(), nil
}

// plan is what a leader would do now that knows nothing of any before it.
func (s *stage) plan(cluster types.NamespacedName) (*engine.View, *engine.Plan, error) {
	d := &ceph.Driver{Dial: s.cephs.dial, Now: radostest.Clock()}
	defer d.Forget(cluster.Namespace, cluster.Name)
	v, err := s.View(s.ctx, cluster)
	if err != nil {
		return nil, nil, err
	}
	if v.System, err = d.Observe(s.ctx, v, s.Secrets(cluster)); err != nil {
		return nil, nil, err
	}
	return v, plandump.Write(d.Plan(v, time.Now())), nil
}

func nameOf(c *api.StorageCluster) types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
}

// named reads "name" or "namespace/name".
func named(text string) types.NamespacedName {
	if namespace, name, ok := strings.Cut(text, "/"); ok {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	return types.NamespacedName{Namespace: "default", Name: text}
}
