package main

import (
	"fmt"
	"time"

	"github.com/holdfast-storage/holdfast/test/bench/stat"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// settling is how long the servers are left alone before they are watched: what the bring-up has set in motion comes to rest.
const settling = 10 * time.Second

// idler is what an idle server costs.
type idler struct {
	Host   string `json:"host"`
	Leader bool   `json:"leader"`
	// Percent is the CPU time, in percent of one core, of the server and its child for librados.
	Percent float64 `json:"cpuPercent"`
	// ServerMiB and LibradosMiB are their memory at the end (RSS).
	ServerMiB   float64 `json:"serverMiB"`
	LibradosMiB float64 `json:"libradosMiB"`
}

// idle watches the servers while nothing is wanted of them.
func (b *bench) idle(t hosts.T, d time.Duration) []idler {
	t.Helper()
	leader, err := b.holdfast.leader()
	if err != nil {
		t.Fatalf("%v", err)
	}
	<-time.After(settling)
	before, start := b.servers(t), time.Now()
	<-time.After(d)
	after, took := b.servers(t), time.Since(start)
	var all []idler
	for i, h := range b.lab.Hosts() {
		now := after[i]
		spent := now.server.Own + now.librados.Own - before[i].server.Own - before[i].librados.Own
		all = append(all, idler{
			Host: h.Name, Leader: h.Name == leader, Percent: 100 * spent.Seconds() / took.Seconds(),
			ServerMiB: float64(now.server.Resident) / (1 << 20), LibradosMiB: float64(now.librados.Resident) / (1 << 20),
		})
	}
	return all
}

// serverUse is what a server and its child for librados have used.
type serverUse struct{ server, librados stat.Usage }

func (b *bench) servers(t hosts.T) []serverUse {
	t.Helper()
	var uses []serverUse
	for n := range b.lab.Hosts() {
		u, err := usageOfServer(b.holdfast.Server(n + 1).PID())
		if err != nil {
			t.Fatalf("%v", err)
		}
		uses = append(uses, u)
	}
	return uses
}

func usageOfServer(pid int) (u serverUse, err error) {
	if u.server, err = stat.Of(pid); err != nil {
		return u, err
	}
	all, err := pids()
	if err != nil {
		return u, err
	}
	for _, child := range all {
		if readProcess(child).program() != radosChild {
			continue
		}
		if c, err := stat.Of(child); err == nil && c.Parent == pid {
			u.librados = c
		}
	}
	return u, nil
}

func (i idler) String() string {
	role := "server"
	if i.Leader {
		role = "leader"
	}
	return fmt.Sprintf("%s\t%s\t%.1f %%\t%.0f MiB\t%.0f MiB", i.Host, role, i.Percent, i.ServerMiB, i.LibradosMiB)
}
