package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action/hostaction"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/answer"
	"github.com/holdfast-storage/holdfast/orch/apply"
	"github.com/holdfast-storage/holdfast/orch/refusal"
	"github.com/holdfast-storage/holdfast/orch/spec"
)

// removal are the arguments of remove_osds. Callers give more or fewer of them in releases of Ceph;
// that a removal is forced does not count: Ceph is asked whether it can do without the OSD.
type removal struct {
	IDs       []string `json:"osd_ids"`
	Replace   bool     `json:"replace"`
	Zap       bool     `json:"zap"`
	NoDestroy bool     `json:"no_destroy"`
	DB        bool     `json:"replace_db"`
	WAL       bool     `json:"replace_wal"`
}

// manager is the field manager of what 'ceph orch' has leave of a device: each entry of exclude and
// replace has an owner of its own, so that one is taken back alone. Numbers of OSDs are used again,
// and name no owner: the entry of one would take the place of another's.
func manager(device string) string { return spec.Manager("leaving." + device) }

// removeOSDs names the devices of OSDs in exclude, or in replace, of what declares them. The
// planner drains the OSDs, and asks Ceph before it destroys them.
func removeOSDs(ctx context.Context, c *Call) (any, error) {
	a, err := read[removal](c)
	switch {
	case err != nil:
		return nil, err
	case len(a.IDs) == 0:
		return nil, answer.Errorf("the call names no OSD: use 'ceph orch osd rm ID'")
	case a.Replace && a.NoDestroy:
		return nil, answer.Errorf("--no-destroy is not supported: a number is kept by destroying the OSD that has it")
	case a.DB || a.WAL:
		return nil, answer.Errorf("replacing the disk of databases or logs is not supported: it takes each OSD that " +
			"it serves; use 'ceph orch device replace'")
	}
	field := "exclude"
	if a.Replace {
		field = "replace"
	}
	var writes []spec.Write
	var zap []string
	for _, id := range a.IDs {
		w, device, err := c.leave(strings.TrimPrefix(id, "osd."), field, a.IDs)
		if err != nil {
			return nil, err
		}
		writes, zap = append(writes, w), append(zap, device)
	}
	changes, err := c.checkLeaving(ctx, writes)
	if err != nil {
		return nil, err
	}
	const words = "Scheduled OSD(s) for removal"
	if there := removing(c, zap, field, a.Zap); there != nil && !changes {
		return following(there, words), nil
	}
	if !a.Zap {
		zap = nil
	}
	parameters, err := apply.Parameters(writes, c.take(), zap...)
	if err != nil {
		return nil, answer.Errorf("%v", err)
	}
	return c.start(ctx, c.applying(parameters), words, stepDone(apply.StepPersist))
}

// leave is the write that has one OSD leave, and its device as HOST/ID.
func (c *Call) leave(id, field string, with []string) (spec.Write, string, error) {
	d, err := c.daemon("osd." + id)
	if err != nil {
		return spec.Write{}, "", err
	}
	device := deviceOf(d)
	if device == "" {
		return spec.Write{}, "", answer.Errorf("osd.%s has no device of its own: its StorageNode names a directory; "+
			"remove it there", id)
	}
	for i := range c.View.Daemons {
		other := &c.View.Daemons[i]
		same := other.Spec.Host == d.Spec.Host && deviceOf(other) == device && other.Spec.Type == d.Spec.Type
		if same && !slices.Contains(with, other.Spec.ID) && !slices.Contains(with, "osd."+other.Spec.ID) {
			return spec.Write{}, "", answer.Errorf("osd.%s shares device %s with osd.%s: name both, because the "+
				"device leaves as a whole",
				id, device, other.Spec.ID)
		}
	}
	u := c.declares(d.Spec.Host, device)
	if u == nil {
		return spec.Write{}, "", answer.Errorf("no StorageNode or DriveGroup declares device %s of osd.%s: see "+
			"'holdfast why osd.%s'", device, id, id)
	}
	if err := unstructured.SetNestedStringSlice(u.Object, []string{device}, "spec", field); err != nil {
		return spec.Write{}, "", err
	}
	return spec.Write{Service: "osd", Manager: manager(device), Object: u}, d.Spec.Host + "/" + device, nil
}

// deviceOf is the disk of an OSD.
func deviceOf(d *api.Daemon) string {
	if len(d.Spec.Devices) == 0 {
		return ""
	}
	if of := d.Spec.Devices[0].Of; of != "" {
		return of
	}
	return d.Spec.Devices[0].ID
}

// declares is what declares a device of a host, or has it leave: a StorageNode or a DriveGroup; nil for
// none.
func (c *Call) declares(host, device string) *unstructured.Unstructured {
	for i := range c.View.Nodes {
		n := &c.View.Nodes[i]
		claimed := slices.ContainsFunc(n.Status.Devices, func(d api.ClaimedDevice) bool { return d.ID == device })
		if n.Status.Host == host && (claimed || slices.Contains(slices.Concat(n.Spec.Exclude, n.Spec.Replace), device)) {
			return object("StorageNode", n.Namespace, n.Name)
		}
	}
	for _, g := range engine.OfKind[*api.DriveGroup](c.View.Resources) {
		taken := slices.ContainsFunc(g.Status.Devices, func(d api.GroupDevice) bool {
			return d.Host == host && (d.ID == device || d.Data != nil && d.Data.ID == device)
		})
		if taken || slices.Contains(slices.Concat(g.Spec.Exclude, g.Spec.Replace), device) {
			return object("DriveGroup", g.Namespace, g.Name)
		}
	}
	return nil
}

// checkLeaving has the planner look at all OSDs that leave together, and says whether that changes
// anything.
func (c *Call) checkLeaving(ctx context.Context, writes []spec.Write) (changes bool, err error) {
	together := map[string]*unstructured.Unstructured{}
	var all []spec.Write
	for _, w := range writes {
		name := apply.NameOf(w.Object)
		if have := together[name]; have != nil {
			addEntries(have, w.Object)
			continue
		}
		together[name] = w.Object.DeepCopy()
		all = append(all, spec.Write{Service: w.Service, Manager: spec.Manager("leaving"), Object: together[name]})
	}
	found, err := c.check(ctx, all)
	return err == nil && len(found.changes) > 0, err
}

// addEntries adds the entries of exclude and replace of another object.
func addEntries(to, from *unstructured.Unstructured) {
	for _, field := range []string{"exclude", "replace"} {
		have, _, _ := unstructured.NestedStringSlice(to.Object, "spec", field)
		more, _, _ := unstructured.NestedStringSlice(from.Object, "spec", field)
		if len(more) > 0 {
			_ = unstructured.SetNestedStringSlice(to.Object, append(have, more...), "spec", field) // spec is a map
		}
	}
}

// applying is an Action that carries writes out.
func (c *Call) applying(parameters map[string]api.ActionParameter) api.ActionSpec {
	return api.ActionSpec{
		Kind: apply.Kind, Target: "storagecluster/" + c.View.Cluster.Name, Cluster: c.View.Cluster.Name,
		Parameters: parameters,
	}
}

// stopRemoval takes back what 'ceph orch' itself had leave.
func stopRemoval(ctx context.Context, c *Call) (any, error) {
	a, err := read[removal](c)
	if err != nil {
		return nil, err
	}
	type of struct{ host, device string }
	var all []of
	var devices []string
	for _, id := range a.IDs {
		d, err := c.daemon("osd." + strings.TrimPrefix(id, "osd."))
		if err != nil {
			return nil, err
		}
		device := deviceOf(d)
		if c.declares(d.Spec.Host, device) == nil {
			return nil, answer.Errorf("osd.%s is not being removed: see 'ceph orch osd rm status'", d.Spec.ID)
		}
		all, devices = append(all, of{d.Spec.Host, device}), append(devices, device)
	}
	for _, dry := range []bool{true, false} { // all, or none
		if !dry {
			if err := endRemovals(ctx, c, devices); err != nil {
				return nil, err
			}
		}
		for _, x := range all {
			if err := takeBack(ctx, c, c.declares(x.host, x.device), x.device, dry); err != nil {
				return nil, err
			}
		}
	}
	return "Stopped OSD(s) removal", nil
}

// takenBack is the write that ends what 'ceph orch' itself had leave of a device.
func takenBack(u *unstructured.Unstructured, device string) spec.Write {
	u.Object["spec"] = map[string]any{}
	return spec.Write{Service: "osd", Manager: manager(device), Object: u}
}

// takeBack ends what 'ceph orch' itself had leave of a device. It is refused where the device leaves
// by somebody else's word, too.
func takeBack(ctx context.Context, c *Call, u *unstructured.Unstructured, device string, dry bool) error {
	var opts []client.ApplyOption
	if dry {
		opts = append(opts, client.DryRunAll)
	}
	w := takenBack(u, device)
	if err := apply.Object(ctx, c.Client, u, w.Manager, true, opts...); err != nil {
		return err
	}
	if names(u, device) {
		return answer.Errorf("device %s still leaves: another user named it in exclude or replace of %s; change it "+
			"there", device, apply.NameOf(u))
	}
	return nil
}

// names says whether an object has a device leave.
func names(u *unstructured.Unstructured, device string) bool {
	for _, field := range []string{"exclude", "replace"} {
		list, _, _ := unstructured.NestedStringSlice(u.Object, "spec", field)
		if slices.Contains(list, device) {
			return true
		}
	}
	return false
}

// createOSDs adds one device to the StorageNode of its host.
func createOSDs(ctx context.Context, c *Call) (any, error) {
	a, err := read[struct {
		Group map[string]any `json:"drive_group"`
	}](c)
	if err != nil {
		return nil, err
	}
	host, paths, err := oneHost(a.Group)
	if err != nil {
		return nil, err
	}
	h, err := c.usedHost(host)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(c.View.Nodes, func(n api.StorageNode) bool { return n.Status.Host == h.Name })
	if i < 0 {
		return nil, answer.Errorf("no StorageNode declares host %s: add it with 'ceph orch host add %s'", h.Name,
			h.Name)
	}
	n := &c.View.Nodes[i]
	var writes []spec.Write
	for _, path := range paths {
		d, err := freeDevice(h, path)
		if err != nil {
			return nil, err
		}
		added, err := addDevice(ctx, c, n, d.ID)
		if err != nil {
			return nil, err
		}
		writes = append(writes, added...)
	}
	parameters, err := apply.Parameters(writes, c.take())
	if err != nil {
		return nil, answer.Errorf("%v", err)
	}
	words := fmt.Sprintf("Scheduled OSD(s) on host '%s': %s", h.Name, strings.Join(paths, ", "))
	return c.start(ctx, c.applying(parameters), words, stepDone(apply.StepPersist))
}

// addDevice are the writes by which a StorageNode gets a device. One that left by the word of 'ceph
// orch' comes back.
func addDevice(ctx context.Context, c *Call, n *api.StorageNode, id string) ([]spec.Write, error) {
	var writes []spec.Write
	if slices.Contains(n.Spec.Exclude, id) || slices.Contains(n.Spec.Replace, id) {
		if err := takeBack(ctx, c, object("StorageNode", n.Namespace, n.Name), id, true); err != nil {
			return nil, err
		}
		writes = append(writes, takenBack(object("StorageNode", n.Namespace, n.Name), id))
	}
	u := object("StorageNode", n.Namespace, n.Name)
	if err := unstructured.SetNestedStringSlice(u.Object, []string{id}, "spec", "devices"); err != nil {
		return nil, err
	}
	return append(writes, spec.Write{Service: "osd", Manager: spec.Manager("device." + id), Object: u}), nil
}

// oneHost reads what 'ceph orch daemon add osd HOST:DEVICE,…' makes.
func oneHost(group map[string]any) (host string, paths []string, err error) {
	u := unstructured.Unstructured{Object: group}
	host, _, _ = unstructured.NestedString(u.Object, "placement", "host_pattern")
	inner, ok := group["spec"].(map[string]any)
	if !ok {
		inner = group
	}
	for field := range inner {
		known := []string{
			"data_devices", "placement", "service_type", "service_id", "service_name", "filter_logic", "objectstore",
			"method",
		}
		if !slices.Contains(known, field) {
			return "", nil, answer.Errorf("%s is not supported for one OSD: declare a drive group with 'ceph orch "+
				"apply osd -i FILE'", field)
		}
	}
	list, _, _ := unstructured.NestedSlice(inner, "data_devices", "paths")
	for _, p := range list {
		switch p := p.(type) {
		case string:
			paths = append(paths, p)
		case map[string]any:
			if path, ok := p["path"].(string); ok {
				paths = append(paths, path)
			}
		}
	}
	if host == "" || len(paths) == 0 {
		return "", nil, answer.Errorf("the call names no host, or no device: use 'ceph orch daemon add osd " +
			"HOST:DEVICE'")
	}
	return host, paths, nil
}

// device is the device of a host by its path or identity.
func device(h *api.Host, name string) (*api.Device, error) {
	for i := range h.Status.Devices {
		d := &h.Status.Devices[i]
		if d.Path == name || d.ID == name || d.Serial != "" && d.Serial == name || slices.Contains(d.Links, name) {
			return d, nil
		}
	}
	return nil, answer.Errorf("host %s has no device %s: see 'ceph orch device ls %s'", h.Name, name, h.Name)
}

// freeDevice is a device that nothing uses.
func freeDevice(h *api.Host, name string) (*api.Device, error) {
	d, err := device(h, name)
	if err != nil {
		return nil, err
	}
	if taken := d.Taken(); taken != "" {
		return nil, answer.Errorf("device %s of host %s is not free: %s; 'ceph orch device zap' erases one that no "+
			"cluster uses", name, h.Name, taken)
	}
	return d, nil
}

// deviceOn is a device of a host that the cluster uses.
func deviceOn(c *Call, host, name string) (*api.Host, *api.Device, error) {
	h, err := c.usedHost(host)
	if err != nil {
		return nil, nil, err
	}
	d, err := device(h, name)
	return h, d, err
}

// zap erases a disk that no cluster uses.
func zap(ctx context.Context, c *Call) (any, error) {
	a, err := read[struct {
		Host string `json:"host"`
		Path string `json:"path"`
	}](c)
	if err != nil {
		return nil, err
	}
	h, d, err := deviceOn(c, a.Host, a.Path)
	if err != nil {
		return nil, err
	}
	words := fmt.Sprintf("zap of %s on host '%s'", a.Path, h.Name)
	return c.onDevice(ctx, hostaction.Wipe, h.Name, d, words, map[string]api.ActionParameter{
		hostaction.ParamConfirm: api.ActionParameter(d.ID),
	})
}

func (c *Call) onDevice(
	ctx context.Context, kind, host string, d *api.Device, words string, parameters map[string]api.ActionParameter,
) (string, error) {
	action := api.ActionSpec{Kind: kind, Target: "device/" + d.ID, Host: host, Parameters: parameters}
	enough := accepted
	if kind == hostaction.Light { // it ends at once, or is refused: a slot may have no light
		enough = func(*api.Action) bool { return false }
	}
	return c.start(ctx, action, words, enough)
}

// light switches the lights of disks. 'ceph device light' shows results alone, and hides errors: what
// is refused is a result, too.
func light(ctx context.Context, c *Call) (any, error) {
	words, err := lights(ctx, c)
	var refused *answer.Error
	if errors.As(told(err), &refused) {
		return append(words, refused.Message), nil
	}
	return words, err
}

func lights(ctx context.Context, c *Call) ([]string, error) {
	a, err := read[struct {
		Light     string            `json:"ident_fault"`
		On        bool              `json:"on"`
		Locations []json.RawMessage `json:"locations"`
	}](c)
	if err != nil {
		return nil, err
	}
	if len(a.Locations) == 0 {
		return nil, answer.Errorf("Ceph knows no such device: see 'ceph device ls' for the devices that it knows")
	}
	if len(a.Locations) > mostLights {
		return nil, answer.Errorf("%d places of one device are too many: name one of them", len(a.Locations))
	}
	state := map[bool]string{true: hostaction.On, false: hostaction.Off}[a.On]
	places := make([]place, len(a.Locations))
	for i, location := range a.Locations { // all, or none
		if places[i], err = placed(c, location); err != nil {
			return nil, err
		}
	}
	words := []string{}
	for i, p := range places {
		one := *c
		one.ID = fmt.Sprintf("%.10s%d", c.ID, i)
		task := fmt.Sprintf("%s light of %s on host %s: %s", a.Light, p.device.Path, p.host, state)
		said, err := one.onDevice(ctx, hostaction.Light, p.host, p.device, task, map[string]api.ActionParameter{
			hostaction.ParamLight: api.ActionParameter(a.Light), hostaction.ParamState: api.ActionParameter(state),
		})
		if err != nil {
			return nil, err
		}
		words = append(words, said)
	}
	return words, nil
}

// mostLights is at how many places one device is at most.
const mostLights = 16

// place is where a device is.
type place struct {
	host   string
	device *api.Device
}

// placed finds a DeviceLightLoc.
func placed(c *Call, location json.RawMessage) (place, error) {
	host, names := placeOf(location)
	h, err := c.usedHost(host)
	if err != nil {
		return place{}, err
	}
	d, err := anyDevice(h, names)
	return place{h.Name, d}, err
}

// placeOf reads a DeviceLightLoc: a list of host, device and path, or a map of these.
func placeOf(location json.RawMessage) (host string, names []string) {
	var list []string
	if json.Unmarshal(location, &list) == nil && len(list) == 3 {
		return list[0], list[1:]
	}
	var fields struct{ Host, Dev, Path string }
	_ = json.Unmarshal(location, &fields) // an empty place is refused
	return fields.Host, []string{fields.Dev, fields.Path}
}

func anyDevice(h *api.Host, names []string) (d *api.Device, err error) {
	err = refusal.Errorf("the call names no device of host %s", h.Name)
	for _, name := range slices.Backward(names) {
		if d, err = device(h, name); err == nil {
			return d, nil
		}
		if d, err = device(h, "/dev/"+name); err == nil {
			return d, nil
		}
	}
	return nil, err
}

// replaceDevice has all OSDs of a device replaced: 'ceph orch device replace' of Ceph 20.
func replaceDevice(ctx context.Context, c *Call) (any, error) {
	a, err := read[struct {
		Host   string `json:"hostname"`
		Device string `json:"device"`
		Clear  bool   `json:"clear"`
	}](c)
	if err != nil {
		return nil, err
	}
	h, d, err := deviceOn(c, a.Host, a.Device)
	if err != nil {
		return nil, err
	}
	var ids []string
	for i := range c.View.Daemons {
		x := &c.View.Daemons[i]
		on := func(p api.DaemonDevice) bool { return p.ID == d.ID || p.Of == d.ID }
		if x.Spec.Host == h.Name && spec.TypeOf(x) == "osd" && slices.ContainsFunc(x.Spec.Devices, on) {
			ids = append(ids, x.Spec.ID)
		}
	}
	if len(ids) == 0 {
		return nil, answer.Errorf("no OSD of cluster %s is on device %s of host %s", c.View.Cluster.Name, a.Device,
			h.Name)
	}
	next := *c
	next.Args, err = json.Marshal(map[string]any{"osd_ids": ids, "replace": !a.Clear})
	if err != nil {
		return nil, err
	}
	if a.Clear {
		return stopRemoval(ctx, &next)
	}
	return removeOSDs(ctx, &next)
}
