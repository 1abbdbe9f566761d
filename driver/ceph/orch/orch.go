// Package orch decides what a Ceph cluster needs so that Holdfast answers its 'ceph orch', and no
// more than that: which managers load the module (orch/module), and when Ceph is asked to call it.
// It is pure.
package orch

import (
	"fmt"
	"slices"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/module"
)

// The verbs of commands. The back end is an option of a module of the managers whose values are
// bound to a list: Ceph takes another one by force alone (src/pybind/mgr/orchestrator/module.py).
const (
	// VerbBackend sets which module answers 'ceph orch': ParamBackend; empty for none.
	VerbBackend       = "orch set backend"
	VerbModuleEnable  = "mgr module enable"
	VerbModuleDisable = "mgr module disable"

	ParamBackend = "backend"
)

// Object is what decisions and commands are about.
const Object = "orch"

// OptionBackend is the option, of section mgr, that says which module answers.
const OptionBackend = "mgr/orchestrator/orchestrator"

const (
	optionModulePath = "mgr_module_path"
	// optionInitialModules are the modules that a new cluster has enabled from its birth: a module
	// that is enabled later costs a restart of the active manager.
	optionInitialModules = "mgr_initial_modules"
	initialModules       = "iostat nfs " + module.Name
)

// MonOptions has the mons of a new cluster enable the module.
func MonOptions(section map[string]string) { section[optionInitialModules] = initialModules }

// MgrOptions has a manager find the module.
func MgrOptions(section map[string]string) { section[optionModulePath] = "${DATA}/" + module.Dir }

// Facts are what Ceph says of 'ceph orch'. They are asked for only while Holdfast answers it, or
// did.
type Facts struct {
	// Backend is the module that answers; empty for none.
	Backend string
	// Enabled is set when the module of Holdfast is enabled, and Loaded has the managers that found
	// it when they started.
	Enabled bool
	Loaded  map[string]bool
}

// MgrMap is the part of 'mgr dump' that matters here.
type MgrMap struct {
	Epoch     int     `json:"epoch"`
	Active    string  `json:"active_name"`
	Available modules `json:"available_modules"`
	Standbys  []struct {
		Name      string  `json:"name"`
		Available modules `json:"available_modules"`
	} `json:"standbys"`
	Modules []string `json:"modules"`
}

type modules []struct {
	Name string `json:"name"`
}

func (m modules) loaded() bool {
	for _, x := range m {
		if x.Name == module.Name {
			return true
		}
	}
	return false
}

// Names are the managers that the map has.
func (m *MgrMap) Names() []string {
	names := []string{m.Active}
	for _, s := range m.Standbys {
		names = append(names, s.Name)
	}
	return names
}

// Facts are what the map says. stored are the options in the mons' database, by "section name".
func (m *MgrMap) Facts(stored map[string]string) *Facts {
	facts := &Facts{
		Backend: stored["mgr "+OptionBackend], Enabled: slices.Contains(m.Modules, module.Name),
		Loaded: map[string]bool{},
	}
	if m.Active != "" {
		facts.Loaded[m.Active] = m.Available.loaded()
	}
	for _, s := range m.Standbys {
		facts.Loaded[s.Name] = s.Available.loaded()
	}
	return facts
}

// Wanted says whether Holdfast has to answer 'ceph orch'.
func Wanted(spec *api.CephSpec) bool {
	return spec != nil && (spec.Orch == nil || spec.Orch.State != api.CephOrchDisabled)
}

// Has says whether managers have the module: also while Ceph still calls it although nobody wants it
// any more. Where Ceph was not asked, facts is nil: then they have it if one of them has it already.
func Has(spec *api.CephSpec, facts *Facts, mgrs []*api.Daemon) bool {
	if Wanted(spec) {
		return true
	}
	if facts == nil {
		had := func(d *api.Daemon) bool { return d.Spec.Parameters[api.ParameterOrch] != "" }
		return slices.ContainsFunc(mgrs, had)
	}
	return facts.Backend == module.Name || facts.Enabled
}

// born is api.ParameterOrch of a manager that had it before its first start.
const born = "born"

// Parameter is api.ParameterOrch of a manager: which process it had when it was given the module.
// Of that process nobody expects that it has loaded it.
func Parameter(have *api.Daemon) string {
	switch {
	case have == nil:
		return born
	case have.Spec.Parameters[api.ParameterOrch] != "":
		return have.Spec.Parameters[api.ParameterOrch]
	case have.Status.Started == nil:
		return born
	}
	return started(have)
}

func started(d *api.Daemon) string {
	if d.Status.Started == nil {
		return ""
	}
	return d.Status.Started.UTC().Format(time.RFC3339Nano)
}

// Misses says whether a manager was started before it was given the module that it has to load. One
// that was started since and has not loaded it would not do so at the next start either.
func Misses(mgr *api.Daemon, spec *api.CephSpec, facts *Facts) bool {
	return facts != nil && Wanted(spec) && !facts.Loaded[mgr.Spec.ID] &&
		mgr.Spec.Parameters[api.ParameterOrch] != "" && mgr.Spec.Parameters[api.ParameterOrch] == started(mgr)
}

// Step is what comes next: a command, or something that it waits for.
type Step struct {
	// Verb is the command; empty for none. Params and Why go with it.
	Verb   string
	Params map[string]string
	// Reason and Why say why a command is given, or what is waited for.
	Reason api.Reason
	Why    string
}

// enabled says why Holdfast is made the back end.
const enabled = "spec.ceph.orch.state is Enabled"

// Next is the next step, nil where there is none. Ceph calls the module once all managers have
// loaded it: one that took over without it would leave Ceph in HEALTH_ERR. A back end that somebody
// else chose stays.
func Next(spec *api.CephSpec, facts *Facts, mgrs []*api.Daemon, mgrAvailable bool) *Step {
	if !Wanted(spec) {
		return drop(facts)
	}
	if facts.Backend != "" && facts.Backend != module.Name {
		return &Step{Reason: api.ReasonConflict, Why: fmt.Sprintf("another module, %s, answers 'ceph orch': run "+
			"'holdfast ceph orch set backend \"\"', or set spec.ceph.orch.state to Disabled", facts.Backend)}
	}
	if !mgrAvailable { // which Ceph says itself: until a manager is active, nobody knows what it loads
		return atBirth(facts, mgrs)
	}
	if wait := awaitMgr(facts, mgrs); wait != nil {
		return wait
	}
	switch {
	case !facts.Enabled:
		return &Step{Verb: VerbModuleEnable, Reason: api.ReasonDeclared, Why: enabled}
	case facts.Backend == "":
		return &Step{Verb: VerbBackend, Params: backend(module.Name), Reason: api.ReasonDeclared, Why: enabled}
	}
	return nil
}

// atBirth sets the back end of a new cluster while its first manager starts: all that it has were given
// the module before, and a later round would hold up the bring-up.
func atBirth(facts *Facts, mgrs []*api.Daemon) *Step {
	old := func(d *api.Daemon) bool { return d.Spec.Parameters[api.ParameterOrch] != born }
	if !facts.Enabled || facts.Backend != "" || len(mgrs) == 0 || slices.ContainsFunc(mgrs, old) {
		return nil
	}
	return &Step{Verb: VerbBackend, Params: backend(module.Name), Reason: api.ReasonDeclared, Why: enabled}
}

// awaitMgr waits for the first manager that has not loaded the module, but for those that Holdfast
// does not start.
func awaitMgr(facts *Facts, mgrs []*api.Daemon) *Step {
	for _, d := range mgrs {
		if facts.Loaded[d.Spec.ID] || d.Spec.State != api.WantRunning || d.Spec.Parameters[api.ParameterForeign] != "" {
			continue
		}
		if d.Status.State != api.DaemonRunning {
			return &Step{Reason: api.ReasonStarting, Why: fmt.Sprintf("waiting for mgr.%s to run", d.Spec.ID)}
		}
		why := fmt.Sprintf("waiting for mgr.%s to load the module %s", d.Spec.ID, module.Name)
		return &Step{Reason: api.ReasonRestarting, Why: why}
	}
	return nil
}

// Without is a plan without what is said of 'ceph orch': the storage is as well without it.
func Without(p *engine.Plan) *engine.Plan {
	rest := *p
	isOrch := func(d api.Decision) bool { return d.Object == Object }
	rest.Decisions = slices.DeleteFunc(slices.Clone(p.Decisions), isOrch)
	return &rest
}

func backend(name string) map[string]string { return map[string]string{ParamBackend: name} }

// drop takes away what Holdfast has set.
func drop(facts *Facts) *Step {
	const why = "spec.ceph.orch.state is Disabled"
	switch {
	case facts.Backend == module.Name:
		return &Step{Verb: VerbBackend, Params: backend(""), Reason: api.ReasonRemoving, Why: why}
	case facts.Enabled:
		return &Step{Verb: VerbModuleDisable, Reason: api.ReasonRemoving, Why: why}
	}
	return nil
}

// Command is a Step's command as Ceph documents its own.
func Command(verb string, params map[string]string) map[string]any {
	switch {
	case verb != VerbBackend:
		return map[string]any{"prefix": verb, "module": module.Name}
	case params[ParamBackend] == "":
		return map[string]any{"prefix": "config rm", "who": "mgr", "name": OptionBackend}
	default:
		return map[string]any{
			"prefix": "config set", "who": "mgr", "name": OptionBackend, "value": params[ParamBackend], "force": true,
		}
	}
}

// After is what Ceph will say after a command.
func (f *Facts) After(verb string, params map[string]string) *Facts {
	if f == nil {
		return nil
	}
	now := *f
	switch verb {
	case VerbBackend:
		now.Backend = params[ParamBackend]
	default:
		now.Enabled = verb == VerbModuleEnable
	}
	return &now
}
