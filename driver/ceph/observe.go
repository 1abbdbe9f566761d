package ceph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/certificate"
	"github.com/holdfast-storage/holdfast/driver/ceph/placing"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/driver/nfs"
	"github.com/holdfast-storage/holdfast/engine"
)

const (
	// firstAnswer is how long a round waits for mons that have never answered: long enough to meet the moment when they do,
	// short enough that the round soon looks at everything else again.
	firstAnswer = 250 * time.Millisecond
	// laterAnswer is how long it waits for mons that answered the last time.
	laterAnswer = 3 * time.Second
)

// command is one of Ceph's, as the JSON object that it documents.
type command map[string]any

func ask(prefix string) command { return command{"prefix": prefix, "format": "json"} }

// Observe asks the cluster for its state. In a cluster that is well it costs three commands: the third is how the mons have stored
// options, where some are declared or Holdfast answers 'ceph orch', as it does by default. CRUSH, and the maps of the mons, of the OSDs and of filesystems, which may be long, are asked for only when they have changed.
func (d *Driver) Observe(ctx context.Context, view *engine.View, secrets engine.SecretReader) (any, error) {
	wanted, running := monStates(view.Daemons)
	if !wanted || view.Cluster.DeletionTimestamp != nil {
		return nil, nil
	}
	// Mons that are about to start are dialled already: the connection is then there when they are.
	c, err := d.connect(ctx, view, secrets)
	switch {
	case errors.Is(err, engine.ErrNotFound) && !running:
		return nil, nil
	case err != nil:
		return nil, err
	case !running:
		return nil, nil
	}
	o, err := c.observe(ctx, view)
	if errors.Is(err, rados.ErrRefused) {
		return &Observation{Error: err.Error(), Refused: true}, nil
	}
	if errors.Is(err, rados.ErrNoAnswer) {
		mute := d.muteMons(ctx, c, view)
		anew(d, c, view, mute)
		return &Observation{Error: err.Error(), Mute: mute}, nil
	}
	if err != nil {
		return nil, err
	}
	fillKeys(ctx, c, view, secrets, o)
	c.silences.Store(0)
	if slices.ContainsFunc(runningMons(view), func(m member) bool { return !slices.Contains(o.Quorum, m.ID) }) {
		o.Mute = d.muteMons(ctx, c, view)
	}
	o.fillGateways(view.Daemons)
	o.Certificates = certificate.Read(ctx, view, secrets)
	o.fillMirrors(ctx, view, secrets)
	return o, nil
}

// monStates says whether mon Daemons exist, and whether one of them runs.
func monStates(daemons []api.Daemon) (exist, running bool) {
	for i := range daemons {
		if daemons[i].Spec.Type == TypeMon {
			exist = true
			running = running || daemons[i].Status.State == api.DaemonRunning
		}
	}
	return exist, running
}

func (c *conn) observe(ctx context.Context, view *engine.View) (*Observation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	timeout := c.patience
	if c.answered.Load() {
		timeout = laterAnswer
	}
	var status statusAnswer
	err := c.first(ctx, timeout, &status)
	// A mon that is out of the quorum for some seconds answers this one question by itself; nobody answers the next one then.
	quorum := err == nil && len(status.QuorumNames) > 0
	c.answered.Store(quorum)
	if err != nil {
		return nil, err
	}
	if quorum {
		timeout = laterAnswer
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	o := &Observation{Reachable: true, NFS: nfs.Reports(view.Daemons)}
	status.fill(o)
	o.Figures = status.PGMap.Figures(c.now())
	for _, step := range []func(context.Context, *statusAnswer, *Observation) error{c.fillHealth, c.fillMons, c.fillMgr, c.fillOSDs, c.fillVersion} {
		if err := step(ctx, &status, o); err != nil {
			return nil, err
		}
	}
	o.PGsOld = c.placing.Recent(c.now(), placing.ReportAge(view.Cluster))
	if err := c.fillConfig(ctx, view, o); err != nil {
		return nil, err
	}
	if err := fillOrch(ctx, c, view, o); err != nil {
		return nil, err
	}
	c.fillStoppable(ctx, view, o)
	c.fillRestartable(ctx, view, o)
	c.fillHoldable(ctx, view, o)
	if err := c.fillDrain(ctx, view, o); err != nil {
		return nil, err
	}
	if err := c.fillCrush(ctx, view, o); err != nil {
		return nil, err
	}
	c.fillClients(ctx, view, o)
	if err := c.fillPools(ctx, view, o); err != nil {
		return nil, err
	}
	if err := c.fillDefaults(ctx, view, o); err != nil {
		return nil, err
	}
	if err := c.fillFS(ctx, view, &status, o); err != nil {
		return nil, err
	}
	c.fillSchedules(ctx, view, o)
	if err := c.fillDestroyed(ctx, o); err != nil {
		return nil, err
	}
	if err := c.fillEntities(ctx, view, o); err != nil {
		return o, err
	}
	c.fillRestart(ctx, view, o) // the last: a mgr that hangs takes all the time that is left
	return o, nil
}

// first asks the question of a round that tells whether the mons answer at all.
func (c *conn) first(ctx context.Context, timeout time.Duration, status *statusAnswer) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return c.ask(ctx, "status", status)
}

// ask runs a command of the mons and decodes its answer.
func (c *conn) ask(ctx context.Context, prefix string, into any) error {
	out, err := c.client.Mon(ctx, ask(prefix), nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("reading ceph %s: %w", prefix, err)
	}
	return nil
}

// fillMons asks for the map of the mons when it has changed.
func (c *conn) fillMons(ctx context.Context, status *statusAnswer, o *Observation) error {
	if c.mons == nil || c.mons.Epoch != status.Monmap.Epoch {
		mons := &monMap{}
		if err := c.ask(ctx, "mon dump", mons); err != nil {
			return err
		}
		c.mons = mons
	}
	c.mons.fill(o)
	return nil
}

func (c *conn) fillMgr(ctx context.Context, _ *statusAnswer, o *Observation) error {
	var stat mgrStatAnswer
	if err := c.ask(ctx, "mgr stat", &stat); err != nil {
		return err
	}
	if o.ActiveMgr, c.mgrEpoch = stat.ActiveName, stat.Epoch; !o.MgrAvailable || c.mgrActive != o.ActiveMgr {
		c.mgrActive, c.mgrSince = o.ActiveMgr, time.Time{}
	}
	if o.MgrAvailable && c.mgrSince.IsZero() {
		c.mgrSince = c.now()
	}
	o.MgrSince = metav1.Time{Time: c.mgrSince}
	return nil
}

func (c *conn) fillOSDs(ctx context.Context, status *statusAnswer, o *Observation) error {
	if c.osds == nil || c.osds.Epoch < status.OSDMap.Epoch {
		osds := &osdMap{}
		if err := c.ask(ctx, "osd dump", osds); err != nil {
			return err
		}
		c.osds = osds
		c.placing.Note(osds.placement(), c.now())
	}
	c.osds.fill(o)
	return nil
}

// fillVersion asks for the mons' release once for each election: no mon changes its release without one.
func (c *conn) fillVersion(ctx context.Context, status *statusAnswer, o *Observation) error {
	if c.version == "" || c.election != status.ElectionEpoch {
		out, err := c.client.Mon(ctx, ask("versions"), nil)
		if err != nil {
			return err
		}
		if c.version, err = parseVersions(out); err != nil {
			return err
		}
		c.election = status.ElectionEpoch
	}
	o.Version = c.version
	return nil
}

// fillEntities asks for the auth database when a manager is missing, which may be for want of its key, or the key of a daemon is; and while a
// filesystem is being deleted, as who has a key may use it.
func (c *conn) fillEntities(ctx context.Context, view *engine.View, o *Observation) error {
	mgrs, known := 0, !slices.ContainsFunc(engine.OfKind[*api.Filesystem](view.Resources), func(f *api.Filesystem) bool { return f.DeletionTimestamp != nil })
	for i := range view.Daemons {
		d := &view.Daemons[i]
		if d.Spec.Type == TypeMgr {
			mgrs++
		}
		if stateless(d.Spec.Type) {
			known = known && c.entities[entityFor(d.Spec.Type, d.Spec.ID)]
		}
	}
	for _, s := range view.Secrets { // one that is to come waits for its key
		entity := s.Annotations[AnnotationEntity]
		known = known && (c.entities[entity] || !servesResource(entity))
	}
	present := o.Standbys
	if o.ActiveMgr != "" {
		present++
	}
	if !known || present < mgrs {
		out, err := c.client.Mon(ctx, ask("auth ls"), nil)
		if err != nil {
			return err
		}
		if c.entities, err = parseEntities(out); err != nil {
			return err
		}
	}
	o.Entities = c.entities
	return nil
}
