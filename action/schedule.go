package action

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// Facts are what of the world decides whose turn it is.
type Facts struct {
	Now time.Time
	// Kinds are all kinds that there are, by name.
	Kinds map[string]Kind
	// Hosts are all hosts, by name.
	Hosts map[string]HostFacts
	// Concern is what an action on a host concerns that names no cluster, by host, as Store.Concern says it. An action on a host
	// that is not in it may concern anything.
	Concern map[string][]string
	// Held are the actions under way whose status cannot be written now: they stay as they are recorded, which is what whoever carries
	// them out goes by, and are in the way of others.
	Held map[types.UID]bool
	// Against is what those say who were asked of the actions of kinds that Ask, empty where nothing is against it. One that is not in it was not asked
	// about yet. Nil: nobody is asked.
	Against map[types.UID]string
	// Waits says how long after its time an agent may still end an action. Zero means the defaults.
	Waits waits.Waits
}

// Transition is a status that an action shall get.
type Transition struct {
	Action *api.Action
	Status *api.ActionStatus
}

// Schedule says what becomes of the actions that nobody carries out now: it accepts them, has them approved, gives them their
// turn, and ends those that cannot go on. It is pure, writes to nothing that it is given, and returns nothing for what stays
// as it is. What is New or Running is carried on by Execute.
//
// Two actions are in each other's way when they work on one host, or when their modes forbid it (see Mode); those that run
// beside anything never are. An action is
// started when nothing that is in its way runs, or waits and is older. So it waits for older ones alone, and cannot starve. One that
// something else than actions is against (Facts.Against) is in nobody's way: what comes later may be what mends that.
func Schedule(actions []*api.Action, f Facts) []Transition {
	changed, _ := schedule(actions, f)
	return changed
}

// schedule also tells of which actions is to be asked whether they may begin, as nothing else is in their way.
func schedule(actions []*api.Action, f Facts) (changed []Transition, asked map[types.UID]int) {
	entries := make([]*entry, 0, len(actions))
	for _, a := range slices.SortedFunc(slices.Values(actions), oldestFirst) {
		if a.Status.State.Final() {
			// Its spec was changed while its end was recorded, which a tool would wait for.
			if seen := a.Status.ObservedGeneration; seen != 0 && seen != a.Generation {
				changed = append(changed, Transition{a, a.Status.DeepCopy()})
			}
			continue
		}
		k, known := f.Kinds[a.Spec.Kind]
		e := &entry{action: a, status: a.Status.DeepCopy(), kind: k}
		if !f.Held[a.UID] {
			e.settle(f, known)
		}
		entries = append(entries, e)
	}
	turns(entries, f)
	asked, of := map[types.UID]int{}, map[types.NamespacedName]int{}
	for _, e := range entries {
		if e.asked {
			of[e.cluster()]++
		}
	}
	for _, e := range entries {
		if !equality.Semantic.DeepEqual(&e.action.Status, e.status) {
			changed = append(changed, Transition{e.action, e.status})
		}
		if e.asked {
			asked[e.action.UID] = of[e.cluster()]
		}
	}
	return changed, asked
}

// turns gives those their turn that wait for it, and then says what the others wait for that something is against.
func turns(entries []*entry, f Facts) {
	for _, held := range []bool{false, true} {
		for i, e := range entries {
			if e.status.State == api.ActionPendingSchedule && held == e.held(&f) {
				e.turn(entries[:i], entries, f)
			}
		}
	}
}

func oldestFirst(a, b *api.Action) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// entry is one action that has not ended, with the status that it shall have.
type entry struct {
	action *api.Action
	status *api.ActionStatus
	kind   Kind
	// asked is set when it is to be asked whether it may begin.
	asked bool
}

func (e *entry) cluster() types.NamespacedName {
	return types.NamespacedName{Namespace: e.action.Namespace, Name: e.action.Spec.Cluster}
}

// settle does what needs no look at other actions.
func (e *entry) settle(f Facts, known bool) {
	if e.status.State == "" {
		e.accept(f.Now)
	}
	switch {
	case !known:
		e.unknown(f)
	case e.hostGone(f), e.unwanted(f.Now), e.expired(f.Now):
	case e.status.State == api.ActionPendingApproval:
		e.approve()
	case e.kind.Executor == api.ByAgent:
		e.watchAgent(f)
	}
}

// accept records that the action was heard of.
func (e *entry) accept(now time.Time) {
	e.status.State = api.ActionPendingApproval
	e.status.Executor = cmp.Or(e.kind.Executor, api.ByLeader)
	e.status.Message = "an administrator must approve it: 'holdfast action approve " + e.action.Name + "'"
	meta.SetStatusCondition(&e.status.Conditions, metav1.Condition{
		Type: api.ActionPersistent, Status: metav1.ConditionTrue, Reason: "Recorded", LastTransitionTime: *stamp(now),
	})
	effective(e.status, metav1.ConditionFalse, ReasonPending, "", now)
}

// begun says whether something may have been done already.
func (e *entry) begun() bool { return e.status.State == api.ActionRunning }

func (e *entry) end(state api.ActionState, reason, message string, now time.Time) {
	finish(e.status, state, reason, message, now)
}

// unknown ends an action of a kind that there is not.
func (e *entry) unknown(f Facts) {
	if e.begun() {
		e.end(api.ActionLost, ReasonUnknown, fmt.Sprintf("this version of Holdfast does not know the kind %q, so the "+
			"result is unknown; it knows %s", e.action.Spec.Kind, namesOf(f.Kinds)), f.Now)
		return
	}
	e.end(api.ActionFailed, ReasonUnknown, Impossible(e.action, f.Kinds), f.Now)
}

// Impossible says why an action can never be begun, whatever is there: its kind is unknown, or needs a host to be named. Empty where it may.
func Impossible(a *api.Action, kinds map[string]Kind) string {
	k, known := kinds[a.Spec.Kind]
	switch {
	case !known:
		return fmt.Sprintf("kind %q does not exist; choose one of %s", a.Spec.Kind, namesOf(kinds))
	case k.Executor == api.ByAgent && a.Spec.Host == "":
		return fmt.Sprintf("%s needs spec.host, whose agent carries it out", k.Name)
	}
	return ""
}

func namesOf(kinds map[string]Kind) string {
	return strings.Join(slices.Sorted(maps.Keys(kinds)), ", ")
}

// hostGone ends an action that an agent cannot carry out because its host is not there, or is another one by now. Of the
// leader's own kinds the Check says what a host's absence means: it may be what the action is for.
func (e *entry) hostGone(f Facts) bool {
	host := e.action.Spec.Host
	h, there := f.Hosts[host]
	anew := there && e.begun() && e.status.Started != nil && h.Joined.After(e.status.Started.Time)
	switch {
	case e.kind.Executor != api.ByAgent, there && !anew:
		return false
	case e.begun():
		e.end(api.ActionLost, ReasonLost, fmt.Sprintf("host %s was removed while its agent carried out the action: the "+
			"result is unknown", host), f.Now)
	case host == "":
		e.end(api.ActionFailed, ReasonRefused, Impossible(e.action, f.Kinds), f.Now)
	default:
		e.end(api.ActionFailed, ReasonRefused, fmt.Sprintf("host %s does not exist: see 'holdfast get hosts'", host), f.Now)
	}
	return true
}

// unwanted ends an action that was rejected or cancelled before it began. What has begun is undone by who carries it out.
func (e *entry) unwanted(now time.Time) bool {
	waits := e.status.State == api.ActionPendingApproval || e.status.State == api.ActionPendingSchedule
	switch {
	case waits && e.action.Spec.Approval == api.ApprovalRejected:
		e.status.Approver = e.action.Annotations[api.AnnotationApprover]
		e.end(api.ActionCancelled, ReasonRejected, "rejected"+by(e.status.Approver), now)
	case e.action.Spec.Want == api.WantCancelled && (waits || e.status.State == api.ActionNew && e.kind.Executor == api.ByAgent):
		e.end(api.ActionCancelled, ReasonCancelled, "cancelled before it began", now)
	default:
		return false
	}
	return true
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return " by " + who
}

func (e *entry) expired(now time.Time) bool {
	limit := expiryOf(e.action, e.kind)
	if e.begun() || now.Sub(e.action.CreationTimestamp.Time) <= limit {
		return false
	}
	text := "not begun within " + limit.String()
	if e.status.State == api.ActionPendingApproval {
		text = "not approved within " + limit.String()
	} else if e.status.WaitsFor != "" {
		text += "; it waited for: " + e.status.WaitsFor
	}
	e.end(api.ActionFailed, ReasonExpired, text, now)
	return true
}

// approve lets an action wait for its turn that was granted, or that nobody has to grant.
func (e *entry) approve() {
	if e.action.Spec.Approval == api.ApprovalRequired {
		e.status.WaitsFor = "an administrator to approve it"
		return
	}
	e.status.State, e.status.Approver = api.ActionPendingSchedule, e.action.Annotations[api.AnnotationApprover]
}

// watchAgent takes back the turn of an action whose agent is silent, so that it is in nobody's way, and gives up one that the
// agent should have ended long ago. An agent needs at most the timeout once more, for undoing. Meanwhile it is said that the agent is what is waited
// for: its own last word, of what it waited for itself, is true no more.
func (e *entry) watchAgent(f Facts) {
	silent := f.Hosts[e.action.Spec.Host].Silent
	switch e.status.State {
	case api.ActionNew:
		if silent {
			e.status.State = api.ActionPendingSchedule
		}
	case api.ActionRunning:
		limit, grace := timeoutOf(e.action, e.kind), f.Waits.OrDefault().ActionLost
		took := f.Now.Sub(e.since())
		if silent && took > limit+grace || took > 2*limit+grace {
			e.end(api.ActionLost, ReasonLost, fmt.Sprintf("the agent of host %s did not end it within %s: the result is "+
				"unknown", e.action.Spec.Host, limit), f.Now)
			return
		}
		e.tellSilence(f)
	default: // it is not the agent's yet
	}
}

// since is when an action began. An agent that does not say so counts from when it was asked for.
func (e *entry) since() time.Time {
	if e.status.Started == nil {
		return e.action.CreationTimestamp.Time
	}
	return e.status.Started.Time
}

// tellSilence says of an action under way that its agent is silent, and takes that back when it is heard: it may be a while until it has something to say.
func (e *entry) tellSilence(f Facts) {
	switch {
	case f.Hosts[e.action.Spec.Host].Silent:
		e.status.WaitsFor, e.status.Estimated = f.silence(e.action.Spec.Host), nil
	case strings.HasPrefix(e.status.WaitsFor, silence(e.action.Spec.Host)):
		e.status.WaitsFor = ""
	}
}

func silence(host string) string {
	return fmt.Sprintf("the agent of host %s, which is disconnected", host)
}

// silence is what is waited for where the agent of a host is silent.
func (f *Facts) silence(host string) string {
	if since := f.Hosts[host].Since; !since.IsZero() {
		return silence(host) + " since " + since.UTC().Format(time.RFC3339)
	}
	return silence(host)
}

// turn gives the action its turn, or says what it waits for.
func (e *entry) turn(older, all []*entry, f Facts) {
	e.status.Message = "waiting for its turn"
	if e.absent(f) {
		e.status.WaitsFor = f.silence(e.action.Spec.Host)
		return
	}
	if e.status.WaitsFor = e.blocked(older, all, &f); e.status.WaitsFor != "" {
		return
	}
	if e.asked = e.kind.Asks && f.Against != nil; e.asked {
		said, known := f.Against[e.action.UID]
		if e.status.WaitsFor = said; !known {
			e.status.WaitsFor = "the check whether it may begin"
		}
	}
	if e.status.WaitsFor == "" {
		e.status.State, e.status.Message = api.ActionNew, "its turn has come"
	}
}

// absent says that the action cannot be begun because its agent is silent.
func (e *entry) absent(f Facts) bool {
	return e.kind.Executor == api.ByAgent && f.Hosts[e.action.Spec.Host].Silent
}

// held says that something else than actions is against it.
func (e *entry) held(f *Facts) bool { return e.kind.Asks && f.Against[e.action.UID] != "" }

// blocked says which action is in the way. Of several the nearest in the queue is named: in a long queue each word then
// changes when one's own predecessor moves, and not with each move of any.
func (e *entry) blocked(older, all []*entry, f *Facts) string {
	for _, o := range slices.Backward(older) {
		if o.status.State == api.ActionPendingSchedule && !o.absent(*f) && !o.held(f) {
			if why := f.conflict(e, o); why != "" {
				return inTheWay(o, "before it in the queue", why)
			}
		}
	}
	for _, o := range all {
		if o.status.State == api.ActionNew || o.status.State == api.ActionRunning {
			if why := f.conflict(e, o); why != "" {
				return inTheWay(o, "in progress", why)
			}
		}
	}
	return ""
}

// inTheWay names an action that another one waits for, and how to end it.
func inTheWay(o *entry, where, why string) string {
	return bounded(fmt.Sprintf("action %s (%s %s), which is %s: %s; cancel that with 'holdfast action cancel %s'",
		o.action.Name, o.kind.Name, o.action.Spec.Target, where, why, o.action.Name), maxText)
}

// conflict says why two actions cannot run side by side; it is empty when they can.
func (f *Facts) conflict(a, b *entry) string {
	if a.kind.Mode == Beside || b.kind.Mode == Beside {
		return ""
	}
	if host := a.action.Spec.Host; host != "" && host == b.action.Spec.Host {
		return fmt.Sprintf("one action at a time on host %s", host)
	}
	both, overlap := f.overlap(a.action, b.action)
	if !overlap {
		return ""
	}
	switch {
	case b.kind.Mode == Exclusive:
		return fmt.Sprintf("no other action runs beside %s", b.kind.Name)
	case a.kind.Mode == Exclusive:
		return fmt.Sprintf("%s runs alone", a.kind.Name)
	case a.kind.Mode == Rolling && b.kind.Mode == Rolling:
		return "only one action that reduces the redundancy" + both + " runs at a time"
	}
	return ""
}

// overlap says whether two actions concern one thing, and which, with " of" before it; nothing where that is not known.
func (f *Facts) overlap(a, b *api.Action) (string, bool) {
	as, knownA := f.concern(a)
	bs, knownB := f.concern(b)
	if !knownA || !knownB {
		return "", true
	}
	for _, what := range as {
		if slices.Contains(bs, what) {
			return " of " + what, true
		}
	}
	return "", false
}

// concern is what an action concerns: its cluster, or what its host has a part in. It is not known of one that names neither.
func (f *Facts) concern(a *api.Action) ([]string, bool) {
	if a.Spec.Cluster != "" {
		return []string{ClusterConcern(a.Namespace, a.Spec.Cluster)}, true
	}
	what, known := f.Concern[a.Spec.Host]
	return what, known
}

// ClusterConcern is how a cluster is called where actions concern it.
func ClusterConcern(namespace, name string) string { return "cluster " + namespace + "/" + name }
