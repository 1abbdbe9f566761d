package gluster

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
)

// nfsWorld is a world at rest with exports beside it, and NFS servers whose agents do as they are told.
type nfsWorld struct {
	*world
	exports map[string]*api.NFSExport
	servers map[string]*api.Daemon
	loaded  map[string]int64 // the generation whose configuration a server has read
	broken  string           // a pseudo path that is not served
	unasked string           // a pseudo path that is not looked up
	seen    *engine.View     // by the last round
}

func newNFSWorld(t *testing.T) *nfsWorld {
	w := &nfsWorld{world: poolOf(t, 3), exports: map[string]*api.NFSExport{}, servers: map[string]*api.Daemon{}, loaded: map[string]int64{}}
	w.volume("v", "10Gi", replica3())
	w.world.settle()
	return w
}

func (w *nfsWorld) export(name, volume string) *api.NFSExport {
	w.now = w.now.Add(1e9)
	e := &api.NFSExport{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1, CreationTimestamp: metav1.NewTime(w.now)}}
	e.Spec = api.NFSExportSpec{Cluster: "c", Volume: volume, Path: "/", AccessType: api.NFSReadWrite, Squash: api.NFSSquashRoot}
	w.exports[name] = e
	return e
}

// agents bring each server as far as its spec says, and report.
func (w *nfsWorld) agents() {
	for name, d := range w.servers {
		switch {
		case !w.heard(d.Spec.Host):
			continue
		case d.DeletionTimestamp != nil:
			delete(w.servers, name)
			delete(w.loaded, name)
			continue
		case d.Status.State != api.DaemonRunning:
			w.loaded[name] = d.Generation
		}
		r := ganesha.Report{Generation: d.Generation, Current: w.loaded[name] == d.Generation, Exports: map[string]string{}}
		for pseudo := range strings.FieldsSeq(d.Spec.Parameters[ganesha.ParamExports]) {
			if r.Exports[pseudo] = ""; pseudo == w.unasked {
				delete(r.Exports, pseudo)
			}
			if pseudo == w.broken {
				r.Exports[pseudo] = "the server does not export it"
			}
		}
		text, err := json.Marshal(r)
		if err != nil {
			w.t.Fatal(err)
		}
		d.Status = api.DaemonStatus{State: api.DaemonRunning, ObservedGeneration: d.Generation, Report: string(text)}
	}
}

// round plans once, and carries out what is about NFS.
func (w *nfsWorld) round() *engine.Plan {
	view := w.view()
	for _, name := range slices.Sorted(maps.Keys(w.exports)) {
		view.Resources = append(view.Resources, w.exports[name].DeepCopy())
	}
	for _, name := range slices.Sorted(maps.Keys(w.servers)) {
		view.Daemons = append(view.Daemons, *w.servers[name].DeepCopy())
	}
	var err error
	if view.System, err = (Driver{}).Observe(w.t.(*testing.T).Context(), view, nil); err != nil {
		w.t.Fatal(err)
	}
	w.seen = view
	p := Driver{}.Plan(view, w.now)
	for _, c := range p.Resources {
		e, ok := c.Resource.(*api.NFSExport)
		switch {
		case ok && c.Gone:
			delete(w.exports, e.Name)
		case ok:
			w.exports[e.Name].Status = e.Status
		default:
			v := c.Resource.(*api.Volume)
			w.vol(v.Name).Status = v.Status
		}
	}
	for _, c := range p.Daemons {
		if d := c.Daemon.DeepCopy(); d.Spec.Type == ganesha.Type {
			d.Generation++
			w.servers[d.Name] = d
		}
	}
	for _, r := range p.Remove {
		now := metav1.NewTime(w.now)
		w.servers[r.Name].DeletionTimestamp = &now
	}
	for _, c := range p.Commands {
		if c.Verb == ganesha.VerbReload {
			w.loaded[c.Daemon] = w.servers[c.Daemon].Generation
		}
	}
	return p
}

// settle runs some rounds, and returns the last plan and the commands of all.
func (w *nfsWorld) settle() (last *engine.Plan, asked []string) {
	for range 6 {
		w.agents()
		last = w.round()
		asked = append(asked, commands(last)...)
	}
	return last, asked
}

// wants checks the state of an export, what its message has, and which servers there are.
func (w *nfsWorld) wants(name string, state api.ResourceState, message string, servers ...string) {
	w.t.Helper()
	e := w.exports[name]
	if e.Status.State != state || !strings.Contains(e.Status.Message, message) {
		w.t.Fatalf("%s is %s: %s; want %s: %s", name, e.Status.State, e.Status.Message, state, message)
	}
	if got := slices.Sorted(maps.Keys(w.servers)); !slices.Equal(got, servers) {
		w.t.Fatalf("the servers are %q, want %q", got, servers)
	}
}

func TestNFS_lifeOfAnExport(t *testing.T) {
	w := newNFSWorld(t)
	w.export("e", "v")
	w.settle()
	w.wants("e", api.ResourceOnline, "", "c-nfs-n1")
	if s := w.exports["e"].Status; s.Source != "10.0.0.1:/e" || s.Node != "n1" || s.ExportID == 0 || s.Path != "/" {
		t.Errorf("%+v", s)
	}
	w.export("f", "v").Spec.Pseudo = "/g"
	_, asked := w.settle()
	w.wants("f", api.ResourceOnline, "", "c-nfs-n1")
	stays := w.exports["f"].Status.ExportID
	if stays == w.exports["e"].Status.ExportID {
		t.Errorf("both exports have the number %d", stays)
	}
	if !slices.Equal(asked, []string{"c-nfs-n1: nfs reload c-nfs-n1"}) {
		t.Errorf("asked: %q", asked)
	}
	gone := metav1.NewTime(w.now)
	w.exports["e"].DeletionTimestamp = &gone
	if w.settle(); w.exports["e"] != nil {
		t.Errorf("%+v", w.exports["e"].Status)
	}
	w.wants("f", api.ResourceOnline, "", "c-nfs-n1")
	if id := w.exports["f"].Status.ExportID; id != stays {
		t.Errorf("the number of an export that stays is %d", id)
	}
	w.exports["f"].DeletionTimestamp = &gone
	if w.settle(); len(w.exports)+len(w.servers) > 0 {
		t.Errorf("left: %v, %v", w.exports, w.servers)
	}
}

// TestNFS_changed: an export that has changed is not Online before the server serves it so; another one stays Online. One
// that gives another directory gets another number, and never the one that it had before.
func TestNFS_changed(t *testing.T) {
	w := newNFSWorld(t)
	w.export("e", "v")
	w.export("f", "v").Spec.Pseudo = "/g"
	w.settle()
	e, f := w.exports["e"], w.exports["f"]
	ids := []int32{e.Status.ExportID}
	for i, change := range []func(*api.NFSExportSpec){
		func(s *api.NFSExportSpec) { s.Clients = []string{"10.1.0.1"} },
		func(s *api.NFSExportSpec) { s.Clients = []string{"10.1.0.2"} },
		func(s *api.NFSExportSpec) { s.AccessType = api.NFSReadOnly },
		func(s *api.NFSExportSpec) { s.Squash = api.NFSSquashAll },
		func(s *api.NFSExportSpec) { s.Path = "/a" },
		func(s *api.NFSExportSpec) { s.Path = "/b" },
	} {
		change(&e.Spec)
		e.Generation++
		for range 2 { // the Daemon has another configuration; its agent has written it
			w.round()
			if s := e.Status; s.State != api.ResourceCreating || !strings.Contains(s.Message, "reads its configuration") {
				t.Errorf("change %d: it is %s before it is served: %s", i, s.State, s.Message)
			}
			w.wants("f", api.ResourceOnline, "reads", "c-nfs-n1")
			w.agents()
		}
		w.settle()
		w.wants("e", api.ResourceOnline, "", "c-nfs-n1")
		if i >= 4 {
			if slices.Contains(ids, e.Status.ExportID) {
				t.Errorf("with %s it has the number %d, and had %v", e.Spec.Path, e.Status.ExportID, ids)
			}
			ids = append(ids, e.Status.ExportID)
		} else if e.Status.ExportID != ids[0] {
			t.Errorf("change %d: its number was %d, and is %d", i, ids[0], e.Status.ExportID)
		}
	}
	if f.Status.State != api.ResourceOnline {
		t.Errorf("%+v", f.Status)
	}
}

// A node that is not heard, leaves service or is being drained gives the server up to another one.
func TestNFS_moves(t *testing.T) {
	w := newNFSWorld(t)
	w.export("e", "v")
	w.settle()
	w.silence(1, true)
	w.settle()
	w.wants("e", api.ResourceOnline, "", "c-nfs-n1", "c-nfs-n2") // the first one is to go, when its agent is heard
	if s := w.exports["e"].Status; s.Source != "10.0.0.2:/e" || w.servers["c-nfs-n1"].DeletionTimestamp == nil {
		t.Errorf("%+v", s)
	}
	w.silence(1, false)
	w.settle()
	w.wants("e", api.ResourceOnline, "", "c-nfs-n2")
	w.setMode(2, api.HostMaintenance)
	w.agents()
	if p := w.round(); !contains(decisions(p, api.VerdictWait), "host/h2: the NFS server on host h2 is removed: node n1 serves NFS now") {
		t.Errorf("%q", decisions(p))
	}
	w.settle()
	w.wants("e", api.ResourceOnline, "", "c-nfs-n1")
	for i := 1; i <= 3; i++ {
		w.silence(i, true)
	}
	w.settle()
	w.wants("e", api.ResourceOffline, "no node of the cluster that is up can serve NFS", "c-nfs-n1")
	if w.servers["c-nfs-n1"].DeletionTimestamp != nil {
		t.Error("the only server is to go")
	}
}

// A host has room for one NFS server: that of another cluster is kept away from, and with one on each host nobody is made to wait in vain.
func TestNFS_besideAnother(t *testing.T) {
	w := newNFSWorld(t)
	serve := func(host string) {
		w.others = append(w.others, &api.Daemon{
			ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "x-nfs-" + host}, Spec: api.DaemonSpec{Cluster: "x", Type: ganesha.Type, Host: host},
		})
	}
	serve("h1")
	w.export("e", "v")
	w.settle()
	w.wants("e", api.ResourceOnline, "", "c-nfs-n2")
	delete(w.exports, "e")
	w.settle()
	serve("h2")
	serve("h3")
	w.export("f", "v")
	w.settle()
	w.wants("f", api.ResourceCreating, "another cluster serves NFS on h1, h2, h3")
}

func TestNFS_refused(t *testing.T) {
	w := newNFSWorld(t)
	w.export("e", "v")
	w.settle()
	w.export("none", "w")
	w.export("same", "v").Spec.Pseudo = "/e"
	w.settle()
	w.wants("none", api.ResourcePending, "cluster c has no Volume w", "c-nfs-n1")
	w.wants("same", api.ResourcePending, "NFSExport e has the pseudo path /e already", "c-nfs-n1")
	w.wants("e", api.ResourceOnline, "", "c-nfs-n1")
}

// An export of a directory that is not there names the directory, also while the server reads its
// configuration again, and serves it when it is there.
func TestNFS_directoryMissing(t *testing.T) {
	w := newNFSWorld(t)
	w.export("all", "v")
	w.settle()
	w.broken = "/e"
	w.export("e", "v").Spec.Path = "/not/there"
	w.settle()
	for range 3 {
		w.wants("e", api.ResourceCreating, "directory /not/there does not exist in volume v", "c-nfs-n1")
		if s := w.exports["e"].Status; s.Reason != api.ReasonNotServed || s.Next == "" {
			t.Errorf("%+v", s)
		}
		delete(w.loaded, "c-nfs-n1") // it reads its configuration again
		w.agents()
		w.round()
	}
	w.broken = ""
	w.settle()
	w.wants("e", api.ResourceOnline, "", "c-nfs-n1")
	if s := w.exports["e"].Status; s.Reason != "" || s.Next != "" {
		t.Errorf("%+v", s)
	}
}

// What the server leaves out because it could not reach it is asked for again.
func TestNFS_notServed(t *testing.T) {
	w := newNFSWorld(t)
	w.broken = "/e"
	w.export("e", "v")
	_, asked := w.settle()
	w.wants("e", api.ResourceCreating, "the server does not export it", "c-nfs-n1")
	if !slices.Contains(asked, "c-nfs-n1: nfs reload c-nfs-n1") {
		t.Errorf("asked: %q", asked)
	}
	w.broken = ""
	w.settle()
	w.wants("e", api.ResourceOnline, "", "c-nfs-n1")
	w.servers["c-nfs-n1"].Status = api.DaemonStatus{State: api.DaemonFailed, Message: "apt-get install nfs-ganesha"}
	w.round()
	w.wants("e", api.ResourceOffline, "the NFS server on node n1 is Failed: apt-get install nfs-ganesha", "c-nfs-n1")
	gone := metav1.NewTime(w.now)
	w.exports["e"].DeletionTimestamp = &gone
	for range 2 { // its agent tells of the new spec, and goes on failing
		w.round()
		w.servers["c-nfs-n1"].Status.ObservedGeneration = w.servers["c-nfs-n1"].Generation
	}
	if w.round(); w.exports["e"] != nil {
		t.Errorf("an export that nobody serves stays: %+v", w.exports["e"].Status)
	}
}

// A volume waits for its exports, and lets their server in.
func TestNFS_volume(t *testing.T) {
	w := newNFSWorld(t)
	w.export("e", "v")
	w.vol("v").Spec.Auth.Allow = []string{"192.0.2.1"}
	if _, asked := w.settle(); !contains(asked, "volume set v auth.allow=10.0.0.1,192.0.2.1") {
		t.Errorf("asked: %q", asked)
	}
	gone := metav1.NewTime(w.now)
	w.vol("v").DeletionTimestamp = &gone
	p, asked := w.settle()
	if text := w.vol("v").Status.Message; !strings.Contains(text, "delete NFSExport e first") || contains(asked, "volume stop") {
		t.Errorf("%s; %q; %q", text, asked, decisions(p))
	}
	w.wants("e", api.ResourceOnline, "", "c-nfs-n1")
}

// What 'holdfast plan' tells of an export comes to an end: a server, one reload where there is one already, and nothing is left to do.
func TestNFS_foreseen(t *testing.T) {
	w := newNFSWorld(t)
	w.export("e", "v")
	for _, want := range []struct{ steps, servers int }{{1, 1}, {2, 0}} {
		w.round()
		p := engine.Project(Driver{}, w.seen, w.now)
		made := 0
		for _, s := range p.Steps {
			for _, d := range s.Plan.Daemons {
				if d.New {
					made++
				}
			}
		}
		if len(p.Steps) != want.steps || made != want.servers || len(p.Open) > 0 {
			t.Errorf("%d steps, %d servers, open %q; want %+v", len(p.Steps), made, p.Open, want)
		}
		w.settle()
		w.export("f", "v")
	}
}

// TestNFS_checkFails: a server that runs stays when its host's agent does not find the program; a
// new one comes to no such host.
func TestNFS_checkFails(t *testing.T) {
	w := newNFSWorld(t)
	finds := func(host string, found bool) {
		w.hostNamed(host).Status.Packages = map[string]api.Release{"ceph-mds": "16.2"}
		if found {
			w.hostNamed(host).Status.Packages[ganesha.Type] = "4.3"
		}
	}
	finds("h1", false)
	w.export("e", "v")
	w.settle()
	w.wants("e", api.ResourceOnline, "", "c-nfs-n2")
	finds("h2", false)
	w.settle()
	w.wants("e", api.ResourceOnline, "", "c-nfs-n2")
	w.servers["c-nfs-n2"].Status.State = api.DaemonFailed
	if w.round(); w.servers["c-nfs-n3"] == nil {
		t.Errorf("one that does not run, and cannot, stays: %v", w.exports["e"].Status)
	}
}

// TestNFS_notAsked: an export for which the server was not asked stays as it was.
func TestNFS_notAsked(t *testing.T) {
	w := newNFSWorld(t)
	w.export("e", "v")
	w.settle()
	w.unasked = "/f"
	w.export("f", "v")
	_, asked := w.settle()
	w.wants("f", api.ResourceCreating, "", "c-nfs-n1")
	w.unasked = "/e"
	_, again := w.settle()
	w.wants("e", api.ResourceOnline, "", "c-nfs-n1")
	w.wants("f", api.ResourceOnline, "", "c-nfs-n1")
	if len(asked) != 1 || len(again) > 0 {
		t.Errorf("asked: %q, %q", asked, again)
	}
}
