package cli

import (
	"testing"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/ceph"
)

// TestServiceAgents: none has the name of another one, whatever package it is of.
func TestServiceAgents(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range serviceAgents() {
		if seen[a.Name()] {
			t.Errorf("there are two service agents of the type %s", a.Name())
		}
		seen[a.Name()] = true
	}
	if len(seen) < 10 {
		t.Errorf("only %d types of daemons are known", len(seen))
	}
}

// counted is a service agent that counts how often it is asked.
type counted struct {
	ceph.OSD
	n *int
}

func (c counted) Allow() { *c.n++ }

// The kernel is asked for the program that needs it, and for no other.
func TestAllow(t *testing.T) {
	n := 0
	before := allow([]service.ServiceAgent{ceph.Mon{}, counted{n: &n}})
	for _, tt := range []struct {
		command []string
		want    int
	}{{[]string{"ceph-mon", "-f"}, 0}, {[]string{"ceph-osd", "-f", "-i", "1"}, 1}, {[]string{"/usr/bin/ceph-osd"}, 2}, {nil, 2}} {
		if before(runtime.Process{Command: tt.command}); n != tt.want {
			t.Errorf("%v: asked %d times, want %d", tt.command, n, tt.want)
		}
	}
}
