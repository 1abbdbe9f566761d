package ceph

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// A daemon that is handed over starts with what is installed on its host. Where that is a newer release than runs, the hand-over is an upgrade of it, and
// goes in the order of one: no manager and no OSD runs a newer release than a mon, no OSD a newer one than a manager (Ceph docs, "Upgrading").

// releasesFit refuses a hand-over by which a daemon would come to run a release before those that come before it in an upgrade.
func (h *handOver) releasesFit() error {
	for i := range h.view.Daemons {
		d := &h.view.Daemons[i]
		if !h.means(d) || !isWatched(*d) {
			continue
		}
		if why := h.outOfOrder(d); why != "" {
			return refusef("%s", why)
		}
	}
	return nil
}

// Releases are those that the mons and managers of a cluster run, by their names.
func (d *Driver) Releases(ctx context.Context, view *engine.View, secrets engine.SecretReader) (map[string]string, error) {
	c, err := d.connect(ctx, view, secrets)
	if err != nil {
		return nil, err
	}
	return c.releases(ctx)
}

// releases are those that the mons and managers run, by their names, as they say themselves.
func (c *conn) releases(ctx context.Context) (map[string]string, error) {
	running := map[string]string{}
	for _, daemonType := range []string{TypeMon, TypeMgr} {
		var all []metadata
		out, err := c.client.Mon(ctx, ask(kindOf(daemonType)+" metadata"), nil)
		if err == nil {
			err = json.Unmarshal(out, &all)
		}
		if err != nil {
			return nil, fmt.Errorf("while asking for the releases of the %ss: %w", kindOf(daemonType), err)
		}
		for _, m := range all {
			running[kindOf(daemonType)+"."+m.Name] = m.Version
		}
	}
	return running, nil
}

// outOfOrder says why a daemon may not be started with the release that is installed on its host; nothing where it may, or where nobody knows.
func (h *handOver) outOfOrder(d *api.Daemon) string {
	installed := h.installed(d)
	if own := h.running[label(d)]; installed == "" || own != "" && !olderRelease(own, installed) {
		return ""
	}
	for i := range h.view.Daemons {
		x := &h.view.Daemons[i]
		runs := h.running[label(x)]
		switch {
		case runs == "" || x.DeletionTimestamp != nil || !olderRelease(runs, installed):
			continue
		case releaseNumbers(installed)[0]-releaseNumbers(runs)[0] > maxReleases:
			return fmt.Sprintf("cannot hand over: Ceph %s is installed on host %s, but %s runs %s, and Ceph upgrades over "+
				"at most %d releases; install a release between them first", installed, d.Spec.Host, label(x), runs, maxReleases)
		case slices.Index(coreTypes, x.Spec.Type) < slices.Index(coreTypes, d.Spec.Type):
			if way := h.wayTo(x, installed); way != "" {
				return fmt.Sprintf("cannot hand over: %s on host %s would start with Ceph %s, while %s on host %s runs %s, but "+
					"Ceph upgrades in the order mons, managers, OSDs; %s",
					label(d), d.Spec.Host, installed, label(x), x.Spec.Host, runs, way)
			}
		}
	}
	return ""
}

// wayTo says how a daemon comes to run a release at least; nothing where this hand-over itself sees to it before others.
func (h *handOver) wayTo(x *api.Daemon, release string) string {
	switch installed := h.installed(x); {
	case installed == "" || olderRelease(installed, release):
		return fmt.Sprintf("install Ceph %s on host %s, too", release, x.Spec.Host)
	case !isWatched(*x) && h.raisesBefore(x, installed):
		return "" // others first, and then it is its turn: what is not there yet when d is to go is told then
	case !isWatched(*x):
		return fmt.Sprintf("cancel a running hand-over, restart that daemon with 'holdfast daemon restart %s', then hand "+
			"over again", label(x))
	case !h.means(x):
		return fmt.Sprintf("hand over host %s, too, or all hosts (without --hosts)", x.Spec.Host)
	}
	return ""
}

// raisesBefore says whether this hand-over has yet to bring a daemon, of a type that comes before that of x, to the release.
func (h *handOver) raisesBefore(x *api.Daemon, release string) bool {
	return slices.ContainsFunc(h.view.Daemons, func(y api.Daemon) bool {
		runs := h.running[label(&y)]
		return isWatched(y) && h.means(&y) && runs != "" && olderRelease(runs, release) && slices.Index(coreTypes, y.Spec.Type) < slices.Index(coreTypes, x.Spec.Type)
	})
}

// installed is the release of a daemon's program on its host.
func (h *handOver) installed(d *api.Daemon) string {
	host := h.view.HostsByName()[d.Spec.Host]
	if host == nil {
		return ""
	}
	return host.Status.Release(d.Spec.Type)
}
