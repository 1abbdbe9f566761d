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

// Daemon is a DaemonDescription.
type Daemon struct {
	Type    string `json:"daemon_type"`
	ID      string `json:"daemon_id"`
	Host    string `json:"hostname"`
	Service string `json:"service_name"`
	Version string `json:"version,omitempty"`
	// Status is never missing: the module prometheus of Ceph 20 reads it as a number.
	Status      int    `json:"status"`
	StatusText  string `json:"status_desc"`
	Active      bool   `json:"is_active"`
	IP          string `json:"ip,omitempty"`
	Ports       []int  `json:"ports,omitempty"`
	Affinity    string `json:"osdspec_affinity,omitempty"`
	Created     string `json:"created,omitempty"`
	Started     string `json:"started,omitempty"`
	LastRefresh string `json:"last_refresh,omitempty"`
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
	rows := []Daemon{}
	for _, row := range c.daemons() {
		if is(a.Service, row.Service) && is(a.Type, row.Type) && is(a.ID, row.ID) && is(a.Host, row.Host) {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// is says whether something is as it is asked for; nothing is asked for by an empty text.
func is(asked, has string) bool { return asked == "" || asked == has }

func (c *Call) daemons() []Daemon {
	silent := map[string]string{}
	for i := range c.View.Hosts {
		if since, is := c.View.Hosts[i].SilentSince(); is {
			silent[c.View.Hosts[i].Name] = stamp(since)
		}
	}
	osds := c.groupsOfOSDs()
	rows := []Daemon{}
	for i := range c.View.Daemons {
		d := &c.View.Daemons[i]
		row := describe(d, osds)
		row.Created, row.LastRefresh = stamp(d.CreationTimestamp.Time), stamp(c.Now)
		if heard, is := silent[d.Spec.Host]; is {
			row.Status, row.LastRefresh = statusUnknown, heard
			row.StatusText = "unknown: the agent of the host is disconnected"
		}
		rows = append(rows, row)
	}
	return rows
}

// describe describes a daemon by itself.
func describe(d *api.Daemon, osds map[string]string) Daemon {
	row := Daemon{Type: spec.TypeOf(d), ID: d.Spec.ID, Host: d.Spec.Host, Version: d.Status.Version}
	row.IP = d.Spec.Parameters[paramAddress]
	row.Affinity = osds[d.Name]
	row.Service = spec.ServiceOf(d, row.Affinity)
	row.Status, row.StatusText = statusOf(d)
	if d.Status.Started != nil {
		row.Started = stamp(d.Status.Started.Time)
	}
	if u, err := url.Parse(d.Spec.Parameters[rgw.ParamURL]); err == nil {
		if _, port, err := net.SplitHostPort(u.Host); err == nil {
			if n, err := strconv.Atoi(port); err == nil {
				row.Ports = []int{n}
			}
		}
	}
	return row
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
