package control_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/internal/failpoint"
	"github.com/holdfast-storage/holdfast/test/tier"
)

// elsewhere are places in the code at which nobody is killed here, with the reason: a file, "file.go function", or "file.go function callee".
var elsewhere = map[string]string{
	"backups.go": "what is not whole has a hidden name and is removed by the next backup",
	"fetch.go":   "as in backups.go", "seat.go await copy": "as in backups.go",
	"follow.go": "TestAdopt_cut cuts off what a rotation writes", "trust.go": "as in follow.go",
	"certificates.go renew SaveChain": "as in follow.go", "heldseat.go start run": "as in follow.go",
	"certificates.go renewAll": "it writes what a start does", "certificates.go keep": "as in renewAll", "startup.go become keep": "as in renewAll",
	"agent.go rejoin": "it is a join", "agent.go open rejoin": "as in rejoin",
	"ownhost.go know":   "the list of servers is one file, which the host writes as well",
	"ask.go follow":     "as in ownhost.go and follow.go",
	"ask.go askForSeat": "as in follow", "ask.go replies": "as in adminOver", "ask.go adminOver": "a kubeconfig is one file",
	"seat.go standUp writeStandbyAdmin": "a start writes it as well",
	"seat.go await askForSeat":          "as in ask.go",
	"rejoin.go":                         "TestRejoin_serverCut", "startup.go become rejoin": "as in rejoin.go",
	"removed.go pruneRemoved": "TestSetAside_cut", "removed.go setAside pruneRemoved": "TestSetAside_cut", "removed.go moveDatabase RemoveAll": "TestSetAside_cut",
	// Which of two copies has more, or whether it can be told, is chance here.
	"removed.go moveDatabase Rename":        "TestSetAside_cut",
	"moved.go":                              "each start does it again; TestServerAddress of test/e2e",
	"heldseat.go start updatePeerURL":       "as in moved.go",
	"damage.go":                             "TestMoveAside of control/damaged cuts it off",
	"seat.go await replace":                 "as in damage.go",
	"seat.go take wait":                     "as in damage.go",
	"startup.go sitFirst wait":              "as in damage.go",
	"seat.go openStandby open":              "it reads",
	"seat.go openStandby writeStandbyAdmin": "a start writes it as well",
	"people.go":                             "it is one file, for a person, and a command that is repeated",
	"datadir.go Lock OpenFile":              "what is in the lock counts for nothing",
	// They are killed amid their work.
	"restore.go prepare": "it writes to restore.tmp alone", "restore.go source": "as in prepare", "restore.go Restore prepare": "as in prepare",
	"restore.go sameControlPlane": "it makes a file that a server of an older version did not have",
	"heldseat.go start startEtcd": "etcd writes by itself", "heldseat.go startEtcd Start": "as in startEtcd",
	"agent.go open load": "it reads", "restore.go open load": "it reads", "startup.go prepare load": "it reads",
}

// TestKilled kills servers, agents and restores before everything that they write, each in a process of its own, and starts them again as an
// administrator or an init system would. Which places there are is read from the code: one that nobody was killed at fails the test.
func TestKilled(t *testing.T) {
	tier.Full(t) // each death is a process of its own: minutes of a core
	t.Parallel()
	deaths := t.TempDir()
	t.Run("all", func(t *testing.T) {
		for _, s := range restoreStories(t, deaths) {
			t.Run("restore "+s.name, func(t *testing.T) { t.Parallel(); s.sweep(t) })
			if s.amid != "" {
				t.Run("restore amid "+s.name, func(t *testing.T) { t.Parallel(); s.killAmid(t) })
			}
		}
		t.Run("first", func(t *testing.T) { killFirst(t, filepath.Join(deaths, "first")) })
		t.Run("agent", func(t *testing.T) { killAgent(t, filepath.Join(deaths, "agent")) })
		t.Run("seat", func(t *testing.T) { killSeat(t, filepath.Join(deaths, "seat")) })
	})
	code, err := controlPlaces()
	if err != nil {
		t.Fatal(err)
	}
	swept(t, code, deaths)
}

// swept fails the test for each place that nobody died at, of which it is not said why.
func swept(t *testing.T, code *failpoint.Points, deaths string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(deaths, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var died []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		died = append(died, strings.Fields(string(text))...)
	}
	used := map[string]bool{}
	missing, all := code.Missing() // all of them: it was others who died
	for _, place := range missing {
		at, callee, _ := strings.Cut(place, " ")
		file, _, _ := strings.Cut(at, ":")
		why := []string{file, file + " " + code.In(at), file + " " + code.In(at) + " " + strings.Trim(callee, "()")}
		known := slices.IndexFunc(why, func(what string) bool { return elsewhere[what] != "" })
		if known >= 0 {
			used[why[known]] = true // some of it is come to here by chance
		} else if !slices.Contains(died, at) {
			t.Errorf("nobody was killed at %s in %s", place, code.In(at))
		}
	}
	for what := range maps.Keys(elsewhere) {
		if !used[what] {
			t.Errorf("%s is said to be swept elsewhere, and is not in the code", what)
		}
	}
	t.Logf("%d places in the code", all)
}
