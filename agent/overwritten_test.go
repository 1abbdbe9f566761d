package agent

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestOverwritten: what somebody else writes into the status of a daemon is written over by its agent, each field of it.
func TestOverwritten(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one", reporting), sleeperDaemon("two"))
	w.service.report = func(*service.Local) (string, error) { return "all is well", nil }
	w.retryMax = 10 * time.Millisecond
	w.run()
	w.awaitState("one", api.DaemonRunning)
	w.awaitState("two", api.DaemonRunning)
	w.awaitReport("all is well", "")
	is := func(name string) api.DaemonStatus {
		s := w.daemon(name).Status
		s.Started = nil // the API keeps it without the part of a second that the test would compare
		return s
	}
	now := metav1.NewMicroTime(time.Now().Truncate(time.Second))
	forged := map[string]func(*api.DaemonStatus){
		"state":     func(s *api.DaemonStatus) { s.State = api.DaemonFailed },
		"message":   func(s *api.DaemonStatus) { s.Message = "its disk is broken: wipe it" },
		"process":   func(s *api.DaemonStatus) { s.PID, s.Restarts = 1, 99 },
		"release":   func(s *api.DaemonStatus) { s.Version = "99.9" },
		"last exit": func(s *api.DaemonStatus) { s.LastExit = &api.DaemonExit{Time: now, Reason: "signal: killed", Log: "x"} },
		"ends":      func(s *api.DaemonStatus) { s.Ends = []metav1.MicroTime{now} },
		"report":    func(s *api.DaemonStatus) { s.Report = "all is lost" },
		"all":       func(s *api.DaemonStatus) { *s = api.DaemonStatus{} },
	}
	for what, forge := range forged {
		for _, name := range []string{"one", "two"} {
			true_ := is(name)
			d := w.daemon(name)
			forge(&d.Status)
			if err := w.api.Status().Update(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			w.await(what+" of "+name+" written over", func() bool { return reflect.DeepEqual(is(name), true_) })
		}
	}
}

// TestOverwritten_host: a Host that somebody else wrote differs from what its agent says, in whatever field, and so is written again
// with the next report. The conditions of others are theirs, and so is the generation.
func TestOverwritten_host(t *testing.T) {
	said := func() *api.HostStatus {
		return &api.HostStatus{Addresses: []string{"10.0.0.1"}, Conditions: []metav1.Condition{{Type: api.HostClockInSync, Status: metav1.ConditionTrue}}}
	}
	full := api.HostStatus{
		Addresses: []string{"10.9.9.9"}, AgentVersion: "9", BootID: "9", Runtime: api.RuntimeSystemd, Packages: map[string]api.Release{"ceph": "9"},
		Devices: []api.Device{{ID: "wwn-9"}}, Foreign: []api.ForeignDaemon{{Type: "ceph-osd"}},
		Facts:      &api.HostFacts{Kernel: "9"},
		Conditions: []metav1.Condition{{Type: api.HostClockInSync, Status: metav1.ConditionFalse}},
	}
	for i := range reflect.TypeFor[api.HostStatus]().NumField() {
		if reflect.TypeFor[api.HostStatus]().Field(i).Name == "ObservedGeneration" {
			continue // the leader's, see below
		}
		forged := said()
		field := reflect.ValueOf(full).Field(i)
		if field.IsZero() {
			t.Fatalf("the test forges no %s", reflect.TypeFor[api.HostStatus]().Field(i).Name)
		}
		reflect.ValueOf(forged).Elem().Field(i).Set(field)
		if sameStatus(forged, said()) {
			t.Errorf("%s that somebody else wrote is taken for what the agent says", reflect.TypeFor[api.HostStatus]().Field(i).Name)
		}
	}
	others := said()
	others.ObservedGeneration = 9
	others.Conditions = append(others.Conditions, metav1.Condition{Type: api.HostAgentConnected, Status: metav1.ConditionTrue})
	if !sameStatus(others, said()) {
		t.Error("the leader's condition or generation is taken for a change")
	}
}
