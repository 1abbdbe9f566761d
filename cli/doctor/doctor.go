// Package doctor checks everything that a person would check who is told that something is wrong, and says what to do. What is
// found out (Look) is apart from what it means (Examine): verdicts depend on the Facts alone.
package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/damaged"
	"github.com/holdfast-storage/holdfast/control/quorumview"
	"github.com/holdfast-storage/holdfast/internal/instance"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	OK Level = "OK"
	// Warn: nothing is broken yet, or nobody but a person can tell.
	Warn Level = "WARN"
	// Fail: something is broken, or will be very soon.
	Fail Level = "FAIL"
	// Skipped: it could not be checked; Message says why.
	Skipped Level = "SKIP"
)

// Finding is what one check found.
type Finding struct {
	Level Level `json:"level"`
	// Check is what was looked at, such as "quorum".
	Check string `json:"check"`
	// Message says what was found, Remedy what to do. There is a remedy for each Warn and Fail.
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// Facts are what was found out.
type Facts struct {
	Now     time.Time
	Version string
	DataDir string
	// Role is what runs in DataDir: "server", "agent" or nothing.
	Role string
	// Host is the name of this machine's host; empty where none is set up.
	Host string

	// Unreachable says why the API cannot be reached. Nothing of what follows, up to Local, is known then, but for the Servers that this
	// machine knows of, by their addresses alone.
	Unreachable error
	Servers     []Server
	// AsHost is set where the servers were asked as this machine's host, which has no kubeconfig: a host may ask whether they are ready, and no more.
	AsHost bool
	// Quorum is how the members of etcd are; nil when no server could say, and QuorumErr says why.
	Quorum    *quorumview.Status
	QuorumErr error
	Hosts     []api.Host
	Clusters  []api.StorageCluster
	Statuses  []api.StorageStatus
	Daemons   []api.Daemon
	Actions   []api.Action
	Resources []api.Resource
	Tokens    []Token
	// TokensErr says why the tokens cannot be looked at, such as by who may read no Secrets.
	TokensErr error
	// Kubernetes is set where the API is that of a Kubernetes cluster. Lease is that of the operator
	// that leads there; nil where it cannot be read, and LeaseErr says why.
	Kubernetes bool
	Lease      *coordinationv1.Lease
	LeaseErr   error
	// Database and Quota are the size of etcd's database on the server that was asked, and how large it may grow, in
	// bytes; zero when unknown.
	Database, Quota int64

	// Local is what was found on this machine.
	Local Local
}

// Server is one server, as seen from here.
type Server struct {
	Name, Address string
	// Err says why it is not ready, or cannot be reached.
	Err error
	// Refuses is set where it runs, and does not accept the certificate that it was asked with.
	Refuses bool
	// Took is how long its answer took.
	Took time.Duration
	// Own is set for that of this machine, and Reached where its machine can be reached: one that refuses the connection is there.
	Own, Reached bool
	// Skew is by how much its clock is ahead of this machine's; Known says whether it was found out.
	Skew  time.Duration
	Known bool
	// End is when the certificate that it shows ends; zero when unknown.
	End time.Time
}

// Token is a join token.
type Token struct {
	Name, Role string
	Expires    time.Time
	Used       bool
}

// Local is what was found on this machine.
type Local struct {
	// Free and Size are the bytes of the file system of the data directory; zero when unknown.
	Free, Size   uint64
	Certificates []Certificate
	// Exposed are keys that others may read or change.
	Exposed []string
	// Processes are daemons that run here, as "namespace.name", with a process id of each.
	Processes map[string]int
	// Records are the daemons that something is kept of here, as "namespace.name".
	Records []string
	// Twins are the instances that speak as this host, by its agent's word; none while it is one.
	Twins []instance.Instance
	// Damage is what the server here has written down of damaged files of etcd; nil without any.
	Damage *damaged.Note
	// Snapshot is when the newest backup was taken; zero when there is none.
	Snapshot time.Time
	// Problems say what could not be read.
	Problems []string
}

// Certificate is one on this machine's disk.
type Certificate struct {
	Path         string
	Begins, Ends time.Time
	Authority    bool
}

// checks are all checks, in the order in which they are shown. local ones need no API.
var checks = []struct {
	name  string
	local bool
	check func(*Facts) []Finding
}{
	{"api", true, checkAPI},
	{"operator", false, checkOperator},
	{"quorum", false, ofServers(checkQuorum)},
	{"database", false, ofServers(checkDatabase)},
	{"clock", false, checkClocks},
	{"agents", false, checkAgents},
	{"machines", true, checkMachines},
	{"versions", false, checkVersions},
	{"clusters", false, checkClusters},
	{"resources", false, checkResources},
	{"actions", false, checkActions},
	{"tokens", false, ofServers(checkTokens)},
	{"disk", true, checkDisk},
	{"certificates", true, checkCertificates},
	{"keys", true, checkKeys},
	{"strays", false, checkStrays},
	{"snapshots", true, ofServers(checkSnapshots)},
	{"files", true, ofServers(checkDamage)},
	{"files", true, checkProblems},
}

// Examine says what the facts mean.
func Examine(f *Facts) []Finding {
	var all []Finding
	for _, c := range checks {
		if f.Unreachable != nil && !c.local {
			all = append(all, Finding{Skipped, c.name, "this needs the API", ""})
			continue
		}
		for _, found := range c.check(f) {
			found.Check = c.name
			all = append(all, found)
		}
	}
	return all
}

// Failed says whether one of the findings is a failure.
func Failed(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Level == Fail })
}

func ok(format string, args ...any) []Finding {
	return []Finding{{Level: OK, Message: fmt.Sprintf(format, args...)}}
}

func finding(level Level, message, remedy string) []Finding {
	return []Finding{{Level: level, Message: message, Remedy: remedy}}
}

// orOK returns what was found, or that all is well.
func orOK(found []Finding, format string, args ...any) []Finding {
	if len(found) > 0 {
		return found
	}
	return ok(format, args...)
}

// counted says something of a number of things: of none, of one, or of many, where a %d stands for the number.
func counted(n int, none, one, many string) string {
	switch n {
	case 0:
		return none
	case 1:
		return one
	}
	return fmt.Sprintf(many, n)
}

// roughly says how long something takes, as roughly as people speak of it.
func roughly(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", d/time.Hour)
	}
	text := d.Round(time.Second).String()
	if minutes, whole := strings.CutSuffix(text, "m0s"); whole {
		return minutes + "m"
	}
	return text
}
