package gluster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/cause"
	"github.com/holdfast-storage/holdfast/driver/gluster/resolve"
	"github.com/holdfast-storage/holdfast/driver/gluster/sets"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// describe writes into the status what the pool says of a volume.
func (p *planner) describe(v *volume) {
	size := v.brickSizes()
	v.status.Layout = layoutOfPool(v.pool).text(len(v.pool.Sets()))
	v.status.Bricks, v.status.Heals = nil, 0
	for i := range v.pool.Bricks {
		b := &v.pool.Bricks[i]
		v.status.Bricks = append(v.status.Bricks, p.brickStatus(v, b, size(i)))
		if b.Heal != nil {
			v.status.Heals = max(v.status.Heals, b.Heal.Pending)
		}
	}
	keepBricks(p, v)
	v.status.SplitBrains = sets.SplitFiles(v.pool)
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
	switch was := v.recorded(out.Node, b.Path); {
	case s == nil && was != nil: // the store is not there now
		out.Device, out.Directory = was.Device, was.Directory
	case s != nil && s.Device != "":
		out.Device = s.Device
	case s != nil:
		out.Directory = s.Name
	}
	out.Message = words.Cut(p.brickMessage(v, b, n, s), maxBrickText)
	return out
}

// recorded is what was written down of a brick before; nil where nothing was.
func (v *volume) recorded(node, path string) *api.VolumeBrick {
	if v.declared == nil {
		return nil
	}
	bricks := v.declared.Status.Bricks
	i := slices.IndexFunc(bricks, func(b api.VolumeBrick) bool { return b.Node == node && b.Path == path })
	if i < 0 {
		return nil
	}
	return &bricks[i]
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
	case s == nil && n.running():
		return "its device or directory is missing"
	case b.State == glusterd.BrickOffline:
		return "its process does not run"
	case b.State == glusterd.BrickUnknown && v.pool.Silent:
		return "unknown whether it serves: " + v.pool.Unknown
	case b.State == glusterd.BrickUnknown && n.daemon.Spec.State == api.WantStopped:
		return "its node is stopped"
	case b.State == glusterd.BrickUnknown:
		return "the glusterd of its node is disconnected: the brick may still serve"
	case b.Leaving:
		return "it is being emptied"
	case b.Heal == nil && v.pool.SetSize() > 1:
		return cmp.Or(v.pool.Unknown, "its process runs and does not answer: it may be full, or hang")
	case b.Heal != nil && b.Heal.SplitBrain > 0:
		return fmt.Sprintf("%s in split-brain", words.Plural(int(b.Heal.SplitBrain), "entry"))
	case b.Heal != nil && b.Heal.Pending > 0:
		return fmt.Sprintf("others still lack %d entries of it", b.Heal.Pending)
	}
	return ""
}

// writeVolume judges a volume and writes its status if it changed.
func (p *planner) writeVolume(v *volume) {
	if p.observed() {
		p.look(v)
	}
	s := &v.status
	s.State, s.Message = p.judgeVolume(v)
	s.Message = words.Cut(s.Message, maxText)
	if s.Reason, s.Next = "", ""; s.State == api.ResourceDegraded || s.State == api.ResourceOffline {
		s.Reason, s.Next = causeOf(p, v)
	}
	var problems []string
	if v.refusal != "" {
		problems = []string{v.refusal}
	}
	next := v.next()
	engine.Accept(next, problems, p.now)
	p.plan.PutResource(v.declared, next)
}

// causeOf is why a volume is Degraded or Offline, and what to do, where the pool says that. What
// was removed outside Holdfast has a message of its own.
func causeOf(p *planner, v *volume) (api.Reason, string) {
	if v.lost != "" || v.pool == nil || v.pool.State != glusterd.VolumeStarted || len(v.removed) > 0 ||
		p.speaker == nil {
		return "", ""
	}
	return cause.Of(&cause.Volume{
		Pool: v.pool, Peers: p.speaker.report.Peers, Splits: v.status.SplitBrains, Resolve: resolveText(v),
		Node: func(address string) string {
			if n := p.nodeOf(&glusterd.Brick{Address: address}); n != nil {
				return n.name
			}
			return ""
		},
	})
}

// resolveText is the command that says which copy of a file in split-brain is right.
func resolveText(v *volume) string {
	namespace := ""
	if v.declared.Namespace != metav1.NamespaceDefault {
		namespace = " -n " + v.declared.Namespace
	}
	return fmt.Sprintf("holdfast volume resolve%s %s FILE --keep NODE", namespace, v.name)
}

func (p *planner) observed() bool { return p.cluster.ModeOf() == api.ClusterObserved }

// look takes back what the plan would make of a volume: nobody makes it.
func (p *planner) look(v *volume) {
	v.status = *v.declared.Status.DeepCopy()
	switch {
	case v.pool != nil:
		compareBricks(p, v)
		p.record(v)
		p.describe(v)
		p.judgeZones(v)
	case v.lost != "":
		p.tellLost(v)
	case v.refusal == "":
		v.status.State, v.waits = api.ResourcePending, cmp.Or(v.waits,
			"the cluster is in mode Observed: the volume does not exist and is not created")
	}
}

func (p *planner) setCondition(v *volume, c metav1.Condition) {
	p.setConditionOf(&v.status.Conditions, v.declared.Generation, c)
}

func (p *planner) setConditionOf(conditions *[]metav1.Condition, generation int64, c metav1.Condition) {
	c.ObservedGeneration = generation
	// The API keeps whole seconds; a finer time would make a status differ from itself once it was stored.
	c.LastTransitionTime = metav1.Time{Time: p.now.Truncate(time.Second)}
	meta.SetStatusCondition(conditions, c)
}

// next is the volume with what is said of it now.
func (v *volume) next() *api.Volume {
	next := v.declared.DeepCopy()
	next.Status = v.status
	next.Status.ObservedGeneration = v.declared.Generation
	return next
}

// young says whether a volume was not told to be usable yet. One of which an option may be who mounts it is not before that is set.
func (v *volume) young() bool {
	s := &v.declared.Status
	return !s.Served && (s.State == "" || s.State == api.ResourcePending || s.State == api.ResourceCreating)
}

// asked says whether the spec of a volume that serves was changed, and the status does not say yet
// what came of that: the volume must not be Ready before GlusterFS has taken its options.
func (v *volume) asked() bool {
	s := &v.declared.Status
	return s.Served && (s.ObservedGeneration < v.declared.Generation || s.State == api.ResourceCreating)
}

// judgeVolume says whether a volume can be used, and why not.
func (p *planner) judgeVolume(v *volume) (api.ResourceState, string) {
	switch {
	case v.lost != "":
		return api.ResourceOffline, v.refusal
	case v.pool == nil && v.status.State == api.ResourceCreating && v.refusal == "" && v.waits == "":
		return api.ResourceCreating, cmp.Or(p.failed(v), "it is being made")
	case v.pool == nil:
		return api.ResourcePending, cmp.Or(v.refusal, v.waits)
	case v.pool.State != glusterd.VolumeStarted && !v.young():
		return api.ResourceOffline, cmp.Or(p.failed(v), "it is stopped, and being started")
	case v.pool.State != glusterd.VolumeStarted:
		return api.ResourceCreating, cmp.Or(p.failed(v), "it is being started")
	case v.unset && v.young() && v.refusal == "" && p.failed(v) == "":
		return api.ResourceCreating, "its options are being set"
	}
	for _, set := range v.pool.Sets() {
		if up := sets.Online(set); up < sets.Needed(v.pool) && !v.pool.Silent {
			return api.ResourceOffline, fmt.Sprintf("%d of the %d bricks of a set serve, and %d must: %s",
				up, len(set), sets.Needed(v.pool), words.Few(sets.NotOnline(set)))
		}
	}
	// Somebody has to decide what is in split-brain; all else is mended without them.
	if text := cmp.Or(splitText(v), sets.Unsound(v.pool)); text != "" {
		return api.ResourceDegraded, text
	}
	if len(v.removed) > 0 {
		return api.ResourceDegraded, v.waits
	}
	if v.narrowed {
		return p.stillOpen(v)
	}
	if v.unset && v.refusal == "" && v.asked() {
		return api.ResourceCreating, cmp.Or(p.failed(v), "its options are being set")
	}
	return api.ResourceOnline, cmp.Or(v.refusal, p.failed(v), v.waits, v.zones)
}

// stillOpen is the state of a volume that serves, and that hosts can mount which spec.auth.allow does not name.
func (p *planner) stillOpen(v *volume) (api.ResourceState, string) {
	if why := p.failed(v); why != "" {
		return api.ResourceDegraded, "hosts outside spec.auth.allow can still mount it: " + why
	}
	return api.ResourceCreating, "spec.auth.allow is being set; until then, hosts that it does not name can still mount it"
}

// failed is what was said of a command of the volume that failed, and is asked for again; nothing where none did.
func (p *planner) failed(v *volume) string {
	for _, f := range p.view.Failures {
		if f.Command.Line == v.object() {
			return f.Message
		}
	}
	return ""
}

// splitText says what an administrator can do about files of which no heal can tell which copy is right.
func splitText(v *volume) string {
	if len(v.status.SplitBrains) == 0 {
		return ""
	}
	return fmt.Sprintf("split-brain, no heal can tell which copy is right: %s. Look at the copies below the paths of the bricks, and choose: "+
		"'%s', the node with the right copy (%s), or latest-mtime, or bigger-file. "+
		"Of a directory, name the files in it that cannot be read", words.Few(v.status.SplitBrains), resolveText(v),
		words.Few(resolve.Copies(&api.Volume{Status: v.status})))
}
