package write

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action/hostaction"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/answer"
	"github.com/holdfast-storage/holdfast/orch/apply"
	"github.com/holdfast-storage/holdfast/orch/spec"
)

// daemon is the Daemon that Ceph calls by a name such as osd.3.
func (c *Call) daemon(name string) (*api.Daemon, error) {
	i := slices.IndexFunc(c.View.Daemons, func(d api.Daemon) bool { return spec.TypeOf(&d)+"."+d.Spec.ID == name })
	if i < 0 {
		return nil, answer.Errorf("there is no daemon %s: see 'ceph orch ps'", name)
	}
	return &c.View.Daemons[i], nil
}

// daemonAction restarts, stops or starts one daemon.
func daemonAction(ctx context.Context, c *Call) (any, error) {
	a, err := read[struct {
		Action string `json:"action"`
		Name   string `json:"daemon_name"`
		Image  string `json:"image"`
	}](c)
	if err != nil {
		return nil, err
	}
	d, err := c.daemon(a.Name)
	if err != nil {
		return nil, err
	}
	if a.Image != "" {
		return nil, answer.Errorf("daemon %s cannot get an image: Holdfast runs the packages of its host", a.Name)
	}
	action := api.ActionSpec{Target: "daemon/" + d.Name, Cluster: c.View.Cluster.Name}
	switch a.Action {
	case "restart", "redeploy":
		action.Kind, action.Host = api.ActionDaemonRestart, d.Spec.Host
	case "stop":
		action.Kind = daemonStop
	case "start":
		action.Kind = daemonStart
	case "reconfig":
		return fmt.Sprintf("Scheduled to reconfig %s on host '%s': nothing to do, the mons hold its configuration",
			a.Name, d.Spec.Host), nil
	default:
		return nil, answer.Errorf("Holdfast does not support '%s' of a daemon", a.Action)
	}
	return c.start(ctx, action, fmt.Sprintf("Scheduled to %s %s on host '%s'", a.Action, a.Name, d.Spec.Host), begun)
}

// The kinds of Actions on daemons and services, as driver/ceph/daemonaction names them.
const (
	daemonStop     = "daemon.stop"
	daemonStart    = "daemon.start"
	restartService = "ceph.restart-service"
	// paramDo is what is done to a service: restart, stop or start.
	paramDo = "do"
)

// removeDaemons asks daemons to leave their places: others take these over, and then they go.
func removeDaemons(ctx context.Context, c *Call) (any, error) {
	a, err := read[struct {
		Names []string `json:"names"`
	}](c)
	if err != nil {
		return nil, err
	}
	words, patches := []string{}, map[*api.Daemon]bool{}
	for _, name := range a.Names {
		d, err := c.daemon(name)
		if err != nil {
			return nil, err
		}
		if kind := spec.TypeOf(d); kind == "osd" {
			return nil, answer.Errorf("%s holds data: remove it with 'ceph orch osd rm %s'", name, d.Spec.ID)
		}
		patches[d] = true
		words = append(words, fmt.Sprintf("Removing %s from host '%s': another daemon takes its place first", name,
			d.Spec.Host))
	}
	asked := map[string]any{api.AnnotationLeave: c.Now.UTC().Format(time.RFC3339)}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": asked}})
	if err != nil {
		return nil, err
	}
	for d := range patches {
		u := object("Daemon", d.Namespace, d.Name)
		if err := c.Client.Patch(ctx, u, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			return nil, writing(err, "daemon %s", d.Name)
		}
	}
	return words, nil
}

// serviceAction restarts, stops or starts all daemons of a service, one after the other.
func serviceAction(ctx context.Context, c *Call) (any, error) {
	a, err := read[struct {
		Action  string `json:"action"`
		Service string `json:"service_name"`
	}](c)
	if err != nil {
		return nil, err
	}
	if !c.hasService(a.Service) {
		return nil, answer.Errorf("there is no service %s: see 'ceph orch ls'", a.Service)
	}
	do := a.Action
	switch do {
	case "reconfig":
		return []string{"Scheduled to reconfig " + a.Service + ": nothing to do, the mons hold the configuration"}, nil
	case "redeploy":
		do = "restart"
	case "restart", "stop", "start":
	default:
		return nil, answer.Errorf("Holdfast does not support '%s' of a service", a.Action)
	}
	action := api.ActionSpec{
		Kind: restartService, Target: "service/" + a.Service, Cluster: c.View.Cluster.Name,
		Parameters: map[string]api.ActionParameter{paramDo: api.ActionParameter(do)},
	}
	words, err := c.start(ctx, action, fmt.Sprintf("Scheduled to %s %s", a.Action, a.Service), begun)
	return []string{words}, err
}

// hasService says whether there is a service of a name.
func (c *Call) hasService(name string) bool {
	for _, s := range spec.Services(c.View) {
		if s.Name == name {
			return true
		}
	}
	return name == "osd" || slices.ContainsFunc(c.View.Daemons,
		func(d api.Daemon) bool { return spec.ServiceOf(&d, "") == name })
}

// addDaemon has one more daemon in a service that is declared.
func addDaemon(ctx context.Context, c *Call) (any, error) {
	a, err := read[struct {
		Spec struct {
			Type      string `json:"service_type"`
			ID        string `json:"service_id"`
			Placement struct {
				Hosts []any `json:"hosts"`
			} `json:"placement"`
		} `json:"spec"`
	}](c)
	if err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(a.Spec.Type+"."+a.Spec.ID, ".")
	// A call that is sent twice adds one daemon.
	before := &api.Action{ObjectMeta: metav1.ObjectMeta{Namespace: c.View.Cluster.Namespace, Name: c.name()}}
	if err := c.sentBefore(ctx, before); err == nil {
		words, err := c.outcome(ctx, before, "Scheduled "+name+" update...", stepDone(apply.StepPersist))
		return []string{words}, err
	} else if !apierrors.IsNotFound(err) {
		return nil, err
	}
	if err := c.awaitWritten(ctx, name); err != nil {
		return nil, err
	}
	document := grown(c.View, name, a.Spec.Placement.Hosts)
	if document == nil {
		return nil, answer.Errorf("nothing declares service %s: declare it with 'ceph orch apply %s'", name,
			a.Spec.Type)
	}
	text, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	return c.apply(ctx, []json.RawMessage{text}, false)
}

// grown is the document of a service with one more daemon than are declared, or with one more on
// each of several hosts. It is nil where nothing declares the service.
func grown(v *engine.View, name string, hosts []any) map[string]any {
	for _, s := range spec.Services(v) {
		if s.Name != name || s.IsDeleted() {
			continue
		}
		placement, _ := s.Document["placement"].(map[string]any)
		if placement == nil {
			placement = map[string]any{}
			s.Document["placement"] = placement
		}
		placement["count"] = s.Size + max(1, len(hosts))
		if has, is := placement["hosts"].([]any); is {
			placement["hosts"] = append(has, hosts...)
		}
		return s.Document
	}
	return nil
}

// rescan has a host look for new disks.
func rescan(ctx context.Context, c *Call) (any, error) {
	_, h, err := ofHost(c)
	if err != nil {
		return nil, err
	}
	return c.hostAction(ctx, hostaction.Rescan, h.Name, fmt.Sprintf("Rescan of host '%s' started", h.Name), nil)
}

// setUnmanaged says whether a drive group takes disks that come later.
func setUnmanaged(ctx context.Context, c *Call) (any, error) {
	a, err := read[struct {
		Service string `json:"service_name"`
		Value   bool   `json:"value"`
	}](c)
	if err != nil {
		return nil, err
	}
	id, is := strings.CutPrefix(a.Service, "osd.")
	if !is {
		return nil, answer.Errorf("service %s cannot be set unmanaged: Holdfast keeps what is declared; 'ceph orch "+
			"pause' has nothing changed at all",
			a.Service)
	}
	policy, words := api.NewDevicesHold, "Set unmanaged to True for service "
	if !a.Value {
		policy, words = c.newDevices(), "Set unmanaged to False for service "
	}
	for _, g := range engine.OfKind[*api.DriveGroup](c.View.Resources) {
		if spec.GroupID(g) == id {
			return words + a.Service, hold(ctx, c, g, policy)
		}
	}
	return nil, answer.Errorf("there is no service %s: see 'ceph orch ls'", a.Service)
}

// newDevices is what drive groups of 'ceph orch' do with disks that come later.
func (c *Call) newDevices() api.NewDevicePolicy {
	if ceph := c.View.Cluster.Spec.Ceph; ceph != nil && ceph.Orch != nil && ceph.Orch.NewDevices != "" {
		return ceph.Orch.NewDevices
	}
	return api.NewDevicesReport
}
