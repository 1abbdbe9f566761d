package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/agent/prepare"
	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// remove takes a daemon off the host: its process first, then what its service agent made elsewhere, then its directories.
// Each step may be done twice. The finalizer goes last.
func (a *agent) remove(ctx context.Context, d *api.Daemon) error {
	if !slices.Contains(d.Finalizers, api.FinalizerDaemon) {
		return nil
	}
	if first := a.stopsBefore(d); first != "" {
		return a.tell(ctx, d, api.DaemonStatus{State: api.DaemonStopping, Message: "it stops after " + first})
	}
	key := client.ObjectKeyFromObject(d)
	// What is only watched is somebody else's, whatever policy the cluster has.
	if d.Spec.State != api.WantWatched {
		if err := a.clearAway(ctx, d); err != nil {
			return a.fail(ctx, d, err)
		}
	}
	if err := a.removeFinalizer(ctx, d); err != nil {
		return fmt.Errorf("while removing the finalizer: %w", err)
	}
	a.told.forget(key)
	a.words.Forget(key)
	a.reports.forget(key)
	a.work.forget(key)
	a.log.Info("a daemon is removed", "daemon", key, "data", d.Spec.OnRemoval)
	return nil
}

// clearAway stops the process and clears away what there is of the daemon.
func (a *agent) clearAway(ctx context.Context, d *api.Daemon) error {
	key := client.ObjectKeyFromObject(d)
	if err := a.stopAll(ctx, d); err != nil {
		return fmt.Errorf("while stopping the process: %w", err)
	}
	a.releaseOthers(key)
	if err := a.destroy(ctx, d); err != nil {
		return err
	}
	if err := a.clearDirectories(key, d.Spec.OnRemoval); err != nil {
		return fmt.Errorf("while removing the daemon's directories: %w", err)
	}
	return nil
}

// disinherit clears away what a Daemon of the same name left, where the service agent says that this one cannot use it.
func (a *agent) disinherit(ctx context.Context, d *api.Daemon) error {
	key := client.ObjectKeyFromObject(d)
	t, ok := a.types[d.Spec.Type]
	if !ok || a.work.isReady(key, generationOf(d)) {
		return nil
	}
	heir, ok := t.agent.(service.Inheritor)
	if !ok {
		return nil
	}
	l := a.local(d)
	l.Parameters = d.Spec.Parameters
	foreign, err := heir.Foreign(l)
	if err != nil || !foreign {
		return err
	}
	a.log.Warn("moving the data of an earlier daemon of this name aside", "daemon", key, "to", a.paths.retired())
	left := d.DeepCopy()
	left.Spec.OnRemoval, left.Spec.Devices = api.DeletionRetain, nil // those that it has now are not what is left
	if err := a.clearAway(ctx, left); err != nil {
		return fmt.Errorf("while moving the data of an earlier daemon of this name aside: %w", err)
	}
	a.work.forget(key)
	_, err = heir.Foreign(l) // it notes that what comes is this daemon's
	return err
}

// stopsBefore names a daemon that is being removed from this host, too, and has to end before d.
func (a *agent) stopsBefore(d *api.Daemon) string {
	for _, other := range a.work.deleting() {
		if other.Spec.StopOrder >= d.Spec.StopOrder {
			continue
		}
		if _, runs := a.Runtime.State(processNameOf(other)); runs {
			return other.Name
		}
	}
	return ""
}

// releaseOthers puts the daemons in line that may have waited for this one's end.
func (a *agent) releaseOthers(key types.NamespacedName) {
	for _, other := range a.work.deleting() {
		if k := client.ObjectKeyFromObject(other); k != key {
			a.work.add(k)
		}
	}
}

// destroy has the service agent undo what it made outside the daemon's directories. Where nothing was ever made there is
// nothing to undo.
func (a *agent) destroy(ctx context.Context, d *api.Daemon) error {
	t := a.types[d.Spec.Type]
	l := a.local(d)
	if _, err := os.Stat(l.Data); t == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	done := a.announce(ctx, d, api.DaemonStopping, "removing its data")
	defer done()
	err := a.preparer.Find(ctx, l, false)
	if prepare.IsMissing(err) {
		err = a.preparer.Activate(ctx, l, err)
	}
	gone := prepare.IsMissing(err)
	if err != nil && !gone {
		return err
	}
	if gone && d.Spec.OnRemoval == api.DeletionWipe {
		// Waiting for it would keep the Daemon for ever: broken disks do not come back.
		a.log.Warn("a device of a removed daemon cannot be wiped", "daemon", client.ObjectKeyFromObject(d), "error", err)
	}
	if err := prepare.FillWords(l); err != nil && !gone {
		return err
	}
	if len(l.Devices) > 0 {
		defer a.askReport()
	}
	return t.agent.DestroyLocalService(ctx, l)
}

// clearDirectories removes the daemon's directories, or moves them aside.
func (a *agent) clearDirectories(key types.NamespacedName, policy api.DeletionPolicy) error {
	dir := a.paths.daemon(key)
	if err := atomicfile.RemoveAll(a.paths.runOf(key)); err != nil {
		return err
	}
	if policy == api.DeletionWipe {
		return atomicfile.RemoveAll(dir)
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(a.paths.retired(), 0o700); err != nil {
		return err
	}
	return atomicfile.Rename(dir, a.paths.retiredAs(key, time.Now()))
}

// removeFinalizer takes away the agent's own finalizer, and only if it still stands where it was seen: the others belong to
// others.
func (a *agent) removeFinalizer(ctx context.Context, d *api.Daemon) error {
	i := slices.Index(d.Finalizers, api.FinalizerDaemon)
	path := fmt.Sprintf("/metadata/finalizers/%d", i)
	patch, err := json.Marshal([]map[string]string{
		{"op": "test", "path": path, "value": api.FinalizerDaemon},
		{"op": "remove", "path": path},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = a.client.Patch(ctx, d.DeepCopy(), client.RawPatch(types.JSONPatchType, patch))
	return client.IgnoreNotFound(err)
}
