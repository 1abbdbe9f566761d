package e2e

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// applyPlanned shows the plan of a manifest, has exactly that done by its name, and fails the test if anything else came of it, or less. It
// returns what happened. Of a world that moves meanwhile another plan is made, as a person is told to.
func (b *bed) applyPlanned(manifest string) []string {
	b.Helper()
	var text string
	var plan api.Plan
	var before world
	b.await("a plan to be applied", func() error {
		text, plan = b.planned(manifest)
		before = b.world()
		out, code := b.holdfastSays("apply", "--plan", plan.Name, "--wait", "--timeout", "100s")
		if code == 3 && strings.Contains(out, "plan "+plan.Name+" is out of date; nothing was changed") {
			return errors.New(out)
		} else if code != 0 {
			b.Fatalf("holdfast apply ended with %d:\n%s", code, out)
		}
		return nil
	})
	b.await("nothing of the plan to be left", func() error {
		if left, code := b.plan(manifest, "--dry-run", "--exit-code"); code != 0 {
			return fmt.Errorf("it ends with %d:\n%s", code, left)
		}
		return nil
	})
	after := b.world()
	happened := happenedSince(before, after)
	compare(b, "what happened, and what "+plan.Name+" told", happened, foretold(plan.ProposalOf().Changes))
	compare(b, "devices that are used, and those of "+plan.Name, usedSince(before, after), takes(plan.ProposalOf().Changes, before))
	if b.Failed() {
		b.Logf("the plan:\n%s", text)
	}
	return happened
}

// planned is a plan as it is shown, and as it is kept: both say the same.
func (b *bed) planned(manifest string) (string, api.Plan) {
	b.Helper()
	text, code := b.plan(manifest)
	name := regexp.MustCompile(`(?m)^apply it with: holdfast apply --plan (plan-[0-9a-f]+)$`).FindStringSubmatch(text)
	if code != 0 || name == nil {
		b.Fatalf("holdfast plan ended with %d, and names no plan:\n%s", code, text)
	}
	plan, err := read[api.Plan](b, 1, "plans", name[1])
	if err != nil {
		b.Fatal(err)
	}
	compare(b, "what the plan shows, and what it holds", shown(text), held(plan.ProposalOf().Changes))
	return text, plan
}

// world is what a plan may change.
type world struct {
	daemons map[types.UID]api.Daemon
	free    map[string]bool // the devices that something new can be put on
	events  []api.ClusterEvent
}

func (b *bed) world() (w world) {
	b.Helper()
	w.daemons, w.free = map[types.UID]api.Daemon{}, map[string]bool{}
	for _, d := range b.daemons() {
		w.daemons[d.UID] = d
	}
	for _, h := range list[api.Host](b, "hosts") {
		for _, d := range h.Status.Devices {
			w.free[d.ID] = d.Availability == api.DeviceAvailable
		}
	}
	w.events = list[api.ClusterEvent](b, "clusterevents")
	return w
}

var onDevice = regexp.MustCompile(`, on device (\S+)`)

// foretold is what a plan says of daemons, a line for each thing: which come to which hosts and devices, go, start again, or change.
func foretold(changes []api.PlanChange) (lines []string) {
	stop := map[string]bool{}
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, c := range changes {
		name, of := strings.CutPrefix(c.Object, "daemon/")
		switch _, said, _ := strings.Cut(c.Message, ", "); {
		case !of:
		case c.Verb == plans.VerbCreate:
			say("%s comes to %s", name, c.Host)
			for _, device := range onDevice.FindAllStringSubmatch(c.Message, -1) {
				say("%s takes %s", name, device[1])
			}
		case c.Verb == plans.VerbRemove:
			say("%s goes from %s", name, c.Host)
		case strings.HasPrefix(said, "wanted Stopped"):
			stop[name] = true
			say("%s changes", name)
		default:
			if stop[name] && strings.HasPrefix(said, "wanted Running") {
				say("%s starts again", name)
			}
			say("%s changes", name)
		}
	}
	return set(lines)
}

// happenedSince is the same as it came to be, by the daemons themselves, the hosts' own inventories, and what was told of meanwhile.
func happenedSince(before, after world) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for uid, d := range after.daemons {
		was, stayed := before.daemons[uid]
		switch {
		case !stayed:
			say("%s comes to %s", d.Name, d.Spec.Host)
			for _, device := range d.Spec.Devices {
				say("%s takes %s", d.Name, device.ID)
			}
		case was.Status.PID != d.Status.PID:
			say("%s starts again", d.Name)
		}
	}
	for uid, d := range before.daemons {
		if _, stayed := after.daemons[uid]; !stayed {
			say("%s goes from %s", d.Name, d.Spec.Host)
		}
	}
	return set(append(lines, toldSince(before, after)...))
}

var placed = regexp.MustCompile(`^a \S+ was placed on host (\S+)$`)

// toldSince is what the events say that came since: also of what came and went meanwhile, or ended without being asked to. A new daemon may start more
// than once, as a mgr does whose key is on its way.
func toldSince(before, after world) (lines []string) {
	last, had := int64(0), map[string]bool{}
	for _, d := range before.daemons {
		had[d.Name] = true
	}
	for _, e := range before.events {
		last = max(last, e.Sequence)
	}
	for _, e := range after.events {
		for _, object := range append(e.Objects, e.Object) {
			name, of := strings.CutPrefix(object, "daemon/")
			host := placed.FindStringSubmatch(e.Message)
			switch {
			case !of || e.Sequence <= last:
			case e.Code == "DAEMON_NEW" && host != nil:
				lines = append(lines, name+" comes to "+host[1])
			case e.Code == "DAEMON_CHANGED" && !strings.HasSuffix(e.Message, "is being removed"):
				lines = append(lines, name+" changes")
			case had[name] && (e.Code == "DAEMON_RESTARTED" || e.Code == "DAEMON_FAILED"):
				lines = append(lines, name+": "+e.Message)
			}
		}
	}
	return lines
}

// held is what a plan says as it is kept: what is done with which daemon of which host, and on which devices.
func held(changes []api.PlanChange) (lines []string) {
	for _, c := range changes {
		if !strings.HasPrefix(c.Object, "daemon/") {
			continue
		}
		label, said, _ := strings.Cut(c.Message, ", ")
		verb := map[string]string{plans.VerbCreate: "start", plans.VerbChange: "change", plans.VerbRemove: "remove"}[c.Verb]
		if verb == "start" && strings.HasPrefix(said, "wanted "+string(api.WantPrepared)) {
			verb = "prepare"
		}
		lines = append(lines, fmt.Sprintf("%s %s on %s", verb, label, c.Host))
		for _, device := range onDevice.FindAllStringSubmatch(c.Message, -1) {
			if verb == "prepare" || c.Risk == api.RiskData {
				lines = append(lines, fmt.Sprintf("%s device %s on %s", verb, device[1], c.Host))
			}
		}
	}
	return set(lines)
}

var (
	doing  = regexp.MustCompile(`^(?: *\d+(?:-\d+)? |    )(start|prepare|change|remove|run)\b`)
	doneAt = regexp.MustCompile(`^ {8}(\S+)  +(\S.*)$`)
	shows  = regexp.MustCompile(`^ {10}device (\S+)`)
	run    = regexp.MustCompile(`^(\w+\.)(\d+)-(\d+)$`)
)

// shown is the same as a person reads it.
func shown(text string) (lines []string) {
	verb, host := "", ""
	for _, line := range strings.Split(text, "\n") {
		if at := doing.FindStringSubmatch(line); at != nil {
			verb = at[1]
		} else if at := doneAt.FindStringSubmatch(line); at != nil && verb != "run" {
			host = at[1]
			for _, label := range spread(strings.Fields(at[2])) {
				lines = append(lines, fmt.Sprintf("%s %s on %s", verb, label, host))
			}
		} else if at := shows.FindStringSubmatch(line); at != nil {
			lines = append(lines, fmt.Sprintf("%s device %s on %s", verb, at[1], host))
		}
	}
	return set(lines)
}

// spread makes osd.0, osd.1 and osd.2 of osd.0-2.
func spread(labels []string) (all []string) {
	for _, label := range labels {
		at := run.FindStringSubmatch(label)
		if at == nil {
			all = append(all, label)
			continue
		}
		first, _ := strconv.Atoi(at[2])
		last, _ := strconv.Atoi(at[3])
		for n := first; n <= last; n++ {
			all = append(all, at[1]+strconv.Itoa(n))
		}
	}
	return all
}

func set(lines []string) []string {
	slices.Sort(lines)
	return slices.Compact(lines)
}

// usedSince are the devices that nothing was on before, by the hosts' own inventories.
func usedSince(before, after world) (used []string) {
	for id, free := range before.free {
		if free && !after.free[id] {
			used = append(used, id)
		}
	}
	return set(used)
}

// takes are the devices that a plan has used that nothing is on yet.
func takes(changes []api.PlanChange, before world) (used []string) {
	for _, c := range changes {
		for _, device := range onDevice.FindAllStringSubmatch(c.Message, -1) {
			if c.Verb == plans.VerbCreate && before.free[device[1]] {
				used = append(used, device[1])
			}
		}
	}
	return set(used)
}
