package answer

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/rgw"
	"github.com/holdfast-storage/holdfast/orch/spec"
)

// paramAddress is the parameter of a Ceph daemon that has its address (driver/ceph, ParamAddress).
const paramAddress = "address"

// The states of daemons, as in Ceph's DaemonDescriptionStatus.
const (
	statusUnknown  = -2
	statusError    = -1
	statusStopped  = 0
	statusRunning  = 1
	statusStarting = 2
)

// Daemon is a DaemonDescription. last_refresh is added to it as it is encoded.
type Daemon struct {
	Type    string `json:"daemon_type"`
	ID      string `json:"daemon_id"`
	Host    string `json:"hostname"`
	Service string `json:"service_name"`
	Version string `json:"version,omitempty"`
	// Status is never missing: the module prometheus of Ceph 20 reads it as a number.
	Status     int    `json:"status"`
	StatusText string `json:"status_desc"`
	Active     bool   `json:"is_active"`
	IP         string `json:"ip,omitempty"`
	Ports      []int  `json:"ports,omitempty"`
	Affinity   string `json:"osdspec_affinity,omitempty"`
	Created    string `json:"created,omitempty"`
	Started    string `json:"started,omitempty"`
}

func daemons(c *Call) (any, error) {
	a, err := args[struct {
		Service string `json:"service_name"`
		Type    string `json:"daemon_type"`
		ID      string `json:"daemon_id"`
		Host    string `json:"host"`
	}](c)
	if err != nil {
		return nil, err
	}
	rows, now := list{field: "last_refresh"}, quote(stamp(c.Now))
	silent, osds := c.silent(), c.groupsOfOSDs()
	for i := range c.View.Daemons {
		d := &c.View.Daemons[i]
		if !is(a.Host, d.Spec.Host) || !is(a.ID, d.Spec.ID) || !is(a.Type, spec.TypeOf(d)) ||
			!is(a.Service, spec.ServiceOf(d, osds[d.Name])) {
			continue
		}
		made, with, refreshed := describe, "", now
		if heard, is := silent[d.Spec.Host]; is {
			made, with, refreshed = describeSilent, "silent ", quote(heard)
		}
		row, err := c.Rows.of(d, with+osds[d.Name], func() any { return made(d, osds[d.Name]) })
		if err != nil {
			return nil, err
		}
		rows.add(row, refreshed)
	}
	return rows.text(), nil
}

// is says whether something is as it is asked for; nothing is asked for by an empty text.
func is(asked, has string) bool { return asked == "" || asked == has }

// quote makes JSON of a text without special characters.
func quote(text string) []byte { return []byte(`"` + text + `"`) }

// silent are the hosts whose agents are disconnected, and since when.
func (c *Call) silent() map[string]string {
	all := map[string]string{}
	for i := range c.View.Hosts {
		if since, is := c.View.Hosts[i].SilentSince(); is {
			all[c.View.Hosts[i].Name] = stamp(since)
		}
	}
	return all
}

// describe describes a daemon by itself. group is that of an OSD.
func describe(d *api.Daemon, group string) Daemon {
	row := Daemon{Type: spec.TypeOf(d), ID: d.Spec.ID, Host: d.Spec.Host, Version: d.Status.Version}
	row.IP = d.Spec.Parameters[paramAddress]
	row.Affinity, row.Service, row.Ports = group, spec.ServiceOf(d, group), ports(d)
	row.Status, row.StatusText = statusOf(d)
	row.Created = stamp(d.CreationTimestamp.Time)
	if d.Status.Started != nil {
		row.Started = stamp(d.Status.Started.Time)
	}
	return row
}

// describeSilent describes a daemon of a host whose agent is disconnected.
func describeSilent(d *api.Daemon, group string) Daemon {
	row := describe(d, group)
	row.Status, row.StatusText = statusUnknown, "unknown: the agent of the host is disconnected"
	return row
}

// ports are those of a gateway.
func ports(d *api.Daemon) []int {
	address := d.Spec.Parameters[rgw.ParamURL]
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	_, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		return nil
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return nil
	}
	return []int{n}
}

// statusOf is the state of a daemon by the word of its agent.
func statusOf(d *api.Daemon) (status int, text string) {
	switch d.Status.State {
	case api.DaemonRunning, api.DaemonStopping:
		return statusRunning, strings.ToLower(string(d.Status.State))
	case api.DaemonFailed:
		return statusError, "error"
	case api.DaemonBackOff:
		return statusError, "error: it waits before it is started again"
	case api.DaemonStopped, api.DaemonPrepared:
		return statusStopped, "stopped"
	default:
		return statusStarting, "starting"
	}
}
