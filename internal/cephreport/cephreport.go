// Package cephreport holds what the driver for Ceph and the agents of its hosts must agree on: the report that an agent makes of an MDS.
package cephreport

import (
	"encoding/json"
	"fmt"
)

// MaxMounts is how many clients a report names; it counts the others.
const MaxMounts = 32

// Report is what an agent says of an MDS, as JSON in Daemon.status.report. One that only stands by has none.
type Report struct {
	// Mounts are the clients that have the filesystem mounted, sorted; More counts those beyond MaxMounts.
	Mounts []Mount `json:"mounts"`
	More   int     `json:"more,omitempty"`
}

// Mount is a client of a filesystem.
type Mount struct {
	// Entity is what cephx calls it, without its type, such as "app" for client.app. A manager that looks into a filesystem has its own.
	Entity string `json:"entity"`
	// Host and Path are where it is mounted, by the client's own word; a library has no path.
	Host string `json:"host,omitempty"`
	Path string `json:"path,omitempty"`
}

// Parse reads a report; nil where there is none.
func Parse(text string) (*Report, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no report is no error
	}
	r := &Report{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("while reading the report of an MDS: %w", err)
	}
	return r, nil
}

// String is a mount as people read it: client.app on host web1 at /mnt.
func (m Mount) String() string {
	text := "client." + m.Entity
	if m.Host != "" {
		text += " on host " + m.Host
	}
	if m.Path != "" {
		text += " at " + m.Path
	}
	return text
}
