package service_test

import (
	"log/slog"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/service"
)

// named is a service agent that has a name alone.
type named struct {
	service.ServiceAgent
	name string
}

func (n named) Name() string { return n.name }

// counted is a service agent that counts how often it is asked.
type counted struct {
	named
	n *int
}

func (c counted) BeforeStart(runtime.Process) error {
	*c.n++
	return nil
}

// A service agent is asked before its own daemons start, and before no others.
func TestBeforeStart(t *testing.T) {
	n := 0
	before := service.BeforeStart([]service.ServiceAgent{
		named{name: "ceph-mon"}, counted{named{name: "ceph-osd"}, &n},
	}, slog.New(slog.DiscardHandler))
	for _, tt := range []struct {
		of      string
		command []string
		want    int
	}{
		{"", []string{"ceph-mon", "-f"}, 0},
		{"", []string{"ceph-osd", "-f", "-i", "1"}, 1},
		{"", []string{"/usr/bin/ceph-osd"}, 2},
		{"ceph-mon", []string{"sh", "-c"}, 2},
		{"ceph-osd", []string{"sh", "-c"}, 3},
		{"", nil, 3},
	} {
		p := runtime.Process{Command: tt.command, Of: runtime.Owner{Type: tt.of}}
		if before(p); n != tt.want {
			t.Errorf("%q %v: asked %d times, want %d", tt.of, tt.command, n, tt.want)
		}
	}
}
