package conformance

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// lieMark is in each text that a lying host makes up and that is no value of another host.
const lieMark = "LIE4711"

// liar makes up what a host says of itself and of its daemons. Whoever has the host's certificate can say all of it.
type liar struct {
	*rand.Rand
	host string
	// true are texts that are true of other hosts: their addresses, devices, releases and reports.
	true []string
}

// newLiar is a liar on a host, who knows what the others say.
func newLiar(seed uint64, host string, v *engine.View) *liar {
	l := &liar{Rand: rand.New(rand.NewPCG(seed, 0)), host: host}
	for i := range v.Hosts {
		h := &v.Hosts[i]
		l.true = append(l.true, h.Status.Addresses...)
		for j := range h.Status.Devices {
			l.true = append(l.true, h.Status.Devices[j].ID, h.Status.Devices[j].Path)
		}
	}
	for i := range v.Daemons {
		l.true = append(l.true, v.Daemons[i].Name, v.Daemons[i].Spec.ID, v.Daemons[i].Status.Version)
	}
	return l
}

func (l *liar) often() bool { return l.IntN(3) == 0 }

func (l *liar) text() string {
	made := []string{
		"", lieMark, "10.0.0.4\n[osd.1]\nlog_file = /tmp/" + lieMark + "\n# ", "--" + lieMark, "../../" + lieMark, "\x1b[2J" + lieMark, "a\x00" + lieMark,
		`"; ` + lieMark, "0.0.0.0", "::", "fe80::1%" + lieMark, "999.999.999", "99999999999999999999", "{", "[]", "null", strings.Repeat(lieMark, 500),
	}
	if n := l.IntN(len(made) + len(l.true)); n >= len(made) {
		return l.true[n-len(made)]
	}
	return made[l.IntN(len(made))]
}

func (l *liar) texts() (all []string) {
	for range l.IntN(4) {
		all = append(all, l.text())
	}
	return all
}

func (l *liar) number() int64 {
	return []int64{0, 1, -1, 2, 3, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64, l.Int64()}[l.IntN(10)]
}

func (l *liar) time(now time.Time) metav1.MicroTime {
	return metav1.NewMicroTime([]time.Time{{}, now, now.Add(time.Hour), now.AddDate(-300, 0, 0), now.AddDate(7000, 0, 0), time.Unix(0, 0)}[l.IntN(6)].UTC())
}

// hostStatus changes what the host says of itself.
func (l *liar) hostStatus(s *api.HostStatus, now time.Time) {
	if l.often() {
		s.Addresses = l.texts()
	}
	if l.often() {
		s.AgentVersion, s.BootID = l.text(), l.text()
	}
	if l.often() {
		s.Packages = map[string]api.Release{l.text(): api.Release(l.text()), "ceph": api.Release(l.text()), "glusterd": api.Release(l.text())}
	}
	if l.often() {
		s.Devices = nil
	}
	for i := range s.Devices {
		if l.often() {
			l.device(&s.Devices[i])
		}
	}
	for range l.IntN(3) {
		d := api.Device{Availability: api.DeviceAvailable, Size: resource.MustParse("10Gi"), Path: "/dev/sdb", Kind: api.DeviceDisk}
		l.device(&d)
		s.Devices = append(s.Devices, d)
	}
	if l.often() {
		s.Foreign = []api.ForeignDaemon{{Type: l.text(), ID: l.text(), PID: int32(l.number()), Started: l.time(now), Cluster: l.text(), Data: l.text(), Unit: l.text()}}
	}
}

func (l *liar) device(d *api.Device) {
	d.ID, d.Path, d.Parent, d.Links, d.Holders, d.MountPoints, d.Reasons = l.text(), l.text(), l.text(), l.texts(), l.texts(), l.texts(), l.texts()
	d.Vendor, d.Model, d.Serial, d.WWN = l.text(), l.text(), l.text(), l.text()
	d.Size = *resource.NewQuantity(l.number(), resource.BinarySI)
	if l.often() {
		d.Availability = api.DeviceUnavailable
	}
	if l.often() {
		d.Filesystem = &api.DeviceFilesystem{Type: l.text(), UUID: l.text(), Label: l.text()}
	}
	if l.often() {
		id := int32(l.number())
		d.Ceph = &api.DeviceCeph{FSID: l.text(), OSDID: &id, OSDUUID: l.text(), Part: l.text()}
	}
}

// daemonStatus changes what the host says of one of its daemons.
func (l *liar) daemonStatus(s *api.DaemonStatus, now time.Time) {
	states := []api.DaemonState{
		"", api.DaemonPending, api.DaemonPreparing, api.DaemonPrepared, api.DaemonRunning, api.DaemonBackOff, api.DaemonStopping, api.DaemonStopped, api.DaemonFailed,
		api.DaemonState(l.text()),
	}
	if l.often() {
		s.State = states[l.IntN(len(states))]
	}
	if l.often() {
		s.ObservedGeneration, s.PID, s.Restarts = l.number(), int32(l.number()), int32(l.number())
	}
	if l.often() {
		t := l.time(now)
		s.Started, s.LastExit = &t, &api.DaemonExit{
			Time: l.time(now), Reason: l.text(), Log: l.text(), Message: l.text(), Next: l.text(),
			Cause: api.Reason(l.text()),
		}
	}
	if l.often() {
		s.Version, s.Message = l.text(), l.text()
	}
	if l.often() {
		s.Report = l.report(s.Report)
	}
}

// values are those in a report that is JSON.
var values = regexp.MustCompile(`"[^"]*"|-?\d+|true|false`)

// report is another text, or a report in which some values are others.
func (l *liar) report(was string) string {
	if was == "" || l.IntN(4) == 0 {
		return l.text()
	}
	if l.IntN(6) == 0 {
		return was[:l.IntN(len(was))]
	}
	return values.ReplaceAllStringFunc(was, func(value string) string {
		switch {
		case l.IntN(12) != 0:
			return value
		case strings.HasPrefix(value, `"`):
			text, _ := json.Marshal(l.text())
			return string(text)
		case value == "true" || value == "false":
			return fmt.Sprint(l.IntN(2) == 0)
		}
		return fmt.Sprint(l.number())
	})
}

// lie is the view with what the liar says in it.
func (l *liar) lie(v *engine.View, now time.Time) *engine.View {
	x := *v
	x.Hosts, x.Daemons = slices.Clone(v.Hosts), slices.Clone(v.Daemons)
	for i := range x.Hosts {
		if x.Hosts[i].Name == l.host {
			x.Hosts[i] = *x.Hosts[i].DeepCopy()
			l.hostStatus(&x.Hosts[i].Status, now)
		}
	}
	for i := range x.Daemons {
		if d := &x.Daemons[i]; d.Spec.Host == l.host && l.IntN(2) == 0 {
			*d = *d.DeepCopy()
			l.daemonStatus(&d.Status, now)
		}
	}
	return &x
}

// What one host says of itself and of its daemons, whatever it is, ends no planning, comes into nothing that other hosts read or
// run, and stops or removes no daemon of theirs.
func believesNoLies(b *bench) {
	tries := 5000
	if testing.Short() {
		tries = 100
	}
	for round := range 4 { // while it comes up, too
		b.liesTo(uint64(round), tries)
		b.system.Act(b.World)
		b.round()
	}
	b.online("undisturbed")
	b.liesTo(4, 4*tries)
}

// liesTo has a host lie, again and again, to a leader that knows all else.
func (b *bench) liesTo(phase uint64, tries int) {
	v := b.observed()
	for i := range tries {
		seed := phase<<32 + uint64(i)
		l := newLiar(seed, b.Hosts[i%len(b.Hosts)].Name, v)
		b.judgeLie(seed, l, v)
	}
}

func (b *bench) judgeLie(seed uint64, l *liar, v *engine.View) {
	lied := l.lie(v, b.Now)
	asked := l.often() // an administrator asks for something, which may stop others
	for i := range lied.Hosts {
		if asked && l.often() {
			lied.Hosts[i].Spec.Mode = []api.HostMode{api.HostMaintenance, api.HostDrain}[l.IntN(2)]
		}
	}
	if asked && l.often() { // somebody deleted the Daemons of a type
		gone := l.IntN(1 + len(lied.Daemons))
		lied.Daemons = slices.DeleteFunc(lied.Daemons, func(d api.Daemon) bool { return gone < len(v.Daemons) && d.Spec.Type == v.Daemons[gone].Spec.Type })
	}
	defer func() {
		if p := recover(); p != nil {
			b.Errorf("planning panics by what host %s says (seed %d): %v\n%s", l.host, seed, p, debug.Stack())
		}
	}()
	p := b.driver.Plan(lied, b.Now)
	have := v.DaemonsByName()
	for i := range p.Daemons {
		d := &p.Daemons[i].Daemon
		if d.Spec.Host == l.host {
			continue
		}
		if text, _ := json.Marshal(d.Spec); strings.Contains(string(text), lieMark) {
			b.Errorf("the spec of %s on host %s has what host %s made up (seed %d): %s", d.Name, d.Spec.Host, l.host, seed, text)
		}
		if was := have[d.Name]; !asked && was != nil && was.Spec.State == api.WantRunning && d.Spec.State != api.WantRunning {
			b.Errorf("%s on host %s is brought to %s by what host %s says (seed %d): %s", d.Name, d.Spec.Host, d.Spec.State, l.host, seed, p.Daemons[i].Reason)
		}
	}
	for _, r := range p.Remove {
		if d := have[r.Name]; !asked && d != nil && d.Spec.Host != l.host {
			b.Errorf("%s on host %s is removed by what host %s says (seed %d): %s", d.Name, d.Spec.Host, l.host, seed, r.Reason)
		}
	}
	for _, c := range p.Commands {
		if text, _ := json.Marshal([]any{c.Verb, c.Object, c.Params}); strings.Contains(string(text), lieMark) {
			b.Errorf("%q of %s has what host %s made up (seed %d): %s", c.Verb, c.Object, l.host, seed, text)
		}
	}
}
