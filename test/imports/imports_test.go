// Package imports holds the rules of who may import what. Imports are the architecture: they go one way, and what a package
// cannot import it cannot come to depend on.
package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/holdfast-storage/holdfast/"

// rule forbids imports. A path stands for itself and everything below it.
type rule struct {
	// from are packages of this module.
	from string
	// except are packages below from that the rule does not bind.
	except []string
	// bad maps an import path to the reason why it may not be there.
	bad map[string]string
	// only, where set, lists everything from outside the module and the standard library that may be there, and onlyWhy
	// why.
	only    []string
	onlyWhy string
}

// The rules bind a package together with all packages of this module that it imports, also by way of others. What a package
// from outside imports is its own affair: apimachinery, for one, knows net/http.
var rules = []rule{
	{from: "api", bad: map[string]string{
		module + "engine": "the kinds are below everything else", module + "driver": "the kinds are below everything else",
		module + "platform": "the kinds are below everything else", module + "agent": "the kinds are below everything else",
		module + "control": "the kinds are below everything else", module + "internal": "others import the kinds, and cannot import internal packages",
	}},
	{from: "api/v1alpha1", only: []string{"k8s.io/apimachinery"}, onlyWhy: "whoever imports the kinds must get nothing else with them"},
	{from: "action", bad: map[string]string{
		module + "engine":   "agents carry out actions, too, and import no engine",
		module + "driver":   "what an action does is its Handler's affair",
		module + "platform": "actions are stored through the package's Store alone",
		module + "agent":    "the leader carries out actions, too",
		module + "control":  "agents run on machines that have no control plane",
		"k8s.io/client-go":  "actions are stored through the package's Store alone",
		"net/http":          "the package does no I/O of its own",
	}},
	{from: "engine", bad: map[string]string{
		"go.etcd.io/etcd":                "the engine reads and writes through its Store alone",
		"k8s.io/client-go":               "the engine reads and writes through its Store alone",
		"k8s.io/api":                     "the engine knows no Kubernetes kinds; in the bare home there are hardly any",
		"sigs.k8s.io/controller-runtime": "the engine reads and writes through its Store alone",
		"net/http":                       "the engine does no I/O: what it decides must depend on its view alone",
		"os/exec":                        "the engine does no I/O: what it decides must depend on its view alone",
		module + "driver":                "the engine knows no storage system; drivers import the engine",
		module + "platform":              "the engine runs in both homes",
		module + "control":               "the engine runs in both homes",
		module + "agent":                 "agents get finished Daemons and report a status; that is all that joins them to the engine",
		module + "cli":                   "the command line is above everything else",
	}},
	{from: "driver", bad: map[string]string{
		module + "platform":              "a driver works in both homes",
		module + "control":               "a driver works in both homes",
		module + "agent":                 "agents get finished Daemons; what both must agree on stands in the Daemon",
		module + "cli":                   "the command line is above everything else",
		"go.etcd.io/etcd":                "a driver sees the world through the engine's View",
		"k8s.io/client-go":               "a driver sees the world through the engine's View",
		"sigs.k8s.io/controller-runtime": "a driver sees the world through the engine's View",
	}},
	{from: "agent", bad: map[string]string{
		module + "engine":   "an agent does what its Daemons say, and decides nothing",
		module + "driver":   "an agent does what its Daemons say, and decides nothing",
		module + "platform": "the agent is the other end of the platform, and meets it in the API",
		module + "control":  "agents run on machines that have no control plane",
		"go.etcd.io/etcd":   "agents reach the API alone",
	}},
	{from: "leader", bad: map[string]string{
		module + "driver":                "drivers come in by leader.Config, and hand out their own action handlers",
		module + "platform":              "the leader runs in both homes",
		module + "control":               "the leader runs in both homes",
		module + "agent":                 "the leader runs in both homes; the kinds of actions of agents come in by leader.Config",
		module + "cli":                   "the command line is above everything else",
		"go.etcd.io/etcd":                "the leader reads and writes through its Store alone",
		"k8s.io/client-go":               "the leader reads and writes through its Store alone",
		"sigs.k8s.io/controller-runtime": "the leader reads and writes through its Store alone",
	}},
	{from: "propose", bad: map[string]string{
		module + "driver":                "drivers come in by propose.Home",
		module + "platform":              "what would come of a change is asked in both homes",
		module + "control":               "what would come of a change is asked in both homes",
		module + "agent":                 "what would come of a change is asked in both homes",
		module + "cli":                   "the command line is above everything else",
		"k8s.io/client-go":               "a proposal depends on what it is given alone, and writes nothing",
		"sigs.k8s.io/controller-runtime": "a proposal depends on what it is given alone, and writes nothing",
		"net/http":                       "a proposal depends on what it is given alone, and writes nothing",
	}},
	{from: "", except: []string{"cli", "cmd", "test"}, bad: map[string]string{module + "cli": "the command line is above everything else"}},
	{from: "platform", bad: map[string]string{
		module + "driver":  "a platform runs any storage system's daemons",
		module + "control": "the platform meets the control plane in the API",
		module + "agent":   "the platform meets the agents in the API",
		"go.etcd.io/etcd":  "the platform reaches the API alone",
	}},
	{from: "control", bad: map[string]string{
		module + "engine": "the control plane serves the API; what is decided with it is the engine's",
		// What driver/etcd decides is about the control plane itself.
		module + "driver/ceph": "the control plane knows no storage system",
		module + "platform":    "the control plane serves the API to the platform",
		module + "cli":         "the command line is above everything else",
	}},
	{from: "internal", bad: map[string]string{
		module + "engine": "internal packages are leaves", module + "driver": "internal packages are leaves",
		module + "platform": "internal packages are leaves", module + "agent": "internal packages are leaves",
		module + "control": "internal packages are leaves", module + "cli": "internal packages are leaves",
		module + "leader": "internal packages are leaves",
	}},
	{from: "", except: []string{"test", "engine/conformance", "engine/sim", "engine/storetest", "driver/ceph/radostest", "action/actiontest", "agent/service/servicetest"}, bad: map[string]string{
		module + "action/actiontest":         "what is simulated is for tests, and has no place in the program",
		module + "agent/service/servicetest": "the suite is for tests, and has no place in the program",
		module + "internal/failpoint":        "it reads the source, which is not there where the program runs",
		module + "engine/sim":                "what is simulated is for tests, and has no place in the program",
		module + "engine/conformance":        "the suite is for tests, and has no place in the program",
		module + "engine/storetest":          "what is simulated is for tests, and has no place in the program",
		module + "driver/ceph/radostest":     "what is simulated is for tests, and has no place in the program",
		module + "test":                      "tests are above everything else",
	}},
	{from: "test", except: []string{"test/kube"}, bad: map[string]string{
		module + "test/kube": "hack/run-tests builds a Kubernetes for tests and the command below test/kube alone",
	}},
	{from: "", bad: map[string]string{
		"github.com/stretchr/testify": "tests use the standard library and go-cmp",
		"gopkg.in/yaml.v3":            "sigs.k8s.io/yaml reads the tags that the kinds have",
		"log":                         "log/slog is the one logger",
		"math/rand":                   "math/rand/v2 needs no seed",
	}},
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func TestImports(t *testing.T) {
	packages, err := list()
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 10 {
		t.Fatalf("only %d packages were found", len(packages))
	}
	for _, r := range rules {
		bound := 0
		for path := range packages {
			if r.binds(path) {
				bound++
				r.check(t, packages, path)
			}
		}
		if bound == 0 {
			t.Errorf("the rule for %q binds no package: was the folder renamed?", r.from)
		}
	}
}

func TestRules_catchViolations(t *testing.T) {
	packages := map[string]pkg{
		module + "engine":     {Imports: []string{"context", module + "engine/sub"}},
		module + "engine/sub": {Imports: []string{"net/http"}},
		module + "engines":    {Imports: []string{"net/http"}},
	}
	r := rule{from: "engine", bad: map[string]string{"net/http": "because"}}
	if got := strings.Join(r.violation(packages, module+"engine"), " > "); got != module+"engine > "+module+"engine/sub > net/http" {
		t.Errorf("violation = %q", got)
	}
	strict := rule{only: []string{"k8s.io/apimachinery"}, onlyWhy: "because"}
	for path, want := range map[string]string{
		"net/http": "", "k8s.io/apimachinery/pkg/types": "", module + "api": "", "k8s.io/api/core/v1": "because",
	} {
		if got := strict.reason(path); got != want {
			t.Errorf("reason for %s = %q, want %q", path, got, want)
		}
	}
	if r.binds(module + "engines") {
		t.Error("a folder that begins alike is bound")
	}
}

func (r rule) binds(path string) bool {
	for _, e := range r.except {
		if under(path, module+e) {
			return false
		}
	}
	return r.from == "" || under(path, module+r.from)
}

func (r rule) check(t *testing.T, packages map[string]pkg, path string) {
	t.Helper()
	if chain := r.violation(packages, path); chain != nil {
		last := chain[len(chain)-1]
		t.Errorf("%s must not come to import %s: %s\n\t%s", path, last, r.reason(last), strings.Join(chain, "\n\t> "))
	}
}

// violation returns the way from a package to an import that is forbidden, or nil.
func (r rule) violation(packages map[string]pkg, path string) []string {
	return r.walk(packages, path, map[string]bool{})
}

func (r rule) walk(packages map[string]pkg, path string, seen map[string]bool) []string {
	if seen[path] {
		return nil
	}
	seen[path] = true
	for _, i := range packages[path].Imports {
		if r.reason(i) != "" {
			return []string{path, i}
		}
		if strings.HasPrefix(i, module) {
			if chain := r.walk(packages, i, seen); chain != nil {
				return append([]string{path}, chain...)
			}
		}
	}
	return nil
}

// reason says why an import is forbidden; it is empty for one that is not.
func (r rule) reason(path string) string {
	for bad, why := range r.bad {
		// Of the standard library the very package is meant: log is not log/slog.
		if path == bad || strings.Contains(bad, ".") && under(path, bad) {
			return why
		}
	}
	outside := strings.Contains(strings.Split(path, "/")[0], ".") && !under(path, strings.TrimSuffix(module, "/"))
	if r.only == nil || !outside || slices.ContainsFunc(r.only, func(allowed string) bool { return under(path, allowed) }) {
		return ""
	}
	return r.onlyWhy
}

func under(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// list asks the go command for the module's packages and what they import themselves; tests do not count.
func list() (map[string]pkg, error) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = errors.Join(err, errors.New(string(exit.Stderr)))
		}
		return nil, err
	}
	packages := map[string]pkg{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages[p.ImportPath] = p
	}
}
