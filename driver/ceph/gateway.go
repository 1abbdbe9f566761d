package ceph

import (
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/asked"
	"github.com/holdfast-storage/holdfast/driver/ceph/certificate"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/rgw"
)

// finishGateway completes the Daemon of a gateway.
func (p *planner) finishGateway(x *storePlan, d *api.Daemon, at seat) {
	if have := p.have[d.Name]; have != nil && x.frozen {
		was := have.Spec.DeepCopy()
		d.Spec.Command, d.Spec.Files, d.Spec.Parameters = was.Command, was.Files, was.Parameters
		return
	}
	url, serves, frontend := "http://"+x.listens(at), "", "beast endpoint="+x.listens(at)
	if name := x.tls(); name != "" {
		url = "https://" + x.listens(at)
		frontend = "beast ssl_endpoint=" + x.listens(at) + " ssl_certificate=${DATA}/" + rgw.FileCertificate + " ssl_private_key=${DATA}/" + rgw.FileKey
		if c := p.certificate(x); c != "" {
			d.Spec.Parameters[rgw.ParamCertificate], serves = c, " "+c
		}
	}
	d.Spec.Parameters[rgw.ParamStore], d.Spec.Parameters[rgw.ParamURL] = x.Name, url
	serves = url + serves
	d.Spec.Parameters[rgw.ParamServes], d.Spec.Parameters[api.ParameterReport] = serves, "gateway"
	entity := rgw.Entity(at.id)
	d.Spec.Command = rgw.Command(entity)
	options := daemonOptions(rgw.Type, at.address)
	options["keyring"], options["rgw_frontends"] = "${DATA}/"+FileKeyring, frontend
	options["rgw_zone"], options["rgw_zonegroup"] = x.Name, x.Name
	for _, option := range rgw.RootOptions {
		options[option] = rgw.RootPool(x.Name)
	}
	facts := p.confFacts()
	conf := facts.render(map[string]map[string]string{"global": facts.global(), entity: options}, d.Spec.Parameters[ParamConfig])
	d.Spec.Files[0].Sources = []api.FileSource{{Text: &conf}}
	zonegroup, zone := rgw.Zonegroup(x.Name), rgw.Zone(x.Name)
	d.Spec.Files = append(d.Spec.Files,
		api.DaemonFile{Path: rgw.FileZonegroup, Sources: []api.FileSource{{Text: &zonegroup}}},
		api.DaemonFile{Path: rgw.FileZone, Sources: []api.FileSource{{Text: &zone}}})
	if x.tls() != "" {
		d.Spec.Files = append(d.Spec.Files, secretFile(rgw.FileCertificate, x.tls(), certificate.Entry),
			secretFile(rgw.FileKey, x.tls(), certificate.KeyEntry))
	}
	// The last one: who is cut off while they are written has it say what is there.
	d.Spec.Files = append(d.Spec.Files, api.DaemonFile{Path: rgw.FileServes, Sources: []api.FileSource{{Text: &serves}}})
}

// certificate is the fingerprint of what gateways are to show; empty where nobody can tell.
func (p *planner) certificate(x *storePlan) string {
	if !p.reachable() {
		return ""
	}
	return p.seen.Certificates[x.tls()].Fingerprint
}

func secretFile(path, secret, key string) api.DaemonFile {
	return api.DaemonFile{Path: path, Sources: []api.FileSource{{Secret: &api.SecretKey{Name: secret, Key: key}}}}
}

// listens is where the gateway of a seat listens.
func (x *storePlan) listens(at seat) string {
	return net.JoinHostPort(at.address, strconv.Itoa(int(x.port())))
}

// restartGateways ends the processes of gateways that serve by what is not wanted any more, another port or certificate, one after the other. Each is
// started again when it has ended; the next one has its turn when all others answer.
func (p *planner) restartGateways() {
	for _, x := range p.stores {
		var stale []*api.Daemon
		busy := false
		for _, d := range p.membersOf(&x.service.crew) {
			switch active := p.hosts[d.Spec.Host].ModeOf() == api.HostActive && d.DeletionTimestamp == nil; {
			case !active || asked.Stopped(d):
			case told(d):
				busy, p.stop[d.Name] = true, !ended(d)
			case p.stale(d):
				stale = append(stale, d)
			case !p.gatewayAnswers(d):
				busy = true
			}
		}
		if len(stale) > 0 && !busy {
			d := slices.MinFunc(stale, func(a, b *api.Daemon) int { return strings.Compare(a.Name, b.Name) })
			p.stop[d.Name] = true
			p.decide(api.VerdictDo, api.ReasonRestarting, label(d), "restarted on host %s, to serve as %s", d.Spec.Host,
				d.Spec.Parameters[rgw.ParamServes])
		}
		if busy || len(stale) > 0 {
			p.moving = true
		}
	}
}

// stale says whether the process of a gateway serves by something else than its Daemon says, which its agent has seen.
func (p *planner) stale(d *api.Daemon) bool {
	if !p.reachable() || d.Status.State != api.DaemonRunning || d.Status.ObservedGeneration != d.Generation || !p.hosts[d.Spec.Host].AgentHeard() {
		return false
	}
	r := p.seen.Gateways[d.Name]
	return r != nil && r.Serves != "" && r.Serves != d.Spec.Parameters[rgw.ParamServes]
}

// fillGateways reads what agents say of their gateways. What was said of a process that is not there any more holds for none: by it, one that was
// just restarted would be so again, and again.
func (o *Observation) fillGateways(daemons []api.Daemon) {
	o.Gateways = map[string]*rgw.Report{}
	for i := range daemons {
		if d := &daemons[i]; d.Spec.Type == rgw.Type {
			// One that cannot be read is of a newer agent, and there is none.
			r, err := rgw.Parse(d.Status.Report)
			if err != nil || r == nil {
				continue
			}
			if r.PID != d.Status.PID {
				r = &rgw.Report{Done: r.Done}
			}
			o.Gateways[d.Name] = r
		}
	}
}

// gateways has those answer that will run, by what their Daemons say.
func (f *foresight) gateways() {
	for _, d := range f.daemonsOf(rgw.Type) {
		r := f.Gateways[d.Name]
		if !f.runs(d, r != nil && r.Up) {
			continue
		}
		if r == nil {
			r = &rgw.Report{Done: map[string]string{}}
		}
		if r.Up = true; f.startsAnew(d) {
			r.Serves = d.Spec.Parameters[rgw.ParamServes]
		}
		f.Gateways[d.Name] = r
	}
}

// startsAnew says whether the process of a daemon that will run is another one than now.
func (f *foresight) startsAnew(d *api.Daemon) bool {
	i := slices.IndexFunc(f.before.Daemons, func(x api.Daemon) bool { return x.Name == d.Name })
	return i < 0 || f.before.Daemons[i].Status.State != api.DaemonRunning
}

// gatewaysSaid is a copy of what agents say of gateways, to be changed by commands.
func gatewaysSaid(reports map[string]*rgw.Report) map[string]*rgw.Report {
	copied := make(map[string]*rgw.Report, len(reports))
	for name, r := range reports {
		c := *r
		if c.Done = maps.Clone(r.Done); c.Done == nil {
			c.Done = map[string]string{}
		}
		copied[name] = &c
	}
	return copied
}

// carriedOut has the agent of a gateway say that it did what it was asked for.
func (f *foresight) carriedOut(cmd engine.Command) {
	if g := f.Gateways[cmd.Daemon]; g != nil {
		g.Done[cmd.Object] = cmd.Params[rgw.ParamWord]
	}
}
