package access

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/admission"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// orchHostActions and orchClusterActions are the kinds of Actions that 'ceph orch' creates: on a
// host that its cluster alone uses, and in its cluster.
var (
	orchHostActions = []string{
		"host.enter-maintenance", "host.exit-maintenance", "host.drain", "host.remove", "host.rescan",
		"device.wipe", "device.light",
	}
	orchClusterActions = []string{
		wire.ActionApply, "ceph.restart-service", "daemon.stop", "daemon.start", api.ActionDaemonRestart,
	}
)

// action judges an Action: a new one by its kind, one that is there by what changes of it.
func (w *orchWrite) action(ctx context.Context) error {
	kind, cluster, host := text(w.after, "kind"), text(w.after, "cluster"), text(w.after, "host")
	if w.a.GetOperation() == admission.Update {
		return w.actionWritten()
	}
	switch {
	case w.a.GetOperation() != admission.Create:
		return errors.New("'ceph orch' deletes no Actions: it cancels them")
	case slices.Contains(orchClusterActions, kind) && w.a.GetNamespace() == w.cluster.Namespace:
		if cluster != w.cluster.Name {
			return fmt.Errorf("the action belongs to cluster %q, but the call is from cluster %s",
				cluster, w.cluster.Name)
		}
		return w.ownDaemon(ctx, kind, host)
	case slices.Contains(orchHostActions, kind) && w.a.GetNamespace() == api.SystemNamespace &&
		host != "" && cluster == "":
		return w.ownHost(ctx, host)
	}
	return fmt.Errorf("'ceph orch' creates no Action of kind %q in namespace %s", kind, w.a.GetNamespace())
}

// actionWritten lets what 'ceph orch' of this cluster asked for itself be cancelled.
func (w *orchWrite) actionWritten() error {
	if text(w.before, "requester") != wire.User(w.cluster) {
		return fmt.Errorf("%s asked for it, not 'ceph orch' of this cluster: use 'holdfast action cancel'",
			text(w.before, "requester"))
	}
	want := [][]string{{"want"}}
	if !reflect.DeepEqual(without(w.before, want), without(w.after, want)) {
		return errors.New("'ceph orch' may change only spec.want of an Action")
	}
	return sameMeta(w.before, w.after, nil)
}

// ownDaemon refuses an Action on a Daemon that is none of the cluster, or on a host beside it.
func (w *orchWrite) ownDaemon(ctx context.Context, kind, host string) error {
	target := text(w.after, "target")
	name, ok := strings.CutPrefix(target, "daemon/")
	switch {
	case !ok && strings.HasPrefix(kind, "daemon."):
		return fmt.Errorf("%q is not a daemon", target)
	case !ok && host != "":
		return fmt.Errorf("an action of kind %s must not name a host", kind)
	case !ok:
		return nil
	}
	named := fields.OneTermEqualSelector("metadata.name", name).String()
	daemons, err := w.Kept.Daemons(ctx, w.cluster.Namespace, named)
	if err != nil {
		return err
	}
	if len(daemons) != 1 || daemons[0].Spec.Cluster != w.cluster.Name {
		return fmt.Errorf("daemon %s does not belong to cluster %s", name, w.cluster.Name)
	}
	if host != "" && host != daemons[0].Spec.Host {
		return fmt.Errorf("daemon %s runs on host %s, not on %s", name, daemons[0].Spec.Host, host)
	}
	return nil
}
