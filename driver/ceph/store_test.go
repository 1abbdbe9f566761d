package ceph

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/rgw"
)

func storeOf(name string, change ...func(*api.ObjectStore)) *api.ObjectStore {
	s := &api.ObjectStore{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1, UID: types.UID("uid-" + name)}}
	s.Spec = api.ObjectStoreSpec{Cluster: "c", DeletionPolicy: api.DeletionRetain, Gateways: api.ObjectStoreGateways{Port: 7480}}
	for _, f := range change {
		f(s)
	}
	return s
}

func userOf(name, store string) *api.ObjectStoreUser {
	u := &api.ObjectStoreUser{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1, UID: types.UID("uid-" + name)}}
	u.Spec = api.ObjectStoreUserSpec{Cluster: "c", Store: store, DeletionPolicy: api.DeletionRetain}
	return u
}

// s3User is a user as a store has it.
type s3User struct {
	access, secret string
	params         map[string]string
	buckets        []string
}

// gatewayStarts has a gateway serve by what its Daemon says at this moment, and its agent say so.
func gatewayStarts(d *api.Daemon) {
	if d.Spec.Type != rgw.Type {
		return
	}
	d.Status.ObservedGeneration = d.Generation
	changeReport(d, func(r *rgw.Report) {
		if r.Up = true; d.Status.State != api.DaemonRunning {
			r.Serves = d.Spec.Parameters[rgw.ParamServes]
		}
	})
}

func changeReport(d *api.Daemon, change func(*rgw.Report)) {
	r, err := rgw.Parse(d.Status.Report)
	if r == nil {
		r = &rgw.Report{}
	}
	if r.Done == nil {
		r.Done = map[string]string{}
	}
	change(r)
	text, bad := json.Marshal(r)
	if err = errors.Join(err, bad); err != nil {
		panic(err)
	}
	d.Status.Report = string(text)
}

// askGateway does what the agents of gateways do.
func (w *world) askGateway(d *api.Daemon, cmd engine.Command) error {
	name := cmd.Params[rgw.ParamUser]
	have, access := w.s3[name], rgw.AccessKey(cmd.Params[rgw.ParamOwner])
	foreign := have != nil && have.access != "" && have.access != access
	switch {
	case cmd.Verb == rgw.VerbFindBuckets:
		for name, u := range w.s3 {
			if len(u.buckets) > 0 {
				return fmt.Errorf("it has buckets of %s", name)
			}
		}
	case foreign && cmd.Verb == rgw.VerbUserSet:
		return fmt.Errorf("the store has a user %s already, with a key that was not made here", name)
	case cmd.Verb == rgw.VerbUserSet:
		if w.s3 == nil {
			w.s3 = map[string]*s3User{}
		}
		if have == nil {
			have = &s3User{}
		}
		have.access, have.secret, have.params = access, string(w.secrets[cmd.Secret].data[rgw.SecretSecretKey]), cmd.Params
		w.s3[name] = have
	case have == nil || foreign:
	case len(have.buckets) == 0:
		delete(w.s3, name)
	case cmd.Params[rgw.ParamKeep] == "":
		return errors.New("it has buckets")
	default:
		have.access = ""
	}
	changeReport(d, func(r *rgw.Report) { r.Done[cmd.Object] = cmd.Params[rgw.ParamWord] })
	return nil
}

func storesOn(hosts int, objects ...api.Resource) *fakeWorld {
	f := poolsOn(hosts)
	f.objects = objects
	return f
}

func (w *world) store() *api.ObjectStore { return w.objects[0].(*api.ObjectStore) }

func (w *world) user() *api.ObjectStoreUser { return w.objects[1].(*api.ObjectStoreUser) }

// gateways are the Daemons of gateways as "id@host state".
func (w *world) gateways() string {
	var all []string
	for _, d := range w.daemons {
		if d.Spec.Type == rgw.Type {
			all = append(all, fmt.Sprintf("%s@%s %s", d.Spec.ID, d.Spec.Host, d.Spec.State))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func (f *fakeWorld) drop(o api.Resource) {
	now := metav1.NewTime(f.now)
	o.SetDeletionTimestamp(&now)
	o.SetGeneration(o.GetGeneration() + 1)
}

// A store gets its two pools, its gateways with keys that reach no others, and users with keys of their own; nothing is written when all is well.
func TestStores(t *testing.T) {
	f := storesOn(3, storeOf("s3"), userOf("app", "s3"))
	f.settle(t)
	s := f.store().Status
	if s.State != api.ResourceOnline || s.Gateways != "2/2" || len(s.Endpoints) != 2 || !strings.HasPrefix(s.Endpoints[0], "http://10.0.0.") || len(s.Pools) != 2 {
		t.Fatalf("%+v", s)
	}
	if got := strings.Join(f.ceph.Pools(), "\n"); !strings.Contains(got, "s3.rgw.data: rule holdfast-host, size 3/2") || !strings.Contains(got, "for [rgw]") {
		t.Errorf("pools %s", got)
	}
	if text := string(f.secrets["c-key-client.rgw.s3-a"].data[secretKeyring]); !strings.Contains(text, `caps osd = "allow rwx pool=s3.rgw.meta, allow rwx pool=s3.rgw.data"`) {
		t.Errorf("keyring %s", text)
	}
	u := f.user().Status
	keys := f.secrets[u.Secret].data
	if u.State != api.ResourceOnline || f.s3["app"].access != string(keys["accessKey"]) || f.s3["app"].secret != string(keys["secretKey"]) || len(keys["secretKey"]) < 40 {
		t.Fatalf("%+v, %+v", u, f.s3["app"])
	}
	writes := f.writes
	if f.settle(t); f.writes != writes {
		t.Errorf("%d writes in a cluster that is well", f.writes-writes)
	}
	for _, d := range f.daemons {
		for _, c := range slices.Concat(d.Spec.Command, []string{d.Status.Report}) {
			if strings.Contains(c, string(keys["secretKey"])) {
				t.Errorf("the key of a user stands in %s", c)
			}
		}
	}
}

// Quotas follow when they are set, changed and unset; a Secret that is gone is made anew with another key, which the store gets.
func TestStoreUsers_follow(t *testing.T) {
	f := storesOn(3, storeOf("s3"), userOf("app", "s3"))
	f.settle(t)
	most, buckets := int64(3), int32(2)
	f.user().Spec.Quota = api.ObjectStoreQuota{MaxObjects: &most, MaxBuckets: &buckets}
	f.user().Spec.Capabilities = api.ObjectStoreCaps{"usage": "read", "buckets": "*"}
	f.user().Generation++
	f.settle(t)
	if p := f.s3["app"].params; p[rgw.ParamMaxObjects] != "3" || p[rgw.ParamMaxBuckets] != "2" || p[rgw.ParamCaps] != "buckets=*;usage=read" {
		t.Errorf("%v", p)
	}
	f.user().Spec.Quota, f.user().Generation = api.ObjectStoreQuota{}, f.user().Generation+1
	f.settle(t)
	if p := f.s3["app"].params; p[rgw.ParamMaxObjects] != "" || p[rgw.ParamMaxBuckets] != "1000" {
		t.Errorf("%v", p)
	}
	was := *f.s3["app"]
	delete(f.secrets, f.user().Status.Secret)
	f.settle(t)
	if is := f.s3["app"]; is.access != was.access || is.secret == was.secret || is.secret != string(f.secrets[f.user().Status.Secret].data["secretKey"]) {
		t.Errorf("%+v after %+v", is, was)
	}
}

// A user that was deleted has no keys any more. One with buckets stays with them under Retain and is taken over again; under Wipe it waits.
func TestStoreUsers_deleted(t *testing.T) {
	for policy, check := range map[api.DeletionPolicy]func(*fakeWorld) string{
		api.DeletionRetain: func(f *fakeWorld) string {
			if len(f.objects) != 1 || f.s3["app"].access != "" || len(f.s3["app"].buckets) != 1 {
				return fmt.Sprintf("%v, %+v", f.objects, f.s3["app"])
			}
			f.objects = append(f.objects, userOf("app", "s3"))
			f.user().UID = "another"
			if f.settle(t); f.user().Status.State != api.ResourceOnline || f.s3["app"].access == "" {
				return fmt.Sprintf("not taken over: %+v", f.user().Status)
			}
			return ""
		},
		api.DeletionWipe: func(f *fakeWorld) string {
			if s := f.user().Status; s.State != api.ResourceDeleting || !strings.Contains(s.Message, "it has buckets") || f.s3["app"].access == "" {
				return fmt.Sprintf("%+v", s)
			}
			f.s3["app"].buckets = nil
			if f.settle(t); len(f.objects) != 1 || f.s3["app"] != nil || f.secrets["c-s3-app"].data != nil {
				return fmt.Sprintf("kept: %v", f.objects)
			}
			return ""
		},
	} {
		f := storesOn(3, storeOf("s3"), userOf("app", "s3"))
		f.user().Spec.DeletionPolicy = policy
		f.settle(t)
		f.s3["app"].buckets = []string{"b"}
		f.drop(f.user())
		for range 5 { // a deletion that waits never settles
			f.round(t)
			f.agents()
		}
		if problem := check(f); problem != "" {
			t.Errorf("%s: %s", policy, problem)
		}
	}
}

// A user that somebody else made is refused, and stays when the ObjectStoreUser is deleted.
func TestStoreUsers_taken(t *testing.T) {
	f := storesOn(3, storeOf("s3"), userOf("app", "s3"))
	f.s3 = map[string]*s3User{"app": {access: "FOREIGN"}}
	for range 20 {
		f.round(t)
		f.agents()
	}
	if s := f.user().Status; s.State != api.ResourcePending || !strings.Contains(s.Message, "already") || engine.CopyResource(f.user()).Common().Conditions[0].Reason != engine.ReasonRefused {
		t.Errorf("%+v", s)
	}
	f.drop(f.user())
	if f.settle(t); len(f.objects) != 1 || f.s3["app"].access != "FOREIGN" {
		t.Errorf("%v", f.objects)
	}
}

// A store waits for its users, and under Wipe for its buckets; then gateways, keys and pools go. Under Retain the pools stay.
func TestStores_deleted(t *testing.T) {
	for policy, pools := range map[api.DeletionPolicy]int{api.DeletionRetain: 2, api.DeletionWipe: 0} {
		f := storesOn(3, storeOf("s3"), userOf("app", "s3"))
		f.store().Spec.DeletionPolicy = policy
		f.settle(t)
		f.s3["app"].buckets = []string{"b"}
		f.drop(f.store())
		f.round(t)
		f.round(t)
		if s := f.store().Status; !strings.Contains(s.Message, "deletion waits for the deletion of 1 ObjectStoreUser (app)") || !strings.Contains(f.gateways(), "Running") {
			t.Fatalf("%+v", s)
		}
		f.drop(f.user())
		for range 10 {
			f.round(t)
			f.agents()
		}
		if policy == api.DeletionWipe {
			if s := f.store().Status; !strings.Contains(s.Message, "it has buckets of app") || f.gateways() == "" {
				t.Fatalf("%+v, %s", s, f.gateways())
			}
			f.s3["app"].buckets = nil
		}
		f.settle(t)
		if len(f.objects) != 0 || f.gateways() != "" || len(f.ceph.Pools()) != pools || f.secrets["c-key-client.rgw.s3-a"].data != nil {
			t.Errorf("%s: %v, %q, %v", policy, f.objects, f.gateways(), f.ceph.Pools())
		}
	}
}

// A deletion under Wipe that waits ends when deletionPolicy becomes Retain: the pools stay with what is in them.
func TestStores_keptWhileDeleted(t *testing.T) {
	f := storesOn(3, storeOf("s3"), userOf("app", "s3"))
	f.store().Spec.DeletionPolicy = api.DeletionWipe
	f.settle(t)
	f.s3["app"].buckets = []string{"b"}
	f.drop(f.user())
	f.drop(f.store())
	for range 10 {
		f.round(t)
		f.agents()
	}
	if s := f.store().Status; !strings.Contains(s.Message, "it has buckets of app") {
		t.Fatalf("%+v", s)
	}
	f.store().Spec.DeletionPolicy = api.DeletionRetain
	f.store().Generation++
	f.settle(t)
	if len(f.objects) != 0 || f.gateways() != "" || len(f.ceph.Pools()) != 2 {
		t.Errorf("%v, %q, %v", f.objects, f.gateways(), f.ceph.Pools())
	}
}

// Of a store that is refused for one of its pools nothing is made, nor of a filesystem.
func TestStores_refusedWhole(t *testing.T) {
	wide := &api.PoolErasureCoded{DataChunks: 3, CodingChunks: 1}
	f := storesOn(3)
	f.settle(t)
	f.objects = append(f.objects, storeOf("a", func(s *api.ObjectStore) { s.Spec.Data.ErasureCoded, s.Spec.Data.FailureDomain = wide, "host" }))
	if p := f.settle(t); word(decisions(p, api.VerdictRefuse), "objectstore/a") == "" || len(f.ceph.Pools()) > 0 {
		t.Errorf("%v, pools %v", decisions(p), f.ceph.Pools())
	}
	f = filesystemsOn(3)
	f.settle(t)
	f.filesystems = append(f.filesystems, filesystemOf("home"))
	f.filesystems[0].Spec.DataPools = []api.FilesystemDataPool{{}, {Name: "wide"}}
	f.filesystems[0].Spec.DataPools[1].ErasureCoded, f.filesystems[0].Spec.DataPools[1].FailureDomain = wide, "host"
	if p := f.settle(t); word(decisions(p, api.VerdictRefuse), "filesystem/home") == "" || len(f.ceph.Pools()) > 0 {
		t.Errorf("%v, pools %v", decisions(p), f.ceph.Pools())
	}
}

// Two stores of one port get hosts of their own; where there are none the second is refused, and has gateways with another port.
func TestStores_ports(t *testing.T) {
	f := storesOn(3, storeOf("a"), storeOf("b"))
	f.settle(t)
	if got := f.gateways(); strings.Count(got, "a-")*strings.Count(got, "b-") != 2 {
		t.Errorf("gateways %s", got)
	}
	two := func(s *api.ObjectStore) {
		s.Spec.Metadata.Replicated, s.Spec.Data.Replicated = &api.PoolReplicated{Size: 2}, &api.PoolReplicated{Size: 2}
	}
	f = storesOn(2, storeOf("a", two), storeOf("b", two))
	p := f.settle(t)
	if got := word(decisions(p, api.VerdictRefuse), "objectstore/b"); !strings.Contains(got, "port 7480 is in use") || strings.Contains(f.gateways(), "b-") {
		t.Errorf("refused for %q: %s", got, f.gateways())
	}
	if slices.ContainsFunc(f.ceph.Pools(), func(pool string) bool { return strings.HasPrefix(pool, "b.") }) {
		t.Errorf("pools of a store that was declared at one moment with another: %v", f.ceph.Pools())
	}
	f.objects = append(f.objects, storeOf("late", two))
	if p := f.settle(t); !strings.Contains(word(decisions(p, api.VerdictRefuse), "objectstore/late"), "port 7480 is in use") {
		t.Errorf("%v", decisions(p))
	}
	if slices.ContainsFunc(f.ceph.Pools(), func(pool string) bool { return strings.HasPrefix(pool, "late.") }) {
		t.Errorf("pools of a store that is refused: %v", f.ceph.Pools())
	}
	f.objects = f.objects[:2]
	f.objects[1].(*api.ObjectStore).Spec.Gateways.Port = 7481
	f.objects[1].SetGeneration(2)
	if f.settle(t); f.objects[1].Common().State != api.ResourceOnline {
		t.Errorf("%+v, %s", f.objects[1].Common(), f.gateways())
	}
}

// While it is open which of three hosts the first store takes, a second one that may use two of them waits, and then has what is left.
func TestStores_portsOpen(t *testing.T) {
	two := func(s *api.ObjectStore) { s.Spec.Gateways.Placement.Hosts = []string{"h1", "h2"} }
	f := storesOn(3, storeOf("a"), storeOf("b", two))
	waited := false
	for range 40 {
		p := f.round(t)
		waited = waited || strings.Contains(word(decisions(p, api.VerdictWait), "objectstore/b"), "waiting for ObjectStore a, which has the same port")
		if !waited && slices.ContainsFunc(f.ceph.Pools(), func(pool string) bool { return strings.HasPrefix(pool, "b.") }) {
			t.Fatal("the second has pools before it is known whether it can have gateways")
		}
		f.agents()
	}
	f.settle(t)
	if got := f.gateways(); !waited || !strings.Contains(got, "b-") || f.objects[1].Common().State != api.ResourceOnline && f.objects[1].Common().State != api.ResourceDegraded {
		t.Errorf("waited %v, gateways %s: %+v", waited, got, f.objects[1].Common())
	}
}

// No daemon that serves a resource is there before Ceph has its key.
func TestServices_keysFirst(t *testing.T) {
	f := storesOn(3, storeOf("s3"))
	f.filesystems = append(f.filesystems, filesystemOf("home"))
	f.exports = append(f.exports, exportOf("home", "home"))
	seen := map[string]bool{}
	for range 60 {
		before := map[string]bool{}
		for _, x := range f.secrets {
			entity := x.annotations[AnnotationEntity]
			before[entity] = f.ceph.Knows(entity)
		}
		f.round(t)
		for _, d := range f.daemons {
			if entity := entityFor(d.Spec.Type, d.Spec.ID); stateless(d.Spec.Type) && d.Spec.Type != TypeMgr && !seen[entity] {
				if seen[entity] = true; !before[entity] {
					t.Errorf("%s is made before Ceph has its key", entity)
				}
			}
		}
		f.agents()
	}
	if len(seen) != 5 {
		t.Errorf("made %v", seen)
	}
}

// Gateways that are to serve otherwise are restarted one after the other: one that answered goes on answering meanwhile.
func TestStores_restart(t *testing.T) {
	f := storesOn(3, storeOf("s3"))
	f.settle(t)
	f.store().Spec.Gateways.Port, f.store().Generation = 8000, 2
	stopped := map[string]bool{}
	for range 40 {
		f.round(t)
		n := 0
		for name, d := range f.daemons {
			if d.Spec.Type == rgw.Type && d.Spec.State != api.WantRunning {
				n, stopped[name] = n+1, true
			}
		}
		if n > 1 {
			t.Fatalf("%d gateways are stopped at once: %s", n, f.gateways())
		}
		f.agents()
	}
	f.settle(t)
	if s := f.store().Status; len(stopped) != 2 || s.State != api.ResourceOnline || !strings.HasSuffix(s.Endpoints[0], ":8000") {
		t.Errorf("%v, %+v", stopped, s)
	}
}

// What was said of a process that is gone holds for none: the one in its place is neither taken for one that answers, nor ended for what the other served.
func TestStores_restarted(t *testing.T) {
	f := storesOn(3, storeOf("s3"))
	f.settle(t)
	f.daemons["c-rgw-s3-a"].Status.PID = 7
	f.round(t)
	if s := f.store().Status; s.State != api.ResourceDegraded || s.Gateways != "1/2" || !strings.Contains(s.Message, "is starting") {
		t.Errorf("%+v", s)
	}
	f.daemons["c-rgw-s3-a"].Status.Message = "it runs, and there is no report of its state: no such file"
	f.round(t)
	if s := f.store().Status; !strings.Contains(s.Message, "state unknown: it runs, and there is no report of its state: no such file") {
		t.Errorf("%+v", s)
	}
	f.daemons["c-rgw-s3-a"].Status.Message = ""
	f.store().Spec.Gateways.Port, f.store().Generation = 8000, 2
	f.round(t) // which writes what they are to serve
	for _, d := range f.daemons {
		d.Status.ObservedGeneration = d.Generation
	}
	f.round(t)
	if got := f.gateways(); strings.Count(got, "Running") != 2 {
		t.Errorf("one is ended: %s", got)
	}
	changeReport(f.daemons["c-rgw-s3-a"], func(r *rgw.Report) { r.PID, r.Serves = 7, f.daemons["c-rgw-s3-a"].Spec.Parameters[rgw.ParamServes] })
	f.round(t)
	if got := f.daemons["c-rgw-s3-b"].Spec.State; got != api.WantStopped {
		t.Errorf("the other one is wanted %s", got)
	}
}

// A gateway whose host goes, or is drained, has another in its place; with one of two away the store is Degraded, with both Offline.
func TestStores_lost(t *testing.T) {
	f := storesOn(4, storeOf("s3"))
	f.settle(t)
	host := f.daemons["c-rgw-s3-a"].Spec.Host
	i := slices.IndexFunc(f.hosts, func(h api.Host) bool { return h.Name == host }) + 1
	f.powerOff(i, 0)
	f.round(t)
	if s := f.store().Status; s.State != api.ResourceDegraded || s.Gateways != "1/2" || !strings.Contains(s.Message, "its agent is disconnected") {
		t.Errorf("%+v", s)
	}
	f.silence(i, 2*time.Minute)
	for range 20 {
		f.round(t)
		f.agents()
	}
	if s := f.store().Status; !strings.HasPrefix(s.Gateways, "2/") {
		t.Errorf("not replaced: %+v, %s", s, f.gateways())
	}
}

// TLS that is turned on without a certificate is refused, and the gateways go on as they are; turned on with one they are restarted.
func TestStores_tlsRefused(t *testing.T) {
	f := storesOn(3, storeOf("s3"))
	f.settle(t)
	f.store().Spec.Gateways.TLS, f.store().Generation = &api.ObjectStoreTLS{SecretName: "cert"}, 2
	before := f.daemons["c-rgw-s3-a"].DeepCopy()
	p := f.settle(t)
	d := f.daemons["c-rgw-s3-a"]
	if got := word(decisions(p, api.VerdictRefuse), "objectstore/s3"); got == "" || !d.Spec.Equal(&before.Spec) {
		t.Errorf("refused for %q: %v", got, d.Spec.Parameters)
	}
	if s := f.store().Status; s.Gateways != "2/2" || !strings.HasPrefix(s.Endpoints[0], "http://") {
		t.Errorf("%+v", s)
	}
	f.secrets["cert"] = selfSigned(t, f.now.Add(90*24*time.Hour))
	for range 30 {
		f.round(t)
		f.agents()
	}
	if s := f.store().Status; s.Gateways != "2/2" || s.State != api.ResourceOnline || !strings.HasPrefix(s.Endpoints[0], "https://") {
		t.Errorf("%+v", s)
	}
}

// A certificate that is not there, or no good, has no gateway made, and says what to do; a gateway that runs keeps what it has.
func TestStores_certificates(t *testing.T) {
	f := storesOn(3, storeOf("s3", func(s *api.ObjectStore) { s.Spec.Gateways.TLS = &api.ObjectStoreTLS{SecretName: "cert"} }))
	p := f.settle(t)
	if got := word(decisions(p, api.VerdictRefuse), "objectstore/s3"); !strings.Contains(got, "kubectl create secret tls cert") || f.gateways() != "" {
		t.Errorf("refused for %q: %s", got, f.gateways())
	}
	f.secrets["cert"] = secret{data: map[string][]byte{"tls.crt": []byte("no"), "tls.key": []byte("no")}}
	if got := word(decisions(f.settle(t), api.VerdictRefuse), "objectstore/s3"); !strings.Contains(got, "cannot use the certificate in Secret cert") {
		t.Errorf("refused for %q", got)
	}
	f.secrets["cert"] = selfSigned(t, f.now.Add(90*24*time.Hour))
	if f.settle(t); f.store().Status.State != api.ResourceOnline || !strings.HasPrefix(f.store().Status.Endpoints[0], "https://") {
		t.Fatalf("%+v", f.store().Status)
	}
	was := f.daemons["c-rgw-s3-a"].Spec.Parameters[rgw.ParamServes]
	f.secrets["cert"] = selfSigned(t, f.now.Add(24*time.Hour))
	for range 20 {
		f.round(t)
		f.agents()
	}
	if is := f.daemons["c-rgw-s3-a"].Spec.Parameters[rgw.ParamServes]; is == was || !strings.Contains(f.store().Status.Message, "its certificate expires on") {
		t.Errorf("%s, %+v", is, f.store().Status)
	}
	f.secrets["cert"] = selfSigned(t, f.now.Add(-time.Hour))
	f.settle(t)
	if s := f.store().Status; !strings.Contains(s.Message, "expired on") || !strings.Contains(f.gateways(), "Running") || s.Gateways != "2/2" {
		t.Errorf("%+v, %s", s, f.gateways())
	}
}
