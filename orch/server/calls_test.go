package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/orch/apply"
)

const (
	plan5    = `{"spec":[{"service_type":"mon","placement":{"count":5}}]}`
	mons5    = `{"specs":[{"service_type":"mon","placement":{"count":5}}]}`
	mons3    = `{"specs":[{"service_type":"mon","placement":{"count":3}}]}`
	mgrs     = `{"specs":[{"service_type":"mgr","placement":{"count":3}}]}`
	again    = -11
	noPlease = -22
)

// TestCalls_id: a call that is sent twice makes one Action. An id that another call has, or another
// cluster, is no success.
func TestCalls_id(t *testing.T) {
	x := newHome(t)
	first, second := x.call("apply", "aaaaaaaaaaaa1", mons5), x.call("apply", "aaaaaaaaaaaa1", mons5)
	if first.Error != "" || string(first.Result) != string(second.Result) {
		t.Errorf("%+v, %+v", first, second)
	}
	if n := len(x.actions()); n != 1 {
		t.Errorf("%d Actions", n)
	}
	if r := x.call("apply", "aaaaaaaaaaaa2", mgrs); r.Errno != noPlease { // the name of the Action is the same
		t.Errorf("%+v %s", r, r.Result)
	}
	x.create(x.cluster("other"))
	if r := x.callOf("other", "apply", "aaaaaaaaaaaa1", mons5); r.Errno != noPlease {
		t.Errorf("%+v %s", r, r.Result)
	}
	if n := len(x.actions()); n != 1 {
		t.Errorf("%d Actions", n)
	}
}

// TestCalls_bad: each is refused in one sentence, and nothing is made.
func TestCalls_bad(t *testing.T) {
	x := newHome(t)
	specs := func(all ...string) string { return `{"specs":[` + strings.Join(all, ",") + `]}` }
	osd := func(devices string) string {
		const head = `{"service_type":"osd","service_id":"x","placement":{"host_pattern":"*"},"spec":{`
		return specs(head + devices + `}}`)
	}
	many := make([]string, 500)
	for i := range many {
		many[i] = fmt.Sprintf(`{"service_type":"mds","service_id":"fs%d"}`, i)
	}
	for name, args := range map[string]string{
		"garbage":          "\x00\x01{",
		"no list":          `{"specs":7}`,
		"no object":        specs(`7`),
		"null":             specs(`null`),
		"cut off":          mons5[:20],
		"names":            specs(`{"service_type":"mds","service_id":"../Ab c"}`),
		"long name":        specs(`{"service_type":"mds","service_id":"` + strings.Repeat("a", 300) + `"}`),
		"number as name":   specs(`{"service_type":"mds","service_id":7}`),
		"label of nothing": specs(`{"service_type":"mgr","placement":{"label":"none"}}`),
		"label":            specs(`{"service_type":"mgr","placement":{"label":"a b=c d"}}`),
		"no host":          specs(`{"service_type":"host","hostname":"nobody"}`),
		"host label":       specs(`{"service_type":"host","hostname":"` + x.hosts[0] + `","labels":["a b"]}`),
		"twice":            specs(`{"service_type":"mgr"}`, `{"service_type":"mgr"}`),
		"no size":          osd(`"data_devices":{"size":"much"}`),
		"nothing":          osd(`"data_devices":{}`),
		"null devices":     osd(`"data_devices":null`),
		"two lines":        specs(`{"service_type":"mon","config":{"mon_lease":"7\n[osd]\nx = y"}}`),
		"a program":        specs(`{"service_type":"mon","config":{"mon_x_hook":"/bin/true"}}`),
		"500 documents":    specs(many...),
		"too large":        specs(`{"service_type":"mgr","x":"` + strings.Repeat("x", 2<<20) + `"}`),
		"deep":             specs(strings.Repeat(`{"a":`, 20000)),
	} {
		if r := x.call("apply", "", args); r.Errno != noPlease && r.Errno != -1 || strings.Contains(r.Error, "\n") {
			t.Errorf("%s: %.300s %d %s", name, r.Error, r.Errno, r.Result)
		}
	}
	if r := x.call("remove_osds", "", `{"osd_ids":[]}`); r.Errno != noPlease {
		t.Errorf("%+v", r)
	}
	if all := x.actions(); len(all) > 0 {
		t.Errorf("%+v", all[0].Spec)
	}
}

// TestCalls_nothing: calls that change nothing make nothing.
func TestCalls_nothing(t *testing.T) {
	x := newHome(t)
	host := `{"service_type":"host","hostname":"` + x.hosts[0] + `","labels":["gw"]}`
	preview := `{"service_type":"mon","placement":{"count":5},"preview_only":%s}`
	for name, args := range map[string]string{
		"empty":           `{"specs":[]}`,
		"no list":         `{}`,
		"no arguments":    ``,
		"as it is":        mons3,
		"host with a try": `{"specs":[` + host + `,` + fmt.Sprintf(preview, "true") + `]}`,
		"try by a text":   `{"specs":[` + fmt.Sprintf(preview, `"true"`) + `]}`,
		"try by a number": `{"specs":[` + fmt.Sprintf(preview, `1`) + `]}`,
		"try, odd spec":   `{"specs":[{"service_type":"mon","placement":{"count":5},"spec":[],"preview_only":true}]}`,
	} {
		var words []string
		r := x.call("apply", "", args)
		if err := json.Unmarshal(r.Result, &words); err != nil || words == nil || r.Error != "" {
			t.Errorf("%s: %+v %s", name, r, r.Result)
		}
	}
	if all := x.actions(); len(all) > 0 {
		t.Errorf("%+v", all[0].Spec)
	}
}

// TestCalls_many: what one call may have is answered in time.
func TestCalls_many(t *testing.T) {
	x := newHome(t)
	var all []string
	for i := range 100 {
		all = append(all, fmt.Sprintf(`{"service_type":"mds","service_id":"fs%d"}`, i))
	}
	if r := x.call("apply", "", `{"specs":[`+strings.Join(all, ",")+`]}`); r.Error != "" {
		t.Errorf("%+v", r)
	}
	if n := len(x.actions()); n != 1 {
		t.Errorf("%d Actions", n)
	}
}

// TestCalls_hang: a storage system that does not answer holds up one call alone, and no longer than
// the mgr waits. What is declared meanwhile counts: its Action tells of what cannot be done.
func TestCalls_hang(t *testing.T) {
	x := newHome(t)
	x.asked = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	slow := map[string]string{
		"host_ok_to_stop": `{"hostname":"` + x.hosts[0] + `"}`, "remove_osds_status": `{}`, "plan": plan5,
	}
	var calls sync.WaitGroup
	for method, args := range slow {
		calls.Go(func() {
			if r := x.call(method, "", args); r.Errno != again {
				t.Errorf("%s: %+v %s", method, r, r.Result)
			}
		})
	}
	if r := x.call("add_host_label", "", `{"host":"`+x.hosts[0]+`","label":"gw"}`); r.Error != "" {
		t.Errorf("%+v", r)
	}
	if r := x.call("apply", "", mons5); r.Error != "" || len(x.actions()) != 1 {
		t.Errorf("%+v, %d Actions", r, len(x.actions()))
	}
	calls.Wait()
	x.asked = func(context.Context) error { panic("a fault") }
	if r := x.call("apply", "", mons5); r.Errno != again {
		t.Errorf("%+v", r)
	}
	x.asked = func(context.Context) error { return errors.New("this server leads no more") }
	if r := x.call("apply", "", mons5); r.Errno != again {
		t.Errorf("%+v", r)
	}
	if n := len(x.actions()); n != 1 {
		t.Errorf("%d Actions", n)
	}
}

// TestCalls_states: a cluster that is being deleted takes no calls, one that is paused notes them, and
// one with approval has an administrator asked.
func TestCalls_states(t *testing.T) {
	x := newHome(t)
	c := x.cluster("ceph")
	set := func(text string) {
		patch := client.RawPatch("application/merge-patch+json", []byte(text))
		if err := x.admin.Patch(t.Context(), c, patch); err != nil {
			t.Fatal(err)
		}
	}
	set(`{"spec":{"mode":"Paused","approval":"Required"},"metadata":{"finalizers":["holdfast.io/test"]}}`)
	if r := x.call("apply", "", mons5); r.Error != "" {
		t.Errorf("%+v", r)
	}
	all := x.actions()
	if len(all) != 1 || all[0].Spec.Approval != api.ApprovalRequired {
		t.Errorf("%+v", all)
	}
	if err := x.admin.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"apply", "plan", "pause", "drain_host", "remove_osds"} {
		if r := x.call(method, "", `{}`); r.Errno != noPlease {
			t.Errorf("%s: %+v %s", method, r, r.Result)
		}
	}
	set(`{"metadata":{"finalizers":[]}}`)
}

// carryOut writes what an Action of the cluster declares, as the leader does.
func (x *home) carryOut(a api.Action) {
	x.Helper()
	h := apply.Handler{Client: x.Clients.Of}
	if p, err := h.Step(x.Context(), &a, apply.StepPersist); err != nil || !p.Done {
		x.Fatalf("%+v, %v", p, err)
	}
	a.Status.State = api.ActionDone
	if err := x.admin.Status().Update(x.Context(), &a); err != nil {
		x.Fatal(err)
	}
}

// TestCalls_numbers: when Ceph gives the number of an OSD that left to another one, and that leaves,
// the disk of the first stays out. 'ceph orch daemon add osd' takes it back.
func TestCalls_numbers(t *testing.T) {
	x := newHome(t)
	done := map[string]bool{}
	carryOut := func() {
		for _, a := range x.actions() {
			if !done[a.Name] {
				x.carryOut(a)
				done[a.Name] = true
			}
		}
	}
	for _, device := range []string{"d1", "d2"} {
		d := x.osd("0", x.hosts[0], device)
		x.create(d)
		if r := x.call("remove_osds", "", `{"osd_ids":["0"]}`); r.Error != "" {
			t.Fatalf("%+v", r)
		}
		carryOut()
		if err := x.admin.Delete(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	out := func() []string {
		n := &api.StorageNode{}
		if err := x.admin.Get(t.Context(), client.ObjectKey{Namespace: x.ns, Name: x.hosts[0]}, n); err != nil {
			t.Fatal(err)
		}
		return n.Spec.Exclude
	}
	if have := out(); len(have) != 2 {
		t.Fatalf("excluded: %v", have)
	}
	add := `{"drive_group":{"placement":{"host_pattern":"` + x.hosts[0] + `"},"data_devices":{"paths":["/dev/d1"]}}}`
	if r := x.call("create_osds", "", add); r.Error != "" {
		t.Fatalf("%+v", r)
	}
	carryOut()
	if have := out(); len(have) != 1 || have[0] != "d2" {
		t.Errorf("excluded: %v", have)
	}
}

// TestCalls_foreign: what is another cluster's is out of reach.
func TestCalls_foreign(t *testing.T) {
	x := newHome(t)
	d := x.osd("7", x.hosts[1], "d3")
	d.Namespace, d.Spec.Cluster = "default", "other-"+x.ns
	x.create(d)
	defer func() { _ = x.admin.Delete(context.Background(), d) }()
	for method, args := range map[string]string{
		"drain_host":             `{"hostname":"` + x.hosts[1] + `"}`,
		"enter_host_maintenance": `{"hostname":"` + x.hosts[1] + `"}`,
		"add_host_label":         `{"host":"` + x.hosts[1] + `","label":"gw"}`,
		"rescan_host":            `{"host":"` + x.hosts[1] + `"}`,
		"zap_device":             `{"host":"` + x.hosts[1] + `","path":"/dev/d3"}`,
	} {
		if r := x.call(method, "", args); r.Errno != -1 {
			t.Errorf("%s: %+v %s", method, r, r.Result)
		}
	}
	if r := x.callOf("none", "drain_host", "", `{}`); r.Error == "" {
		t.Errorf("%+v", r)
	}
}

// TestCalls_conflict: a list of hosts that somebody else applied is replaced as a whole, or not at all: a
// call that says "scheduled" never leaves the other's hosts beside its own.
func TestCalls_conflict(t *testing.T) {
	x := newHome(t)
	fs := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": api.GroupVersion.String(), "kind": "Filesystem",
		"metadata": map[string]any{"namespace": x.ns, "name": "home"},
		"spec":     map[string]any{"cluster": "ceph", "placement": map[string]any{"hosts": []any{x.hosts[0]}}},
	}}
	err := x.admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(fs), client.FieldOwner("kim"))
	if err != nil {
		t.Fatal(err)
	}
	mds := `{"specs":[{"service_type":"mds","service_id":"home","placement":{"hosts":["` + x.hosts[1] + `"]}}]}`
	set := func(conflicts api.CephOrchConflicts) {
		text := fmt.Sprintf(`{"spec":{"ceph":{"orch":{"conflicts":%q}}}}`, conflicts)
		patch := client.RawPatch("application/merge-patch+json", []byte(text))
		if err := x.admin.Patch(t.Context(), x.cluster("ceph"), patch); err != nil {
			t.Fatal(err)
		}
	}
	set(api.CephOrchRefuse)
	if r := x.call("apply", "", mds); !strings.Contains(r.Error, "kim") || r.Errno >= 0 {
		t.Errorf("%+v", r)
	}
	if n := len(x.actions()); n > 0 {
		t.Fatalf("%d Actions", n)
	}
	set(api.CephOrchTake)
	if r := x.call("apply", "", mds); r.Error != "" {
		t.Fatalf("%+v", r)
	}
	x.carryOut(x.actions()[0])
	have := &api.Filesystem{}
	if err := x.admin.Get(t.Context(), client.ObjectKeyFromObject(fs), have); err != nil {
		t.Fatal(err)
	}
	if hosts := have.Spec.Placement.Hosts; len(hosts) != 1 || hosts[0] != x.hosts[1] {
		t.Errorf("placement has %v", hosts)
	}
}
