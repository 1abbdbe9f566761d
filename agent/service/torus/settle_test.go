package torus

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/servicetest"
	"github.com/holdfast-storage/holdfast/internal/torus"
)

// What is stored has to stay the same after an event. Once it has, clients may write.
func TestWatch(t *testing.T) {
	w, begin := &watch{}, time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		at          int // seconds
		event, used string
		open        bool
	}{
		{0, "a", "0", true},
		{19, "a", "0", true},
		{21, "a", "0", false},
		{30, "a", "100", false},
		{40, "b", "100", true},
		{55, "b", "200", true},
		{70, "b", "200", true},
		{76, "b", "200", false},
		{80, "b", "300", false},
	} {
		if open := w.see(step.event, step.used, settleAfter, begin.Add(time.Duration(step.at)*time.Second)); open != step.open {
			t.Errorf("after %d s: open is %v", step.at, open)
		}
	}
}

// USED is rounded: of a large store it stays the same while gigabytes move.
func TestSettleTime(t *testing.T) {
	for used, want := range map[int64]time.Duration{0: settleAfter, 700 << 20: settleAfter, 3 << 30: settleAfter, 40 << 30: 51 * time.Second, 2 << 40: 5242 * time.Second} {
		if got := settleTime([]torus.Peer{{Used: used}}); got != want {
			t.Errorf("%d: %s, want %s", used, got, want)
		}
	}
}

// A member that was DOWN and is OK came back, and what it missed is not there yet, although no peer says that it moves blocks.
func TestMoving_back(t *testing.T) {
	d := Agents()[0].(*Torusd)
	c := &torus.Cluster{Replication: 2, Peers: []torus.Peer{{UUID: "a", State: torus.PeerOK}, {UUID: "b", State: torus.PeerOK}}}
	look := func() (bool, []string) { return d.moving("x", c) }
	settle := func() { d.watches["ring x"].since = time.Now().Add(-settleAfter) }
	look()
	settle()
	if moving, _ := look(); moving {
		t.Fatal("it has settled")
	}
	c.Peers[1].State = torus.PeerDown
	look()
	settle()
	look()
	c.Peers[1].State = torus.PeerOK
	if moving, back := look(); !moving || len(back) != 1 || back[0] != "b" {
		t.Errorf("back: %v %v", moving, back)
	}
	c.Peers[1].Used = 100
	settle()
	if moving, back := look(); !moving || len(back) != 1 {
		t.Errorf("while it is filled: %v %v", moving, back)
	}
	settle()
	if moving, back := look(); moving || len(back) != 0 {
		t.Errorf("whole: %v %v", moving, back)
	}
}

// A peer's own agent knows of each start, also of one that Torus took no notice of, and the next agent knows what this one knew.
func TestSettled(t *testing.T) {
	l := servicetest.Dirs(t)
	l.Parameters = map[string]string{torus.ParamPeer: "http://127.0.0.1:1"}
	peers := []torus.Peer{{UUID: "a", State: torus.PeerOK, Address: "http://127.0.0.1:1", Used: 1}}
	d := Agents()[0].(*Torusd)
	settled := func(peers []torus.Peer) bool {
		t.Helper()
		started, yes, err := d.settled(l, peers)
		if err != nil || started != torus.StartText(l.Daemon.Status.Started) {
			t.Fatal(started, err)
		}
		return yes
	}
	start := func(l *service.Local, second int) {
		l.Daemon.Status.Started = &metav1.MicroTime{Time: time.Unix(int64(second), 5000)}
	}
	start(l, 1)
	if !settled(peers) {
		t.Error("the first start missed nothing")
	}
	start(l, 2)
	if settled(peers) || settled(nil) {
		t.Error("nobody knows yet what it missed")
	}
	settled(peers)
	d.watches["peer "+l.Data].since = time.Now().Add(-settleAfter)
	if !settled(peers) {
		t.Error("it has settled")
	}
	if d = Agents()[0].(*Torusd); !settled(peers) {
		t.Error("the next agent does not know")
	}
}
