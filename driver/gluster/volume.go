package gluster

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// volume is a volume that is declared, or that the pool has, or both.
type volume struct {
	name     string
	declared *api.Volume       // nil for one that nobody declares
	pool     *glusterd.Volume  // nil while the pool has none of this name
	status   api.VolumeStatus  // of a declared one, in the making
	refusal  string            // why it cannot be as it is declared
	waits    string            // what it waits for
	unset    bool              // options are still to be set
	narrowed bool              // and one of them takes a right away
	lost     string            // the reason of api.ResourcePresent, where the volume that was recorded is gone
	zones    string            // that bricks of a set share a zone, which the nodes' zones could avoid or are to
	other    string            // the identity of another one that the pool has by its name
	removed  []api.VolumeBrick // bricks that were removed outside Holdfast, and that nobody has accepted yet
	left     []api.VolumeBrick // those that somebody has accepted
	was      []api.VolumeBrick // the bricks that were recorded of it
}

func (v *volume) object() string { return "volume/" + v.name }

// balanced is the condition of a Volume that says whether its files lie where its bricks have them belong. It is false from the
// moment in which bricks are added until a rebalance has ended; its message is the rebalance that was remembered before.
const balanced = "Balanced"

// findVolumes puts the declared volumes and those of the pool together, and counts what is promised of each store.
func (p *planner) findVolumes() {
	byName := map[string]*volume{}
	at := func(name string) *volume {
		if byName[name] == nil {
			byName[name] = &volume{name: name}
		}
		return byName[name]
	}
	for _, declared := range engine.OfKind[*api.Volume](p.view.Resources) {
		v := at(declared.Name)
		v.declared, v.status, v.was = declared, *declared.Status.DeepCopy(), declared.Status.Bricks
	}
	if p.ready() {
		for i := range p.speaker.report.Pool.Volumes {
			v := at(p.speaker.report.Pool.Volumes[i].Name)
			v.pool = &p.speaker.report.Pool.Volumes[i]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		p.volumes = append(p.volumes, byName[name])
		if other := p.findLost(byName[name]); other != nil {
			p.volumes = append(p.volumes, other)
			p.promise(other)
		}
		p.promise(byName[name])
	}
}

// promise counts a volume's bricks in their stores: those that the pool has, or before it has any those that are planned.
func (p *planner) promise(v *volume) {
	if v.pool == nil {
		for _, b := range v.status.Bricks {
			if s := p.storeNamed(b.Node, b.Path); s != nil {
				s.promised += b.Size.Value()
				s.bricks++
			}
		}
		return
	}
	size := v.brickSizes()
	for i := range v.pool.Bricks {
		if s := p.storeOf(&v.pool.Bricks[i]); s != nil {
			s.promised += size(i)
			s.bricks++
		}
	}
}

func (p *planner) storeNamed(node, path string) *store {
	for _, n := range p.nodes {
		if n.name == node {
			return n.storeAt(path)
		}
	}
	return nil
}

// brickSizes returns what each brick of the pool's volume is promised, by its number; nothing for a volume that nobody declares.
func (v *volume) brickSizes() func(i int) int64 {
	capacity := v.accepted()
	sets := len(v.pool.Sets())
	if capacity == 0 || sets == 0 {
		return func(int) int64 { return 0 }
	}
	members := layoutOfPool(v.pool).members(capacity, sets)
	return func(i int) int64 { return members[i%len(members)] }
}

// accepted is the size that was promised so far; 0 where none was.
func (v *volume) accepted() int64 {
	if v.declared == nil || v.status.Capacity == nil {
		return 0
	}
	return v.status.Capacity.Value()
}

// planVolumes brings the volumes to what is declared, one after the other, and then moves bricks that have to leave their place.
func (p *planner) planVolumes() {
	for _, v := range p.volumes {
		switch {
		case v.declared == nil:
			tellStranger(p, v)
		case v.declared.DeletionTimestamp != nil:
			p.deleteVolume(v)
		case !p.ready():
			v.waits = "the pool does not answer yet"
		case v.lost != "":
			p.tellLost(v)
		case v.pool == nil:
			p.createVolume(v)
		default:
			p.keepVolume(v)
		}
	}
	if p.ready() {
		p.moveBricks()
		p.clearLeftovers()
		p.limitSizes()
		p.setOptions()
		p.tellStrays()
	}
	for _, v := range p.volumes {
		known := p.ready() || v.status.State == "" // what is known of a volume stays while the pool does not answer
		if v.declared != nil && v.declared.DeletionTimestamp == nil && known {
			p.writeVolume(v)
		}
	}
}

// refuse says why a volume cannot be as it is declared.
func (p *planner) refuse(v *volume, reason api.Reason, format string, args ...any) {
	v.refusal = fmt.Sprintf(format, args...)
	p.decide(api.VerdictRefuse, reason, v.object(), "%s", v.refusal)
}

func (p *planner) await(v *volume, reason api.Reason, format string, args ...any) {
	v.waits = fmt.Sprintf(format, args...)
	p.decide(api.VerdictWait, reason, v.object(), "%s", v.waits)
}

// createVolume makes a volume that the pool does not have.
func (p *planner) createVolume(v *volume) {
	want := layoutOf(&v.declared.Spec)
	if !p.plannedStill(v, want) && !p.placeVolume(v, want) {
		return
	}
	params := want.params()
	var bricks []string
	for _, b := range v.status.Bricks {
		n := p.nodeNamed(b.Node)
		bricks = append(bricks, n.address+":"+b.Path)
		if n.storeAt(b.Path).Root {
			params[glusterd.ParamForce] = "true"
		}
	}
	params[glusterd.ParamBricks] = strings.Join(bricks, " ")
	v.status.State = api.ResourceCreating
	p.command(glusterd.VerbCreate, v.name, params, api.RiskNone, "the volume is declared: %s%s", v.status.Layout, words.Colon(p.sharedZone(v, want)))
	if v.waits != "" {
		return // there is nothing to start
	}
	first := maps.Clone(safeOptions) // before anybody can mount it
	all, _ := p.wantedOptions(v)     // what is wrong with others is said once the volume is there
	if all[optionAllow] != "" {
		first[optionAllow] = all[optionAllow]
	}
	p.command(glusterd.VerbSet, v.name, first, api.RiskNone, "before it is used: %s", words.Few(slices.Sorted(maps.Keys(first))))
	p.command(glusterd.VerbStart, v.name, nil, api.RiskNone, "the volume is declared")
}

// plannedStill says whether the places that were chosen for a volume before can be had: its making was cut off before anything
// was made. A directory that was made already would be taken for one of another volume, so another name is chosen.
func (p *planner) plannedStill(v *volume, want layout) bool {
	if len(v.status.Bricks) == 0 || len(v.status.Bricks)%want.setSize() != 0 || v.accepted() != v.declared.Spec.Size.Value() {
		return false
	}
	return !slices.ContainsFunc(v.status.Bricks, func(b api.VolumeBrick) bool {
		s := p.storeNamed(b.Node, b.Path)
		return s == nil || !p.open(s) || !s.lost(b.Path)
	})
}

func (p *planner) nodeNamed(name string) *node {
	for _, n := range p.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

// placeVolume chooses the places of a new volume, or says why there are none.
func (p *planner) placeVolume(v *volume, want layout) bool {
	for _, b := range v.status.Bricks {
		if s := p.storeNamed(b.Node, b.Path); s != nil {
			s.promised -= b.Size.Value()
			s.bricks--
		}
	}
	v.status.Bricks, v.status.Capacity = nil, nil
	if n := p.comingNode(); n != nil {
		p.await(v, api.ReasonJoining, "waiting for node %s to join the pool before placing bricks", n.name)
		return false
	}
	size := v.declared.Spec.Size.Value()
	for sets := 1; sets <= maxSets; sets++ {
		if found := p.spots(want, want.members(size, sets), sets); found != nil {
			p.take(v, found)
			v.status.Capacity = resource.NewQuantity(size, resource.BinarySI)
			v.status.Layout = want.text(sets)
			return true
		}
	}
	p.refuse(v, api.ReasonInsufficientSpace, "%s", p.noPlace(want, size))
	return false
}

// keepVolume brings a volume that the pool has to what is declared.
func (p *planner) keepVolume(v *volume) {
	want := layoutOf(&v.declared.Spec)
	if compareBricks(p, v); len(v.removed) > 0 {
		awaitBricks(p, v)
		return
	}
	if have := layoutOfPool(v.pool); have != want {
		p.refuse(v, api.ReasonConflict, "the pool has a volume of this name that is built in another way (%s, and %s is declared): choose another name",
			have.text(len(v.pool.Sets())), want.text(1))
		return
	}
	p.record(v)
	if v.status.Capacity == nil { // one that was kept when its Volume was deleted, or was made by hand
		v.status.Capacity = resource.NewQuantity(v.declared.Spec.Size.Value(), resource.BinarySI)
		size := v.brickSizes()
		for i := range v.pool.Bricks {
			if s := p.storeOf(&v.pool.Bricks[i]); s != nil {
				s.promised += size(i)
			}
		}
	}
	p.describe(v)
	p.judgeZones(v)
	if v.pool.State != glusterd.VolumeStarted {
		start(p, v)
		return
	}
	p.startBricks(v)
	p.askHeal(v)
	p.resize(v, want)
	p.rebalance(v)
}

func itoa(n int) string { return strconv.Itoa(n) }
