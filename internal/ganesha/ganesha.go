// Package ganesha holds what drivers and the agents that run NFS-Ganesha must agree on: its configuration, the names in a Daemon, and the
// report that an agent makes. It runs nothing itself.
package ganesha

import (
	"encoding/json"
	"fmt"
)

// Type is the type of the Daemon, as in Daemon.spec.type.
const Type = "nfs-ganesha"

// Port is where NFS is served. NFS-Ganesha 4.3 takes it on all addresses of its host, whatever Bind_addr says.
const Port = 2049

// The names in a Daemon.
const (
	// FileConf is the wanted configuration.
	FileConf = "ganesha.conf"
	// FileLoaded, in the directory for sockets, is the configuration that the process reads.
	FileLoaded = "loaded.conf"
	// DirReadings, in the directory for sockets, has a file for each reading of a configuration that is not known to have
	// ended. FileLoaded names the file: the process says there itself when it serves what it has read. Of a reading that
	// has ended there is a link to /dev/null.
	DirReadings = "readings"
	// FirstReading is that of the process's start.
	FirstReading = "0"
	// FilePID, in the directory for sockets, has the process.
	FilePID = "ganesha.pid"
	// DirRecovery is where it notes which clients have files open.
	DirRecovery = "recovery"
	// ParamFSAL names what serves a kind of storage, such as "gluster": the agent looks whether it is installed.
	ParamFSAL = "fsal"
	// ParamAddress is the address that clients mount from.
	ParamAddress = "address"
	// ParamExports are the pseudo paths that are to be served, joined by newlines.
	ParamExports = "exports"
	// ParamStamp is the stamp of the configuration: files of an earlier generation have another one.
	ParamStamp = "stamp"
	// VerbReload has the process read its configuration again.
	VerbReload = "nfs reload"
)

// Command is the command of a Daemon. The process reads a copy of its configuration, by which one knows later what it
// has read. What an earlier process said is worth nothing any more.
func Command() []string {
	return []string{
		"sh", "-c", `mkdir -p /var/run/ganesha "$0/` + DirRecovery + `" "$3" && rm -f "$2" "$3"/* && ln -s /dev/null "$3/` + FirstReading +
			`" && cp "$0/` + FileConf + `" "$1" && exec ganesha.nfsd -F -f "$1" -p "$2" -L STDERR`,
		"${DATA}", "${RUN}/" + FileLoaded, "${RUN}/" + FilePID, "${RUN}/" + DirReadings,
	}
}

// Report is what an agent says of an NFS server, as JSON in Daemon.status.report.
type Report struct {
	// Generation is the generation of the Daemon that the report was made for.
	Generation int64 `json:"generation,omitempty"`
	// Starting says that the process does not listen yet.
	Starting bool `json:"starting,omitempty"`
	// Current says that the process serves by the configuration of this generation, and by no other one, by its own word.
	Current bool `json:"current,omitempty"`
	// Exports says of each wanted pseudo path what the server answers when it is looked up: empty
	// when it is served. One that could not be looked up in time is not in it: nothing is known of
	// it.
	Exports map[string]string `json:"exports,omitempty"`
}

// NotExported is what a report says of a path that the server leaves out.
const NotExported = "the server does not export it"

// Parse reads a report; nil where there is none.
func Parse(text string) (*Report, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no report is no error
	}
	r := &Report{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("while reading the report of an NFS server: %w", err)
	}
	return r, nil
}
