package engine

import (
	"cmp"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/api/reasons"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/kstatus"
)

// standingText is what Ready, Reconciling and Stalled say together; each has to have the generation and, unless it is ready, a message.
func standingText(t *testing.T, conditions []metav1.Condition, generation int64) string {
	t.Helper()
	is := ""
	for _, kind := range []string{api.ConditionReady, api.ConditionReconciling, api.ConditionStalled} {
		c := meta.FindStatusCondition(conditions, kind)
		if c == nil {
			continue
		}
		if c.ObservedGeneration != generation || c.Message == "" && !meta.IsStatusConditionTrue(conditions, api.ConditionReady) || c.LastTransitionTime.Nanosecond() != 0 {
			t.Errorf("%+v", *c)
		}
		if reasons.All[api.Reason(c.Reason)] == "" {
			t.Errorf("reason %q is not explained", c.Reason)
		}
		is += kind + "=" + string(c.Status) + " " + c.Reason + " "
	}
	return is
}

// A resource of any kind says in Kubernetes' words how it is, by what its status and the plan's decisions say.
func TestStanding_resources(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 999, time.UTC)
	refuse := func(reason api.Reason) []api.Decision {
		return []api.Decision{{Object: "pool/other", Verdict: api.VerdictRefuse, Reason: api.ReasonInUse}, {Object: "pool/p", Verdict: api.VerdictRefuse, Reason: reason}}
	}
	wait := []api.Decision{{Object: "pool/p", Verdict: api.VerdictWait, Reason: api.ReasonMovingData}}
	for name, tt := range map[string]struct {
		state     api.ResourceState
		problems  []string
		lost      bool
		deleted   bool
		decisions []api.Decision
		want      string
	}{
		"online":                 {state: api.ResourceOnline, want: "Ready=True Ready "},
		"new":                    {want: "Ready=False NotReady Reconciling=True NotReady "},
		"degraded":               {state: api.ResourceDegraded, decisions: wait, want: "Ready=False MovingData Reconciling=True MovingData "},
		"refused":                {problems: []string{"it needs nine hosts"}, decisions: refuse(api.ReasonInsufficientNodes), want: "Ready=False InsufficientNodes Stalled=True InsufficientNodes "},
		"refused, and it serves": {state: api.ResourceOnline, problems: []string{"no"}, decisions: refuse(api.ReasonInvalidSpec), want: "Ready=False InvalidSpec Stalled=True InvalidSpec "},
		"lost":                   {state: api.ResourceOffline, lost: true, want: "Ready=False Lost Stalled=True Lost "},
		"deleted":                {state: api.ResourceOnline, deleted: true, want: "Ready=False Deleting Reconciling=True Deleting "},
	} {
		t.Run(name, func(t *testing.T) {
			was := &api.Pool{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 7}}
			if tt.deleted {
				was.DeletionTimestamp = &metav1.Time{Time: now}
			}
			next := was.DeepCopy()
			next.Status.State = tt.state
			Accept(next, tt.problems, now)
			if tt.lost {
				next.Status.Conditions = append(next.Status.Conditions, metav1.Condition{Type: api.ResourcePresent, Status: metav1.ConditionFalse, Message: "it is gone"})
			}
			p := &Plan{Decisions: tt.decisions}
			p.PutResource(was, next)
			v := &View{Resources: []api.Resource{was}}
			putStandings(v, p, now)
			if len(p.Resources) != 1 {
				t.Fatalf("%d changes", len(p.Resources))
			}
			if got := standingText(t, p.Resources[0].Resource.Common().Conditions, 7); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			// What did not change is not written again, and no driver has to speak of it.
			v.Resources[0] = p.Resources[0].Resource
			again := &Plan{Decisions: tt.decisions}
			if putStandings(v, again, now.Add(time.Hour)); len(again.Resources) > 0 {
				t.Errorf("written again: %+v", again.Resources[0].Resource.Common().Conditions)
			}
		})
	}
}

// TestStanding_kstatus: tools that know no kind see of a resource of each kind how it is.
func TestStanding_kstatus(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, list := range api.ResourceLists() {
		for state, change := range map[kstatus.State]func(r api.Resource, problems *[]string){
			kstatus.Ready:       func(r api.Resource, _ *[]string) { r.Common().State = api.ResourceOnline },
			kstatus.Reconciling: func(r api.Resource, _ *[]string) { r.Common().State = api.ResourceCreating },
			kstatus.Stalled:     func(_ api.Resource, problems *[]string) { *problems = []string{"it cannot be"} },
			kstatus.Deleted: func(r api.Resource, _ *[]string) {
				r.Common().State = api.ResourceDeleting
				r.SetDeletionTimestamp(&metav1.Time{Time: now})
			},
			kstatus.Behind: func(r api.Resource, _ *[]string) { r.Common().State = api.ResourceOnline },
		} {
			was := list.NewResource()
			was.SetName("r")
			was.SetGeneration(7)
			was.Common().ObservedGeneration = -1 // as the API has a new one
			next, problems := CopyResource(was), []string(nil)
			change(next, &problems)
			was.SetDeletionTimestamp(next.GetDeletionTimestamp())
			Accept(next, problems, now)
			p := &Plan{}
			p.PutResource(was, next)
			putStandings(&View{Resources: []api.Resource{was}}, p, now)
			got := p.Resources[0].Resource
			if state == kstatus.Behind {
				got.SetGeneration(8)
			}
			kstatus.Check(t, state, got)
		}
	}
}

// A resource that nobody has looked at, as the API has it, says nothing of how it is.
func TestStanding_new(t *testing.T) {
	pool := &api.Pool{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	node := api.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	pool.Status.ObservedGeneration, node.Status.ObservedGeneration = -1, -1
	p := &Plan{}
	putStandings(&View{Resources: []api.Resource{pool}, Nodes: []api.StorageNode{node}}, p, time.Now())
	if len(p.Resources)+len(p.Nodes) > 0 {
		t.Errorf("%+v, %+v", p.Resources, p.Nodes)
	}
}

// A resource that is written for its conditions alone is not adopted by that.
func TestStanding_unadopted(t *testing.T) {
	r := &api.Pool{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 1}}
	r.Status.ObservedGeneration, r.Status.State = 1, api.ResourceOnline
	p := &Plan{}
	putStandings(&View{Resources: []api.Resource{r}}, p, time.Now())
	if len(p.Resources) != 1 || !p.Resources[0].Unadopted || standingText(t, r.Status.Conditions, 1) != "" {
		t.Errorf("%+v, and the view's %+v", p.Resources, r.Status.Conditions)
	}
}

func TestStanding_nodes(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tt := range map[string]struct {
		resolved ResolvedNode
		want     string
	}{
		"accepted": {ResolvedNode{Host: &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "h"}}}, "Ready=True Ready "},
		"refused":  {ResolvedNode{Problems: []string{"two hosts match"}}, "Ready=False NodeUnusable Stalled=True NodeUnusable "},
		"waits":    {ResolvedNode{Waits: []string{"no host matches"}}, "Ready=False NotReady Reconciling=True NotReady "},
	} {
		n := api.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "n", Generation: 3}}
		p := &Plan{}
		tt.resolved.Node = &n
		p.TellNode(tt.resolved, "n", nil, nil)
		p.PutNode(tt.resolved, nil, now)
		putStandings(&View{Nodes: []api.StorageNode{n}}, p, now)
		if got := standingText(t, p.Nodes[0].Status.Conditions, 3); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
		n.Status = p.Nodes[0].Status
		again := &Plan{}
		p.Decisions, again.Decisions = nil, p.Decisions
		if putStandings(&View{Nodes: []api.StorageNode{n}}, again, now.Add(time.Hour)); len(again.Nodes) > 0 {
			t.Errorf("%s: written again: %+v", name, again.Nodes[0].Status.Conditions)
		}
	}
}

func TestStanding_clusters(t *testing.T) {
	for name, tt := range map[string]struct {
		ready metav1.Condition
		want  string
	}{
		"ready":   {metav1.Condition{Status: metav1.ConditionTrue, Reason: ReasonReady}, "Ready=True"},
		"waits":   {metav1.Condition{Status: metav1.ConditionFalse, Reason: ReasonWaiting}, "Ready=False Reconciling=True"},
		"refused": {metav1.Condition{Status: metav1.ConditionFalse, Reason: ReasonRefused}, "Ready=False Stalled=True"},
		"failed":  {metav1.Condition{Status: metav1.ConditionUnknown, Reason: ReasonFailed}, "Ready=Unknown Reconciling=True"},
		"paused":  {metav1.Condition{Status: metav1.ConditionUnknown, Reason: ReasonPaused}, "Ready=Unknown"},
	} {
		s := &api.StorageClusterStatus{ObservedGeneration: 2}
		tt.ready.Type, tt.ready.Message = api.ClusterReady, "it is so"
		for _, c := range []metav1.Condition{{Type: api.ClusterReady, Status: metav1.ConditionFalse, Reason: ReasonRefused, Message: "before"}, tt.ready} {
			meta.SetStatusCondition(&s.Conditions, c)
			standCluster(s, time.Now())
		}
		state := map[string]kstatus.State{"ready": kstatus.Ready, "refused": kstatus.Stalled}[name]
		c := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Generation: 2}, Status: *s}
		kstatus.Check(t, cmp.Or(state, kstatus.Reconciling), c)
		got := ""
		for _, kind := range []string{api.ConditionReady, api.ConditionReconciling, api.ConditionStalled} {
			if c := meta.FindStatusCondition(s.Conditions, kind); c != nil {
				got += " " + kind + "=" + string(c.Status)
			}
		}
		if got != " "+tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}
