package gluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// volume is a volume that is declared, or that the pool has, or both.
type volume struct {
	name     string
	declared *api.Volume      // nil for one that nobody declares
	pool     *glusterd.Volume // nil while the pool has none of this name
	status   api.VolumeStatus // of a declared one, in the making
	refusal  string           // why it cannot be as it is declared
	waits    string           // what it waits for
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
	for i := range p.view.Volumes {
		v := at(p.view.Volumes[i].Name)
		v.declared, v.status = &p.view.Volumes[i], *p.view.Volumes[i].Status.DeepCopy()
	}
	if p.ready() {
		for i := range p.speaker.report.Pool.Volumes {
			v := at(p.speaker.report.Pool.Volumes[i].Name)
			v.pool = &p.speaker.report.Pool.Volumes[i]
		}
	}
	for _, name := range sortedKeys(byName) {
		p.volumes = append(p.volumes, byName[name])
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
			p.decide(api.VerdictSkip, v.object(), "the pool has this volume and nobody declares it: it is left alone, but for bricks that have to move")
		case v.declared.DeletionTimestamp != nil:
			p.deleteVolume(v)
		case !p.ready():
			v.waits = "the pool does not answer yet"
		case v.pool == nil:
			p.createVolume(v)
		default:
			p.keepVolume(v)
		}
	}
	if p.ready() {
		p.moveBricks()
		p.clearLeftovers()
		p.setOptions()
	}
	for _, v := range p.volumes {
		known := p.ready() || v.status.State == "" // what is known of a volume stays while the pool does not answer
		if v.declared != nil && v.declared.DeletionTimestamp == nil && known {
			p.writeVolume(v)
		}
	}
}

// refuse says why a volume cannot be as it is declared.
func (p *planner) refuse(v *volume, format string, args ...any) {
	v.refusal = fmt.Sprintf(format, args...)
	p.decide(api.VerdictRefuse, v.object(), "%s", v.refusal)
}

func (p *planner) await(v *volume, format string, args ...any) {
	v.waits = fmt.Sprintf(format, args...)
	p.decide(api.VerdictWait, v.object(), "%s", v.waits)
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
	v.status.State = api.VolumeCreating
	p.command(glusterd.VerbCreate, v.name, params, api.RiskNone, "the volume is declared: %s", v.status.Layout)
	if auth := p.wantedOptions(v)[optionAllow]; auth != "" { // before anybody can mount it
		p.command(glusterd.VerbSet, v.name, map[string]string{optionAllow: auth}, api.RiskNone, "spec.auth says who may use it")
	}
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
	for _, n := range p.nodes {
		if p.onItsWay(n) {
			p.await(v, "node %s is on its way into the pool: where bricks go is decided when it is there", n.name)
			return false
		}
	}
	size := v.declared.Spec.Size.Value()
	for sets := 1; sets <= maxSets; sets++ {
		if found := p.spots(want.members(size, sets), sets); found != nil {
			p.take(v, found)
			v.status.Capacity = resource.NewQuantity(size, resource.BinarySI)
			v.status.Layout = want.text(sets)
			return true
		}
	}
	p.refuse(v, "%s", p.noPlace(want, size))
	return false
}

// keepVolume brings a volume that the pool has to what is declared.
func (p *planner) keepVolume(v *volume) {
	want := layoutOf(&v.declared.Spec)
	if have := layoutOfPool(v.pool); have != want {
		p.refuse(v, "the pool has a volume of this name that is built in another way (%s, and %s is declared): choose another name",
			have.text(len(v.pool.Sets())), want.text(1))
		return
	}
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
	if v.pool.State != glusterd.VolumeStarted {
		p.command(glusterd.VerbStart, v.name, nil, api.RiskNone, "the volume is declared, and %s", strings.ToLower(v.pool.State))
		return
	}
	p.startBricks(v)
	p.resize(v, want)
	p.rebalance(v)
}

// startBricks starts brick processes that ended, where their disk is well.
func (p *planner) startBricks(v *volume) {
	var down []string
	for i := range v.pool.Bricks {
		b := &v.pool.Bricks[i]
		n, s := p.nodeOf(b), p.storeOf(b)
		if b.State == glusterd.BrickOffline && n != nil && n.running() && !p.stopped[n.name] && s != nil && s.Problem == "" && !s.lost(b.Path) {
			down = append(down, b.Name())
		}
	}
	if len(down) == 0 {
		meta.RemoveStatusCondition(&v.status.Conditions, bricksStarted)
	}
	if len(down) > 0 && p.mayRestart(v, joinFew(down)) {
		p.command(glusterd.VerbStart, v.name, map[string]string{glusterd.ParamForce: "true"}, api.RiskNone, "%s", "not served: "+joinFew(down))
	}
}

// bricksStarted is the condition of a Volume that says when the bricks in its message were started the last time.
const bricksStarted = "BricksStarted"

// startAgain is how long after bricks were started they may take to serve, before they are started again.
const startAgain = time.Minute

// mayRestart says whether these bricks have not been started a moment ago, and notes that they are now.
func (p *planner) mayRestart(v *volume, bricks string) bool {
	c := meta.FindStatusCondition(v.status.Conditions, bricksStarted)
	if c != nil && c.Message == bricks {
		if left := c.LastTransitionTime.Add(startAgain).Sub(p.now); left > 0 {
			p.recheck(left)
			return false
		}
	}
	if p.successor != nil {
		return true // it is only told
	}
	meta.RemoveStatusCondition(&v.status.Conditions, bricksStarted)
	p.setCondition(v, metav1.Condition{Type: bricksStarted, Status: metav1.ConditionTrue, Reason: "NotServed", Message: bricks})
	return true
}

// recheck asks for another look after some time.
func (p *planner) recheck(after time.Duration) {
	if p.plan.Recheck == 0 || after < p.plan.Recheck {
		p.plan.Recheck = after
	}
}

// lost says whether a store can be read and the directory of a brick is not in it.
func (s *store) lost(path string) bool {
	return s.Problem == "" && !slices.ContainsFunc(s.Bricks, func(b glusterd.StoredBrick) bool { return b.Path == path })
}

// describe writes into the status what the pool says of a volume.
func (p *planner) describe(v *volume) {
	size := v.brickSizes()
	v.status.Layout = layoutOfPool(v.pool).text(len(v.pool.Sets()))
	v.status.Bricks, v.status.Heals, v.status.SplitBrains = nil, 0, nil
	for i := range v.pool.Bricks {
		b := &v.pool.Bricks[i]
		v.status.Bricks = append(v.status.Bricks, p.brickStatus(v, b, size(i)))
		if b.Heal != nil {
			v.status.Heals = max(v.status.Heals, b.Heal.Pending)
			v.status.SplitBrains = append(v.status.SplitBrains, b.Heal.Files...)
		}
	}
	slices.Sort(v.status.SplitBrains)
	v.status.SplitBrains = slices.Compact(v.status.SplitBrains)
	v.status.SplitBrains = v.status.SplitBrains[:min(len(v.status.SplitBrains), maxSplitBrains)]
	var servers []string
	for i := range v.pool.Bricks {
		if a := v.pool.Bricks[i].Address; !slices.Contains(servers, a) {
			servers = append(servers, a)
		}
	}
	v.status.Source, v.status.Backups = "", nil
	if len(servers) > 0 {
		v.status.Source, v.status.Backups = servers[0]+":/"+v.name, servers[1:min(len(servers), maxBackups)]
	}
}

func (p *planner) brickStatus(v *volume, b *glusterd.Brick, size int64) api.VolumeBrick {
	out := api.VolumeBrick{Node: b.Address, Path: b.Path, Size: resource.NewQuantity(size, resource.BinarySI), Online: b.State == glusterd.BrickOnline}
	n, s := p.nodeOf(b), p.storeOf(b)
	if n != nil {
		out.Node = n.name
	}
	if s != nil && s.Device != "" {
		out.Device = s.Device
	} else if s != nil {
		out.Directory = s.Name
	}
	out.Message = cut(p.brickMessage(v, b, n, s), maxBrickText)
	return out
}

// brickMessage says what is wrong with a brick, or goes on with it.
func (p *planner) brickMessage(v *volume, b *glusterd.Brick, n *node, s *store) string {
	switch {
	case v.pool.State != glusterd.VolumeStarted:
		return ""
	case n == nil:
		return "its node is not declared"
	case s != nil && s.Problem != "":
		return s.Problem
	case b.State == glusterd.BrickOffline:
		return "its process does not run"
	case b.State == glusterd.BrickUnknown && n.daemon.Spec.State == api.WantStopped:
		return "its node is stopped"
	case b.State == glusterd.BrickUnknown:
		return "the glusterd of its node is not heard: the brick may well serve"
	case b.Leaving:
		return "it is being emptied"
	case b.Heal == nil && v.pool.SetSize() > 1:
		return cmp.Or(v.pool.Unknown, "its process runs and does not answer: it may be full, or hang")
	case b.Heal != nil && b.Heal.SplitBrain > 0:
		return fmt.Sprintf("%s in split-brain", plural(int(b.Heal.SplitBrain), "entry"))
	case b.Heal != nil && b.Heal.Pending > 0:
		return fmt.Sprintf("others still lack %d entries of it", b.Heal.Pending)
	}
	return ""
}

// deleteVolume takes a volume away, and under DeletionWipe its bricks. One that is kept is stopped, and stays in the pool: a
// Volume of the same name and layout takes it over again.
func (p *planner) deleteVolume(v *volume) {
	wipe := policy(v.declared.Spec.DeletionPolicy) == api.DeletionWipe
	v.status.State = api.VolumeDeleting
	switch {
	case !p.ready() && (len(v.status.Bricks) > 0 || !p.neverUp()):
		p.await(v, "being deleted: the pool does not answer")
	case v.pool != nil && (wipe || v.pool.State == glusterd.VolumeStarted):
		p.endVolume(v, wipe)
	case wipe && !p.wiped(v):
	default:
		p.plan.Volumes = append(p.plan.Volumes, engine.VolumeStatus{Name: v.name, Gone: true})
		return
	}
	p.putVolume(v)
}

func (p *planner) endVolume(v *volume, wipe bool) {
	risk := api.RiskRedundancy
	if wipe {
		risk = api.RiskData
	}
	if v.pool.State == glusterd.VolumeStarted {
		p.command(glusterd.VerbStop, v.name, nil, risk, "the Volume was deleted")
	}
	if wipe {
		p.describe(v)
		p.command(glusterd.VerbDelete, v.name, nil, risk, "the Volume was deleted (deletionPolicy Wipe)")
	}
}

// wiped has the bricks of a deleted volume removed, and says whether none is left.
func (p *planner) wiped(v *volume) bool {
	left := 0
	for _, b := range v.status.Bricks {
		n, s := p.nodeNamed(b.Node), p.storeNamed(b.Node, b.Path)
		switch {
		case n == nil:
			p.decide(api.VerdictSkip, v.object(), "brick %s of node %s is left: the node is gone", b.Path, b.Node)
		case !n.running():
			left++
			p.await(v, "being deleted: node %s, which has brick %s, is not heard", b.Node, b.Path)
		case s != nil && !s.lost(b.Path) && s.Problem == "":
			left++
			p.drop(n, s.stored(b.Path), api.RiskData, "its volume was deleted (deletionPolicy Wipe)")
		}
	}
	return left == 0
}

func (s *store) stored(path string) glusterd.StoredBrick {
	i := slices.IndexFunc(s.Bricks, func(b glusterd.StoredBrick) bool { return b.Path == path })
	return s.Bricks[i]
}

func (p *planner) drop(n *node, b glusterd.StoredBrick, risk api.Risk, why string) {
	p.commandOf(n, glusterd.VerbDropBrick, b.Path, map[string]string{glusterd.ParamVolumeID: b.Volume}, risk, "%s", why)
}

// writeVolume judges a volume and writes its status if it changed.
func (p *planner) writeVolume(v *volume) {
	s := &v.status
	s.State, s.Message = p.judgeVolume(v)
	s.Message = cut(s.Message, maxText)
	accepted := metav1.Condition{Type: api.VolumeAccepted, Status: metav1.ConditionTrue, Reason: engine.ReasonAccepted}
	switch {
	case v.refusal != "":
		accepted.Status, accepted.Reason, accepted.Message = metav1.ConditionFalse, engine.ReasonRefused, v.refusal
	case v.pool == nil && v.waits != "":
		accepted.Status, accepted.Reason, accepted.Message = metav1.ConditionFalse, engine.ReasonWaiting, v.waits
	}
	p.setCondition(v, accepted)
	p.putVolume(v)
}

func (p *planner) setCondition(v *volume, c metav1.Condition) {
	c.ObservedGeneration = v.declared.Generation
	// The API keeps whole seconds; a finer time would make a status differ from itself once it was stored.
	c.LastTransitionTime = metav1.Time{Time: p.now.Truncate(time.Second)}
	meta.SetStatusCondition(&v.status.Conditions, c)
}

func (p *planner) putVolume(v *volume) {
	v.status.ObservedGeneration = v.declared.Generation
	if !equality.Semantic.DeepEqual(v.status, v.declared.Status) {
		p.plan.Volumes = append(p.plan.Volumes, engine.VolumeStatus{Name: v.name, Status: v.status})
	}
}

// judgeVolume says whether a volume can be used, and why not.
func (p *planner) judgeVolume(v *volume) (api.VolumeState, string) {
	switch {
	case v.pool == nil && v.status.State == api.VolumeCreating && v.refusal == "" && v.waits == "":
		return api.VolumeCreating, "it is being made"
	case v.pool == nil:
		return api.VolumePending, cmp.Or(v.refusal, v.waits)
	case v.pool.State != glusterd.VolumeStarted:
		return api.VolumeCreating, "it is being started"
	}
	for _, set := range v.pool.Sets() {
		if up := online(set); up < needed(v.pool) {
			return api.VolumeOffline, fmt.Sprintf("%d of the %d bricks of a set serve, and %d must: %s", up, len(set), needed(v.pool), joinFew(notOnline(set)))
		}
	}
	if text := cmp.Or(unsound(v.pool), splitText(v)); text != "" {
		return api.VolumeDegraded, text
	}
	return api.VolumeOnline, cmp.Or(v.refusal, v.waits)
}

// splitText says what an administrator can do about files of which no heal can tell which copy is right.
func splitText(v *volume) string {
	if len(v.status.SplitBrains) == 0 {
		return ""
	}
	return fmt.Sprintf("split-brain, no heal can tell which copy is right: %s. Choose with 'gluster volume heal %s split-brain latest-mtime FILE', or bigger-file FILE, or source-brick BRICK FILE",
		joinFew(v.status.SplitBrains), v.name)
}

func online(set []glusterd.Brick) (n int) {
	for i := range set {
		if set[i].State == glusterd.BrickOnline {
			n++
		}
	}
	return n
}

func notOnline(set []glusterd.Brick) (names []string) {
	for i := range set {
		if set[i].State != glusterd.BrickOnline {
			names = append(names, set[i].Name()+map[glusterd.BrickState]string{glusterd.BrickOffline: " is down", glusterd.BrickUnknown: " is not heard of"}[set[i].State])
		}
	}
	return names
}

const optionAllow = "auth.allow"

// wantedOptions are the options that a volume shall have: its cluster's, and its own before them.
func (p *planner) wantedOptions(v *volume) map[string]string {
	want := map[string]string{}
	if g := p.cluster.Spec.GlusterFS; g != nil {
		for name, value := range g.Options {
			want[name] = string(value)
		}
	}
	for name, value := range v.declared.Spec.Options {
		want[name] = string(value)
	}
	if allow := v.declared.Spec.Auth.Allow; len(allow) > 0 {
		want[optionAllow] = strings.Join(slices.Sorted(slices.Values(allow)), ",")
	}
	return want
}

// setOptions brings options to what is declared. Those that were set and are not declared any more go back to their default;
// what somebody set by hand is left alone. They come last: one that GlusterFS does not take must not hold up anything else.
func (p *planner) setOptions() {
	for _, v := range p.volumes {
		if v.declared == nil || v.pool == nil || v.refusal != "" || v.declared.DeletionTimestamp != nil {
			continue
		}
		want, set, reset := p.wantedOptions(v), map[string]string{}, map[string]string{}
		for name, value := range want {
			if have, ok := v.pool.Options[name]; !ok || have != value {
				set[name] = value
			}
		}
		names := slices.Collect(maps.Keys(want))
		for _, name := range v.status.Options {
			if _, ok := v.pool.Options[name]; ok && !slices.Contains(names, name) {
				reset[name] = ""
				names = append(names, name)
			}
		}
		slices.Sort(names)
		v.status.Options = names
		if len(set) > 0 {
			p.command(glusterd.VerbSet, v.name, set, api.RiskNone, "%s", "declared otherwise: "+joinFew(sortedKeys(set)))
		}
		if len(reset) > 0 {
			p.command(glusterd.VerbReset, v.name, reset, api.RiskNone, "%s", "not declared any more: "+joinFew(sortedKeys(reset)))
		}
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
