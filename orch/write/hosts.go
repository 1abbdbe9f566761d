package write

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/orch/answer"
	"github.com/holdfast-storage/holdfast/orch/apply"
	"github.com/holdfast-storage/holdfast/orch/spec"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// hostArgs are the arguments of the calls about one host, whose name is called host or hostname.
type hostArgs struct {
	Host     string `json:"host"`
	Hostname string `json:"hostname"`
	Label    string `json:"label"`
	Addr     string `json:"addr"`
	Force    bool   `json:"force"`
	Offline  bool   `json:"offline"`
	Zap      bool   `json:"zap_osd_devices"`
}

func (a *hostArgs) name() string {
	if a.Hostname != "" {
		return a.Hostname
	}
	return a.Host
}

// ofHost reads the arguments of a call about one host that the cluster uses.
func ofHost(c *Call) (hostArgs, *api.Host, error) {
	a, err := read[hostArgs](c)
	if err != nil {
		return a, nil, err
	}
	h, err := c.usedHost(a.name())
	return a, h, err
}

// addHost declares a host: 'ceph orch host add' of Ceph 16 calls it, later ones apply.
func addHost(ctx context.Context, c *Call) (any, error) {
	a, err := read[struct {
		Host json.RawMessage `json:"host_spec"`
	}](c)
	if err != nil {
		return nil, err
	}
	words, err := c.apply(ctx, []json.RawMessage{a.Host}, false)
	return strings.Join(words, "\n"), err
}

func addLabel(ctx context.Context, c *Call) (any, error) {
	a, h, err := ofHost(c)
	if err != nil {
		return nil, err
	}
	if a.Label == spec.LabelNoSchedule {
		return nil, answer.Errorf("the label _no_schedule shows that a host is drained: run 'ceph orch host drain %s'",
			h.Name)
	}
	err = c.label(ctx, h, a.Label, map[string]any{wire.LabelPrefix + a.Label: ""})
	return fmt.Sprintf("Added label %s to host %s", a.Label, h.Name), err
}

func removeLabel(ctx context.Context, c *Call) (any, error) {
	a, h, err := ofHost(c)
	if err != nil {
		return nil, err
	}
	if _, has := h.Labels[wire.LabelPrefix+a.Label]; !has {
		// Ceph may have sent the call before, to a mgr that died; cephadm makes no error of it, either.
		return fmt.Sprintf("Host %s has no label %s: see 'ceph orch host ls'", h.Name, a.Label), nil
	}
	if placed := c.onlyBy(h, a.Label); placed != "" && !a.Force {
		return nil, answer.Errorf("host %s is the last one with label %s, by which %s is placed: change its "+
			"placement first, or use --force where there is such an option", h.Name, a.Label, placed)
	}
	err = c.label(ctx, h, a.Label, map[string]any{wire.LabelPrefix + a.Label: nil})
	return fmt.Sprintf("Removed label %s from host %s", a.Label, h.Name), err
}

// onlyBy is the service that is placed by a label that no other host has.
func (c *Call) onlyBy(h *api.Host, label string) string {
	key := wire.LabelPrefix + label
	another := func(o api.Host) bool { _, has := o.Labels[key]; return has && o.Name != h.Name }
	if slices.ContainsFunc(c.View.Hosts, another) {
		return ""
	}
	by := func(s *api.HostSelection) bool {
		if s == nil {
			return false
		}
		_, is := s.Labels[key]
		return is
	}
	if ceph := c.View.Cluster.Spec.Ceph; ceph != nil && by(ceph.Mon.Placement) {
		return "mon"
	} else if ceph != nil && by(ceph.Mgr.Placement) {
		return "mgr"
	}
	for _, r := range c.View.Resources {
		if p, ok := r.(api.Placed); ok && by(p.SelectedHosts()) {
			return strings.ToLower(r.ResourceKind()) + "/" + r.GetName()
		}
	}
	return ""
}

// label writes labels of a host; nil takes one away.
func (c *Call) label(ctx context.Context, h *api.Host, label string, labels map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return err
	}
	u := object("Host", "", h.Name)
	merge := client.RawPatch("application/merge-patch+json", patch)
	if err := c.Client.Patch(ctx, u, merge, client.FieldOwner("ceph-orch.host")); err != nil {
		return writing(err, "host %s", h.Name)
	}
	wanted := labels[wire.LabelPrefix+label] != nil
	c.until(ctx, seenWithin, func(v *engine.View) bool {
		now := v.HostsByName()[h.Name]
		if now == nil {
			return true
		}
		_, has := now.Labels[wire.LabelPrefix+label]
		return has == wanted
	})
	return nil
}

// setAddress has the cluster use another address of a host.
func setAddress(ctx context.Context, c *Call) (any, error) {
	a, h, err := ofHost(c)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(h.Status.Addresses, a.Addr) {
		return nil, answer.Errorf("host %s does not report the address %q: it has %s", h.Name, a.Addr,
			strings.Join(h.Status.Addresses, ", "))
	}
	i := slices.IndexFunc(c.View.Nodes, func(n api.StorageNode) bool { return n.Status.Host == h.Name })
	if i < 0 {
		return nil, answer.Errorf("no StorageNode declares host %s: add it with 'ceph orch host add %s'", h.Name,
			h.Name)
	}
	n := &c.View.Nodes[i]
	running := slices.ContainsFunc(c.View.Daemons, func(d api.Daemon) bool { return d.Spec.Host == h.Name })
	if !slices.Contains(n.Spec.StorageNetwork.IPs, a.Addr) {
		if running {
			return nil, answer.Errorf("daemons of the cluster run on host %s at its present address: drain it first "+
				"with 'ceph orch host drain %s'", h.Name, h.Name)
		}
		u := object("StorageNode", n.Namespace, n.Name)
		ips := []string{a.Addr}
		if err := unstructured.SetNestedStringSlice(u.Object, ips, "spec", "storageNetwork", "ips"); err != nil {
			return nil, err
		}
		if err := apply.Object(ctx, c.Client, u, "ceph-orch.address."+h.Name, c.take()); err != nil {
			return nil, err
		}
	}
	return fmt.Sprintf("Updated host '%s' addr to '%s'", h.Name, a.Addr), nil
}

// okToStop asks Ceph whether the daemons of a host may stop. Nobody is waited for that needs the
// Python of a mgr: mons and the core of the mgr answer.
func okToStop(ctx context.Context, c *Call) (any, error) {
	_, h, err := ofHost(c)
	if err != nil {
		return nil, err
	}
	inMaintenance := func(v *engine.View) { v.SetHostMode(h.Name, api.HostMaintenance) }
	view, plan, err := c.Home.Suppose(ctx, api.StorageCeph, c.cluster(), inMaintenance)
	if err != nil {
		return nil, err
	}
	if len(view.Errors) > 0 {
		return nil, answer.Errorf("it is not known whether host %s may stop: %s", h.Name, view.Errors[0].Message)
	}
	for _, d := range plan.Decisions {
		if d.Object == "host/"+h.Name && against(d) {
			return nil, answer.Errorf("host %s may not stop now: %s", h.Name, d.Message)
		}
	}
	return fmt.Sprintf("It is presumed safe to stop host %s", h.Name), nil
}

// underWay are the reasons for which a host waits that enters maintenance and may: its own daemons.
var underWay = []api.Reason{api.ReasonHandingOver, api.ReasonConfiguring, api.ReasonStopping}

// against says whether a decision speaks against stopping a host.
func against(d api.Decision) bool {
	return d.Verdict == api.VerdictRefuse || d.Verdict == api.VerdictWait && !slices.Contains(underWay, d.Reason)
}

func enterMaintenance(ctx context.Context, c *Call) (any, error) {
	_, h, err := ofHost(c)
	if err != nil {
		return nil, err
	}
	if h.ModeOf() == api.HostMaintenance {
		return nil, answer.Errorf("host %s is in maintenance already", h.Name)
	}
	if _, err := okToStop(ctx, c); err != nil { // whoever calls is not told later that it waits
		return nil, err
	}
	return c.hostAction(ctx, hosts.EnterMaintenance, h.Name,
		fmt.Sprintf("Ceph daemons on host %s are being stopped for maintenance", h.Name), nil)
}

func exitMaintenance(ctx context.Context, c *Call) (any, error) {
	_, h, err := ofHost(c)
	if err != nil {
		return nil, err
	}
	if h.ModeOf() != api.HostMaintenance {
		return nil, answer.Errorf("host %s is not in maintenance", h.Name)
	}
	return c.hostAction(ctx, hosts.ExitMaintenance, h.Name,
		fmt.Sprintf("Ceph daemons on host %s are being started", h.Name), nil)
}

// drain moves everything off a host.
func drain(ctx context.Context, c *Call) (any, error) {
	a, h, err := ofHost(c)
	if err != nil {
		return nil, err
	}
	if a.Zap {
		return nil, answer.Errorf("--zap-osd-devices is not supported: wipe the disks after the drain with 'ceph " +
			"orch device zap'")
	}
	words := fmt.Sprintf("Scheduled to remove all daemons and OSDs from host '%s'", h.Name)
	if there := onHost(c.View, hosts.Drain, h.Name); there != nil && there.Spec.Want != api.WantCancelled {
		return following(there, words), nil
	}
	return c.hostAction(ctx, hosts.Drain, h.Name, words, nil)
}

// stopDrain ends a drain: under way it is cancelled, and one that is over is taken back.
func stopDrain(ctx context.Context, c *Call) (any, error) {
	_, h, err := ofHost(c)
	if err != nil {
		return nil, err
	}
	words := fmt.Sprintf("Stopped draining host '%s'", h.Name)
	if a := onHost(c.View, hosts.Drain, h.Name); a != nil && c.mine(a) {
		return words, c.cancel(ctx, a)
	}
	if h.ModeOf() != api.HostDrain {
		return nil, answer.Errorf("host %s is not drained", h.Name)
	}
	return c.hostAction(ctx, hosts.ExitMaintenance, h.Name, words, nil)
}

// removeHost takes a host out of the cluster: what declares it is deleted, once nothing is left on
// it.
func removeHost(ctx context.Context, c *Call) (any, error) {
	a, h, err := ofHost(c)
	if err != nil {
		return nil, err
	}
	if a.Offline && a.Force && !h.AgentHeard() {
		gone := map[string]api.ActionParameter{hosts.ParamGone: hosts.Yes, hosts.ParamNodes: hosts.Delete}
		return c.hostAction(ctx, hosts.Remove, h.Name, fmt.Sprintf("Removing host '%s'", h.Name), gone)
	}
	var left []string
	for i := range c.View.Daemons {
		if d := &c.View.Daemons[i]; d.Spec.Host == h.Name {
			left = append(left, d.Name)
		}
	}
	if len(left) > 0 {
		return nil, answer.Errorf("cannot remove host %s: daemons run there (%s); drain it first with 'ceph orch "+
			"host drain %s'",
			h.Name, strings.Join(left, ", "), h.Name)
	}
	for i := range c.View.Nodes {
		n := &c.View.Nodes[i]
		if n.Status.Host != h.Name {
			continue
		}
		if len(n.Spec.Devices) > 0 && h.ModeOf() != api.HostDrain {
			return nil, answer.Errorf("StorageNode %s gives devices of host %s to the cluster: drain the host first",
				n.Name, h.Name)
		}
		u := object("StorageNode", n.Namespace, n.Name)
		if err := c.Client.Delete(ctx, u, client.Preconditions{UID: &n.UID}); client.IgnoreNotFound(err) != nil {
			return nil, writing(err, "storagenode %s", n.Name)
		}
	}
	c.until(ctx, seenWithin, func(v *engine.View) bool { return !v.UsedHosts()[h.Name] })
	return fmt.Sprintf("Removed host '%s'", h.Name), nil
}
