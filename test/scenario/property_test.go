package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// Whatever happens, and in whatever order: nothing unsafe is ever done (see checkSafe), and when nothing happens any more,
// nothing is left to do and nothing is written.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		story := drawStory(rt)
		var err error
		synctest.Test(t, func(*testing.T) { err = playStory(story) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func playStory(story story) (err error) {
	s := &script{stage: newStage()}
	s.watch = s.checkSafe
	s.lead()
	defer func() { err = errors.Join(err, s.kill()) }()
	for _, e := range slices.Concat(story.start, story.events) {
		if err := s.happen(e); err != nil {
			return fmt.Errorf("%q: %w", e.command, err)
		}
	}
	if err := s.checkRest(); err != nil {
		return err
	}
	if err := s.mendAll(); err != nil {
		return err
	}
	if err := s.checkRest(); err != nil {
		return fmt.Errorf("with everything mended: %w", err)
	}
	return s.checkReasons()
}

// happen lets one thing happen. That something is not there, or there already, is in the nature of chance.
func (s *script) happen(e happening) error {
	var err error
	switch e.command {
	case "delete a daemon", "break a daemon":
		err = s.pickDaemon(e)
	case "mend all":
		err = s.mendAll()
	case "cut off":
		err = s.cutOff(e)
	case "fail once":
		s.gate.set(-1, e.pick)
	default:
		err = s.perform(e)
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return s.tick(time.Duration(e.steps) * agentStep)
}

// perform does what a command of a scenario does. A disk that a daemon was given is not put to another use: between the plan
// and the making of an OSD only the agent can notice that, and it does.
func (s *script) perform(e happening) error {
	command, args, err := datadriven.ParseLine(e.command)
	if err != nil {
		return err
	}
	a := arguments(args)
	if command == "use-disk" {
		all, err := s.daemons()
		if err != nil {
			return err
		}
		for i := range all {
			if d := all[i].Spec; d.Host == a.name() && len(d.Devices) > 0 && d.Devices[0].ID == a.value("disk") {
				return nil
			}
		}
	}
	return s.act(command, a, e.input)
}

// cutOff lets the leader do so many writes more, and then another one takes its place.
func (s *script) cutOff(e happening) error {
	s.gate.set(e.pick, -1)
	if err := s.tick(5 * agentStep); err != nil {
		return err
	}
	if err := s.kill(); err != nil {
		return err
	}
	s.gate.reset()
	s.lead()
	return nil
}

func (s *script) daemons() ([]api.Daemon, error) {
	clusters, err := s.Clusters(s.ctx)
	if err != nil {
		return nil, err
	}
	var all []api.Daemon
	for i := range clusters {
		v, err := s.View(s.ctx, nameOf(&clusters[i]))
		if err != nil {
			return nil, err
		}
		all = append(all, v.Daemons...)
	}
	return all, nil
}

func (s *script) pickDaemon(e happening) error {
	all, err := s.daemons()
	if err != nil || len(all) == 0 {
		return err
	}
	d := &all[e.pick%len(all)]
	if e.command == "break a daemon" {
		s.Break(d.Name, "it is broken")
		return nil
	}
	return s.Delete(s.ctx, d)
}

// mendAll brings back whatever has failed.
func (s *script) mendAll() error {
	all, err := s.daemons()
	if err != nil {
		return err
	}
	for i := range all {
		s.Break(all[i].Name, "")
	}
	for h := range mostHosts {
		name := fmt.Sprintf("h%d", h)
		err := errors.Join(s.RestoreHost(s.ctx, name), s.SilenceAgent(s.ctx, name, false),
			s.SetMode(s.ctx, name, api.HostActive))
		for d := range disksEach {
			err = errors.Join(err, s.returnDisk(name, diskName(h, d)))
		}
		if err != nil && !apierrors.IsNotFound(err) && s.Get(s.ctx, &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}}) == nil {
			return err
		}
	}
	return nil
}

// checkRest lets a leader whose writes all pass do its work, waits until everything that is tried for a while only is over,
// and checks that nothing is left to do.
func (s *script) checkRest() error {
	s.gate.reset()
	s.step = clusterInterval / 10
	defer func() { s.step = agentStep }()
	if err := errors.Join(s.replaceLeader(), s.settle(), s.kill()); err != nil {
		return err
	}
	time.Sleep(20 * time.Minute)
	s.lead()
	// Ceph is looked at once in each interval now, and its report lags behind.
	if err := errors.Join(s.tick(4*clusterInterval), s.settle()); err != nil {
		return err
	}
	clusters, err := s.Clusters(s.ctx)
	if err != nil {
		return err
	}
	for i := range clusters {
		if err := s.checkPlan(&clusters[i]); err != nil {
			return err
		}
	}
	const intervals = 3
	before := s.Writes()
	if err := s.tick(intervals * clusterInterval); err != nil {
		return err
	}
	if n := s.Writes() - before; n != intervals*len(clusters) {
		return fmt.Errorf("%d writes in %d intervals of %d clusters at rest", n, intervals, len(clusters))
	}
	return nil
}

// checkPlan: a plan of what plans have made is empty, also one of a leader that knows nothing.
func (s *script) checkPlan(c *api.StorageCluster) error {
	v, p, err := s.plan(nameOf(c))
	if err != nil {
		return err
	}
	text, err := s.showPlan(nameOf(c))
	if err != nil {
		return err
	}
	switch {
	case !p.Empty() || len(p.Nodes) > 0:
		return fmt.Errorf("at rest there is something to do in %s:\n%s", c.Name, text)
	case p.Refused && len(v.Daemons) > 0:
		return fmt.Errorf("%s exists, and is refused as a whole:\n%s", c.Name, text)
	case p.Refused && v.Status.Status.Status == api.StorageOnline:
		return fmt.Errorf("%s is refused and ONLINE", c.Name)
	case !p.Refused && c.DeletionTimestamp == nil && !equality.Semantic.DeepEqual(engine.Aggregate(v, p, time.Now()), v.Status.Status):
		return fmt.Errorf("the status of %s is not what it would be now: %v, %v", c.Name, v.Status.Status, p.Status)
	}
	return nil
}

// checkReasons: in a world in which everything works, a cluster is ready, or it is said what somebody has to do.
func (s *script) checkReasons() error {
	clusters, err := s.Clusters(s.ctx)
	if err != nil {
		return err
	}
	for i := range clusters {
		c := &clusters[i]
		ready := meta.FindStatusCondition(c.Status.Conditions, api.ClusterReady)
		switch {
		case c.DeletionTimestamp != nil:
			return fmt.Errorf("%s was deleted, every agent answers, and it is still there", c.Name)
		case ready == nil:
			return fmt.Errorf("%s has no condition Ready", c.Name)
		case ready.Status == metav1.ConditionTrue:
		case !s.says(c):
			var b strings.Builder
			showReport(&b, &c.Status)
			return fmt.Errorf("%s is not ready, and nothing is told that somebody could do:\n%s", c.Name, b.String())
		}
	}
	return nil
}

// says tells whether a report asks for something.
func (s *script) says(c *api.StorageCluster) bool {
	return c.Status.Report != nil && slices.ContainsFunc(c.Status.Report.Decisions, func(d api.Decision) bool {
		return d.Verdict != api.VerdictDo
	})
}
