package engine

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Told is what the events of a cluster have told so far, by object: just so much of a View that the next leader can find what
// differs from it. A leader records it together with the events that it tells (Store.Emit), so that each difference is told
// exactly once, whoever leads.
type Told map[string]string

// The keys of a Told that are no object of a View.
const (
	toldCluster = "cluster"
	toldStatus  = "status"
	toldLeader  = "leader"
	toldOutcome = "outcome"
)

// toldCheck begins the keys of health checks.
const toldCheck = "check/"

// toldOutside begins the keys of what was changed in the storage system itself.
const toldOutside = "outside/"

// Apply makes changes; a nil value removes its key.
func (t Told) Apply(changes map[string]*string) {
	for key, value := range changes {
		if value == nil {
			delete(t, key)
		} else {
			t[key] = *value
		}
	}
}

// changes are what t lacks of the present state.
func (t Told) changes(m *memory) map[string]*string {
	changes, seen := map[string]*string{}, make(map[string]bool, len(t))
	m.state(func(key, value string) {
		seen[key] = true
		if was, ok := t[key]; !ok || was != value {
			changes[key] = &value
		}
	})
	for key := range t {
		if !seen[key] {
			changes[key] = nil
		}
	}
	return changes
}

// entries counts what state lists of the view. It tells at no cost that a host is used for the first time, or reported its
// devices for the first time: that is no event, and must be recorded all the same, or what becomes of them could be missed.
func (m *memory) entries() int {
	n := len(m.view.Nodes) + len(m.view.Daemons) + len(m.view.Resources)
	used := m.view.UsedHosts()
	for i := range m.view.Actions {
		if concernsUsed(&m.view.Actions[i], used) {
			n++
		}
	}
	for i := range m.view.Hosts {
		if used[m.view.Hosts[i].Name] {
			n += 1 + len(m.view.Hosts[i].Status.Devices)
		}
	}
	return n
}

// state lists what is to be recorded.
func (m *memory) state(add func(key, value string)) {
	add(toldLeader, m.leader)
	if m.outcome != "" {
		add(toldOutcome, string(m.outcome))
	}
	v := m.view
	add(toldCluster, pack(strconv.FormatInt(v.Cluster.Generation, 10), flag(v.Cluster.DeletionTimestamp != nil),
		string(v.Cluster.Spec.Mode)))
	if v.Status != nil {
		add(toldStatus, pack(string(v.Status.Status.Status), v.Status.Status.Health))
		for _, c := range v.Status.Status.Checks {
			add(toldCheck+c.Code, c.Severity)
		}
		for _, x := range v.Status.Status.ChangedOutside {
			add(toldOutside+x.Object, "")
		}
	}
	for i := range v.Nodes {
		n := &v.Nodes[i]
		c := accepted(n)
		add("node/"+n.Name, pack(strconv.FormatInt(n.Generation, 10), n.Status.Host, string(c.Status), c.Message))
	}
	for _, x := range v.Resources {
		c := resourceAccepted(x)
		add("resource/"+x.ResourceKind()+"/"+x.GetName(), pack(strconv.FormatInt(x.GetGeneration(), 10), flag(x.GetDeletionTimestamp() != nil),
			string(x.Common().State), string(c.Status), c.Message))
	}
	for i := range v.Daemons {
		d := &v.Daemons[i]
		add("daemon/"+d.Name, pack(string(d.UID), strconv.FormatInt(d.Generation, 10), flag(d.DeletionTimestamp != nil),
			string(d.Spec.State), strconv.FormatInt(int64(d.Status.Restarts), 10), string(d.Status.State), flag(d.Status.LastExit != nil), d.Spec.Type, d.Spec.Host))
	}
	m.hostState(add)
	m.actionState(add)
	m.flaps.state(add)
}

func (m *memory) actionState(add func(key, value string)) {
	used := m.view.UsedHosts()
	for i := range m.view.Actions {
		if a := &m.view.Actions[i]; concernsUsed(a, used) {
			add("action/"+actionKey(a), pack(string(a.UID), string(a.Status.State)))
		}
	}
}

func (m *memory) hostState(add func(key, value string)) {
	used := m.view.UsedHosts()
	for i := range m.view.Hosts {
		h := &m.view.Hosts[i]
		if !used[h.Name] {
			continue
		}
		add("host/"+h.Name, hostFlags(h))
		for j := range h.Status.Devices {
			d := &h.Status.Devices[j]
			add("device/"+h.Name+"/"+d.ID, pack(string(d.Availability), d.Path))
		}
	}
}

// hostFlags has a third field only where it is needed, as earlier versions read two.
func hostFlags(h *api.Host) string {
	flags := []string{flag(h.Status.BootID != ""), flag(!h.AgentHeard())}
	if _, twins := h.Twins(); twins {
		flags = append(flags, flag(true))
	}
	return pack(flags...)
}

// pack joins fields; unpack takes them apart again. The last may hold anything.
func pack(fields ...string) string { return strings.Join(fields, "\t") }

func unpack(value string, n int) []string {
	fields := strings.SplitN(value, "\t", n)
	return append(fields, make([]string, n-len(fields))...)
}

func flag(b bool) string { return strconv.Itoa(map[bool]int{true: 1}[b]) }

// view makes the View that was told, as far as Diff looks at it.
func (t Told) view(cluster *api.StorageCluster) *View {
	v := &View{}
	hosts := map[string]*api.Host{}
	var checks []api.HealthCheck
	var outside []api.OutsideChange
	for _, key := range t.keys() {
		kind, name, _ := strings.Cut(key, "/")
		switch kind {
		case toldCluster:
			f := unpack(t[key], 3)
			v.Cluster = &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{
				Namespace: cluster.Namespace, Name: cluster.Name, Generation: number(f[0]), DeletionTimestamp: deleted(f[1]),
			}, Spec: api.StorageClusterSpec{Mode: api.ClusterMode(f[2])}}
		case toldStatus:
			f := unpack(t[key], 2)
			v.Status = &api.StorageStatus{Status: api.StorageStatusStatus{Status: api.StorageState(f[0]), Health: f[1]}}
		case "check":
			checks = append(checks, api.HealthCheck{Code: name, Severity: t[key]})
		case "outside":
			outside = append(outside, api.OutsideChange{Object: name})
		case "node":
			v.Nodes = append(v.Nodes, toldNode(name, t[key]))
		case "action":
			v.Actions = append(v.Actions, toldAction(name, t[key]))
		case "daemon":
			v.Daemons = append(v.Daemons, toldDaemon(name, t[key]))
		case "resource":
			if r := toldResource(name, t[key]); r != nil {
				v.Resources = append(v.Resources, r)
			}
		case "host":
			hosts[name] = toldHost(name, t[key])
		}
	}
	if v.Status != nil {
		v.Status.Status.Checks, v.Status.Status.ChangedOutside = checks, outside
	}
	t.devices(hosts)
	for _, h := range hosts {
		v.Hosts = append(v.Hosts, *h)
	}
	slices.SortFunc(v.Hosts, func(a, b api.Host) int { return strings.Compare(a.Name, b.Name) })
	SortResources(v.Resources)
	return v
}

// keys are sorted so that objects of one kind come by their names.
func (t Told) keys() []string {
	keys := make([]string, 0, len(t))
	for key := range t {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (t Told) devices(hosts map[string]*api.Host) {
	for _, key := range t.keys() {
		name, ok := strings.CutPrefix(key, "device/")
		host, id, _ := strings.Cut(name, "/")
		if h := hosts[host]; ok && h != nil {
			f := unpack(t[key], 2)
			h.Status.Devices = append(h.Status.Devices, api.Device{ID: id, Availability: api.Availability(f[0]), Path: f[1]})
		}
	}
}

func toldNode(name, value string) api.StorageNode {
	f := unpack(value, 4)
	n := api.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: number(f[0])}}
	n.Status.Host = f[1]
	if f[2] != "" {
		n.Status.Conditions = []metav1.Condition{{Type: api.NodeAccepted, Status: metav1.ConditionStatus(f[2]), Message: f[3]}}
	}
	return n
}

func toldAction(key, value string) api.Action {
	f := unpack(value, 2)
	namespace, name, _ := strings.Cut(key, "/")
	return api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(f[0])},
		Status:     api.ActionStatus{State: api.ActionState(f[1])},
	}
}

// toldResource is nil for a kind that this build does not know.
func toldResource(key, value string) api.Resource {
	f := unpack(value, 5)
	kind, name, _ := strings.Cut(key, "/")
	r := api.NewResource(kind)
	if r == nil {
		return nil
	}
	r.SetName(name)
	r.SetGeneration(number(f[0]))
	r.SetDeletionTimestamp(deleted(f[1]))
	r.Common().State = api.ResourceState(f[2])
	if f[3] != "" {
		r.Common().Conditions = []metav1.Condition{{Type: api.ResourceAccepted, Status: metav1.ConditionStatus(f[3]), Message: f[4]}}
	}
	return r
}

func toldDaemon(name, value string) api.Daemon {
	f := unpack(value, 9)
	d := api.Daemon{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(f[0]), Generation: number(f[1]), DeletionTimestamp: deleted(f[2]),
		},
		Spec:   api.DaemonSpec{State: api.WantedState(f[3]), Type: f[7], Host: f[8]},
		Status: api.DaemonStatus{Restarts: int32(number(f[4])), State: api.DaemonState(f[5])},
	}
	if f[6] == "1" {
		d.Status.LastExit = &api.DaemonExit{}
	}
	return d
}

func toldHost(name, value string) *api.Host {
	f := unpack(value, 3)
	h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if f[0] == "1" {
		h.Status.BootID = "known"
	}
	if f[1] == "1" {
		h.Status.Conditions = append(h.Status.Conditions, metav1.Condition{Type: api.HostAgentConnected, Status: metav1.ConditionFalse})
	}
	if f[2] == "1" {
		h.Status.Conditions = append(h.Status.Conditions, metav1.Condition{Type: api.HostSingleMachine, Status: metav1.ConditionFalse})
	}
	return h
}

// number reads what state wrote; nothing else comes here, and zero does no harm.
func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

func deleted(s string) *metav1.Time {
	if s != "1" {
		return nil
	}
	return &metav1.Time{Time: time.Unix(0, 0)}
}

// before returns the view to compare with: that of this leader's last run, or, in its first one, what was told until now.
// Where nothing was recorded, only a cluster that nobody ever looked at is new as a whole.
func (r *run) before(ctx context.Context) (*View, error) {
	if r.memory.view != nil {
		return r.memory.view, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	told, err := r.Store.Told(ctx, r.event.Cluster)
	if err != nil {
		return nil, err
	}
	r.memory.told, r.memory.leader, r.memory.outcome = told, r.Leader, api.OrchestrationOutcome(told[toldOutcome])
	r.memory.flaps = told.flaps(r.started)
	if told[toldCluster] != "" {
		return told.view(r.view.Cluster), nil
	}
	if last := r.view.Cluster.Status.Report; last != nil {
		r.memory.outcome = last.Outcome
	}
	if r.view.Cluster.Status.ObservedGeneration <= 0 {
		return &View{}, nil
	}
	return r.view, nil
}

// leaderEvents tells that another server leads than the one that recorded last.
func (m *memory) leaderEvents(now time.Time) []Event {
	was := m.told[toldLeader]
	if was == "" || was == m.leader {
		return nil
	}
	return []Event{{
		Code: LeaderChanged, Object: "leader/" + m.leader, Message: "server " + m.leader + " leads, " + was + " led before", Time: now,
	}}
}
