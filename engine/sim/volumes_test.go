package sim_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

func toyVolume(name, cluster string) *api.Volume {
	return &api.Volume{ObjectMeta: meta(name), Spec: api.VolumeSpec{Cluster: cluster, Size: resource.MustParse("1Gi")}}
}

func (s *stage) growVolume(name string) error {
	v := &api.Volume{ObjectMeta: meta(name)}
	if err := s.Get(s.ctx, v); err != nil {
		return err
	}
	v.Spec.Size.Add(resource.MustParse("1Gi"))
	return s.Update(s.ctx, v)
}

// refusal has agents fail at what is refused of a volume.
func (s *stage) refusal(operation, object string) error {
	if _, refused := s.refused.Load(object); refused && operation == "Ask" {
		return errors.New("the disk is full")
	}
	return nil
}

func (s *stage) showVolume(name string) (string, error) {
	v := &api.Volume{ObjectMeta: meta(name)}
	if err := s.Get(s.ctx, v); err != nil {
		return "", err
	}
	deleted := ""
	if v.DeletionTimestamp != nil {
		deleted = ", deleted"
	}
	return fmt.Sprintf("%s %q, generation %d seen of %d, kept by %s%s\n", v.Status.State, v.Status.Message,
		v.Status.ObservedGeneration, v.Generation, strings.Join(v.Finalizers, " "), deleted), nil
}

// TestVolumes_leaderDiesAtEveryWrite kills the leader before each single write while a volume is made and removed again. Another
// leader brings it to the same end: the storage system has no volume that nobody knows of, and each thing is told once.
func TestVolumes_leaderDiesAtEveryWrite(t *testing.T) {
	writes := int64(1)
	for at := int64(0); at <= writes; at++ {
		synctest.Test(t, func(t *testing.T) { writes = volumeDiesAt(t, at) })
	}
	t.Logf("the leader was killed before each of %d writes", writes)
	if writes < 8 {
		t.Errorf("there were only %d writes: are they counted?", writes)
	}
}

func volumeDiesAt(t *testing.T, at int64) int64 {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := newStage(ctx)
	s.killed = &killed{kill: func() { s.leader.cancel() }}
	s.Fail = func(string, string) error { return s.killed.write() }
	s.lead()
	s.say(t, "add-host h1 disks=d1", "add-cluster t", "add-node n1 host=h1 devices=d1", "tick 2s")
	s.killed.writes.Store(0)
	s.killed.at.Store(at)
	again := func() {
		if s.leader.ctx.Err() != nil {
			s.leader.work.Wait() // what it did was cut off: its error is of no interest
			s.lead()
			s.say(t, "tick 1m")
		}
	}
	s.say(t, "add-volume v cluster=t", "tick 1s")
	again()
	if got, err := s.showVolume("v"); err != nil || !strings.HasPrefix(got, "Online") || !strings.Contains(got, api.FinalizerResource) {
		t.Errorf("killed before write %d: the volume is %s, %v", at, got, err)
	}
	s.say(t, "delete volume=v", "tick 1s")
	again()
	if got, err := s.showVolume("v"); err == nil {
		t.Errorf("killed before write %d: the volume is still there: %s", at, got)
	}
	if err := s.standDown(); err != nil {
		t.Error(err)
	}
	if got, _ := s.toy.Report(&api.Daemon{ObjectMeta: meta("d"), Spec: api.DaemonSpec{Cluster: "t"}}); got != `{"volumes":null}` {
		t.Errorf("killed before write %d: the storage system has %s", at, got)
	}
	events, err := s.Events(ctx, types.NamespacedName{Namespace: "default", Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]int{}
	for _, e := range events {
		told[e.Code]++
	}
	for _, code := range []engine.Code{engine.ResourceNew, engine.ResourceOnline, engine.ResourceGone} {
		if told[string(code)] != 1 {
			t.Errorf("killed before write %d: %s was told %d times", at, code, told[string(code)])
		}
	}
	return s.killed.writes.Load()
}
