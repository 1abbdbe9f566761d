package gluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// story is a world in which anything happens at any time, and of which every command is checked before it is carried out.
type story struct {
	*world
	rt   *rapid.T
	next int // the number of the next host
}

func durabilities() []*api.VolumeDurability {
	return []*api.VolumeDurability{
		replica3(),
		{Arbiter: &api.VolumeArbiter{}},
		{Disperse: &api.VolumeDisperse{Data: 2, Redundancy: 1}},
		{Distribute: &api.VolumeDistribute{}},
		{Replicate: &api.VolumeReplicate{Count: 4}},
	}
}

// check fails if a command takes a set below what it needs, or removes the last good copy of something.
func (s *story) check(c engine.Command) {
	g := s.gluster
	v := g.volumes[c.Object]
	if v == nil || s.wiping(v.name) && c.Verb != glusterd.VerbStop && c.Verb != glusterd.VerbDelete {
		return
	}
	switch c.Verb {
	case glusterd.VerbReplace, glusterd.VerbResetBrick:
		for _, set := range v.sets() {
			if v.good(set) < v.enough() {
				continue // what happened to the machines lost it before
			}
			for _, b := range set {
				if b.name() == c.Params[glusterd.ParamOld] {
					rest := slices.DeleteFunc(slices.Clone(set), func(x *fakeBrick) bool { return x == b || !x.serves(v) })
					if len(rest) < v.needed() || v.good(rest) < v.enough() || b.serves(v) && v.good(rest) < v.needed() {
						s.rt.Fatalf("%s of %s: the rest of its set has %d bricks that serve, %d of them good; %d are needed\n%s",
							c.Verb, b.name(), len(rest), v.good(rest), v.needed(), g.text())
					}
				}
			}
		}
	case glusterd.VerbRemoveCommit:
		names := strings.Fields(c.Params[glusterd.ParamBricks])
		there := slices.ContainsFunc(v.bricks, func(b *fakeBrick) bool { return slices.Contains(names, b.name()) })
		if there && (v.task == nil || v.task.State != glusterd.TaskCompleted || v.task.Failures > 0) {
			s.rt.Fatalf("commit of %v, and the task is %+v", c.Params, v.task)
		}
	case glusterd.VerbStop, glusterd.VerbDelete:
		if o := s.vol(c.Object); o == nil || o.DeletionTimestamp == nil {
			s.rt.Fatalf("%s %s, which nobody deleted", c.Verb, c.Object)
		}
	}
}

// wiping says whether a volume's data is to go.
func (s *story) wiping(volume string) bool {
	o := s.vol(volume)
	return o != nil && o.DeletionTimestamp != nil && o.Spec.DeletionPolicy == api.DeletionWipe
}

func (s *story) step() {
	s.agents()
	p := s.plan()
	for _, c := range p.Commands {
		s.check(c)
	}
	s.apply(p)
	s.now = s.now.Add(10 * time.Second)
	if rapid.Bool().Draw(s.rt, "heal") {
		s.gluster.heal()
	}
	if rapid.Bool().Draw(s.rt, "move") {
		s.gluster.move()
	}
	s.gluster.settle()
}

// pick is one of the hosts, by number.
func (s *story) pick() int { return rapid.IntRange(1, s.next-1).Draw(s.rt, "host") }

func (s *story) add() {
	if s.next > 7 {
		return
	}
	s.host(s.next, 2)
	s.node(s.next, int32(1+s.next%3))
	s.next++
}

// happen lets one thing happen.
func (s *story) happen() {
	switch rapid.SampledFrom([]string{
		"power off", "power on", "mute", "heard", "kill brick", "dead disk", "lost directory", "maintenance", "drain", "active", "undeclare", "declare",
		"add", "take device", "give device", "volume", "volume", "grow", "delete volume", "fail files", "upgrade",
		"options", "close", "larger disk",
	}).Draw(s.rt, "event") {
	case "power off":
		s.power(s.pick(), false)
	case "power on":
		s.power(s.pick(), true)
	case "mute":
		s.silence(s.pick(), true)
	case "heard":
		s.power(s.pick(), true)
	case "kill brick":
		s.brick(func(b *fakeBrick) { b.running = false })
	case "dead disk":
		s.brick(func(b *fakeBrick) { b.node.store(b.path).dead = true })
	case "lost directory":
		s.brick(func(b *fakeBrick) { delete(b.node.store(b.path).dirs, b.path) })
	case "maintenance":
		s.setMode(s.pick(), api.HostMaintenance)
	case "drain":
		s.setMode(s.pick(), api.HostDrain)
	case "active":
		s.setMode(s.pick(), api.HostActive)
	case "undeclare":
		s.undeclare(fmt.Sprintf("n%d", s.pick()))
	case "declare":
		s.declare(s.pick())
	case "add":
		s.add()
	case "take device":
		s.devices(s.pick(), 1)
	case "give device":
		s.devices(s.pick(), 2)
	case "volume":
		s.newVolume()
	case "grow":
		s.eachVolume(func(v *api.Volume) { v.Spec.Size = *resource.NewQuantity(v.Spec.Size.Value()*2, resource.BinarySI) })
	case "delete volume":
		s.eachVolume(func(v *api.Volume) {
			now := metav1.NewTime(s.now)
			v.DeletionTimestamp = &now
		})
	case "options":
		s.eachVolume(s.setOptions)
	case "close":
		s.nodes[0].Spec.GlusterFS.Closed = rapid.SampledFrom([][]string{nil, {"*"}, {"wwn-10"}}).Draw(s.rt, "closed")
	case "larger disk":
		s.brick(func(b *fakeBrick) { b.node.store(b.path).size += 10 * gib })
	case "upgrade":
		s.install(rapid.SampledFrom([]string{"10.3", "10.4", "10.5"}).Draw(s.rt, "release"))
	case "fail files":
		for _, v := range s.gluster.volumes {
			if v.task != nil && v.task.State == glusterd.TaskInProgress {
				v.task.Failures = 3
			}
		}
	}
	s.gluster.settle()
}

// setOptions gives a volume other options, by full and short names and by group.
func (s *story) setOptions(v *api.Volume) {
	v.Spec.Options = rapid.SampledFrom([]api.VolumeOptions{
		nil,
		{"ping-timeout": "7"},
		{"network.ping-timeout": "8", "a.b": "1"},
		{"group": "virt"},
		{"group": "virt", "ping-timeout": "7"},
		{"group": "samba", "shard": "off"},
	}).Draw(s.rt, "options")
}

// brick does something to one brick.
func (s *story) brick(do func(*fakeBrick)) {
	var all []*fakeBrick
	for _, name := range slices.Sorted(maps.Keys(s.gluster.volumes)) {
		for _, b := range s.gluster.volumes[name].bricks {
			if b.node.store(b.path) != nil {
				all = append(all, b)
			}
		}
	}
	if len(all) > 0 {
		do(rapid.SampledFrom(all).Draw(s.rt, "brick"))
	}
}

func (s *story) declare(i int) {
	if !slices.ContainsFunc(s.nodes, func(n api.StorageNode) bool { return n.Name == fmt.Sprintf("n%d", i) }) {
		s.node(i, int32(1+i%3))
	}
}

func (s *story) devices(i, n int) {
	for k := range s.nodes {
		if x := &s.nodes[k]; x.Name == fmt.Sprintf("n%d", i) {
			x.Spec.Devices = []string{fmt.Sprintf("wwn-%d0", i), fmt.Sprintf("wwn-%d1", i)}[:n]
		}
	}
}

func (s *story) newVolume() {
	if len(s.volumes) < 4 {
		v := s.volume(fmt.Sprintf("v%d", s.gluster.serial), "8Gi", rapid.SampledFrom(durabilities()).Draw(s.rt, "durability"))
		v.Spec.SizePolicy = rapid.SampledFrom([]api.VolumeSizePolicy{api.SizePromised, api.SizeEnforced}).Draw(s.rt, "size policy")
		v.Spec.DeletionPolicy = rapid.SampledFrom([]api.DeletionPolicy{api.DeletionRetain, api.DeletionWipe}).Draw(s.rt, "policy")
		s.gluster.serial++
	}
}

func (s *story) eachVolume(do func(*api.Volume)) {
	if len(s.volumes) > 0 {
		do(&s.volumes[rapid.IntRange(0, len(s.volumes)-1).Draw(s.rt, "volume")])
	}
}

// TestStories: whatever happens, no plan takes a set below the bricks that it needs, nor removes the last good copy of
// something; each set's bricks lie on nodes of their own; and when all is mended and enough is there, the cluster comes to rest.
func TestStories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := &story{world: newWorld(rt), rt: rt, next: 1}
		s.gluster.writing = true
		for range rapid.IntRange(3, 5).Draw(rt, "nodes") {
			s.add()
		}
		s.newVolume()
		for range rapid.IntRange(5, 40).Draw(rt, "steps") {
			if rapid.Bool().Draw(rt, "happens") {
				s.happen()
			}
			s.step()
			s.checkSets()
		}
		s.mend()
		s.settle()
		s.checkSets()
		s.checkLimits()
		s.checkOptions()
	})
}

// checkLimits: in the end the size of each volume that shall have it enforced is its limit.
func (s *story) checkLimits() {
	for i := range s.volumes {
		v, g := &s.volumes[i], s.gluster.volumes[s.volumes[i].Name]
		if g != nil && v.DeletionTimestamp == nil && v.Status.State == api.ResourceOnline && v.Spec.SizePolicy == api.SizeEnforced && v.Spec.Size.Cmp(*v.Status.Capacity) == 0 &&
			g.limit != v.Spec.Size.Value() {
			s.rt.Fatalf("volume %s of %s may hold %d", v.Name, &v.Spec.Size, g.limit)
		}
	}
}

// checkOptions: in the end each volume has the options that are declared, by their full names, and
// no others but sharding.
func (s *story) checkOptions() {
	for i := range s.volumes {
		v, g := &s.volumes[i], s.gluster.volumes[s.volumes[i].Name]
		if g == nil || v.DeletionTimestamp != nil || v.Status.State != api.ResourceOnline {
			continue
		}
		want := map[string]string{"cluster.lookup-optimize": "off"}
		maps.Copy(want, fakeGroups[string(v.Spec.Options["group"])])
		for name, value := range v.Spec.Options {
			if name != "group" {
				want[cmp.Or(fullNames[name], name)] = string(value)
			}
		}
		have := maps.Clone(g.options)
		delete(have, glusterd.OptionQuota)
		if want["features.shard"] == "" {
			delete(have, "features.shard") // sharding stays
		}
		if !maps.Equal(have, want) {
			s.rt.Fatalf("volume %s has %v, want %v", v.Name, have, want)
		}
	}
}

// mend brings everything back that can come back.
func (s *story) mend() {
	for i := 1; i < s.next; i++ {
		s.power(i, true)
		s.setMode(i, api.HostActive)
	}
	for _, n := range s.gluster.nodes {
		for _, st := range n.stores {
			st.dead = false
		}
	}
	for _, v := range s.gluster.volumes {
		if v.task != nil {
			v.task.Failures = 0
		}
	}
	s.gluster.settle()
}

func (s *story) checkSets() {
	for _, v := range s.gluster.volumes {
		if s.wiping(v.name) {
			continue
		}
		for _, set := range v.sets() {
			nodes := map[*fakeNode]bool{}
			for _, b := range set {
				if nodes[b.node] {
					s.rt.Fatalf("two bricks of a set on %s\n%s", b.node.name, s.gluster.text())
				}
				nodes[b.node] = true
			}
		}
	}
}
