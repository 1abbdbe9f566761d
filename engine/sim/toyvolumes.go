package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// A toy's volumes are names that its daemons remember. It can be asked for them, and told of them, on the hosts alone.
const (
	toyMake = "volume make"
	toyDrop = "volume drop"
)

var (
	_ Performer = (*Toy)(nil)
	_ Reporter  = (*Toy)(nil)
)

type toyReport struct {
	Volumes []string `json:"volumes"`
}

// Knows says whether a daemon is a toy's.
func (t *Toy) Knows(daemonType string) bool { return daemonType == "toy" }

// Command makes a volume, or drops it.
func (t *Toy) Command(d *api.Daemon, cmd engine.Command) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := types.NamespacedName{Namespace: d.Namespace, Name: d.Spec.Cluster}
	if t.volumes[c] == nil {
		t.volumes[c] = map[string]bool{}
	}
	switch cmd.Verb {
	case toyMake:
		t.volumes[c][cmd.Object] = true
	case toyDrop:
		delete(t.volumes[c], cmd.Object)
	default:
		return "", fmt.Errorf("unknown command %q", cmd.Verb)
	}
	t.performed++
	return "it is so", nil
}

// Report lists the volumes.
func (t *Toy) Report(d *api.Daemon) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := types.NamespacedName{Namespace: d.Namespace, Name: d.Spec.Cluster}
	text, err := json.Marshal(toyReport{slices.Sorted(maps.Keys(t.volumes[c]))})
	return string(text), err
}

// reported is what the daemons report; nil when none does.
func reported(view *engine.View) *toyReport {
	for i := range view.Daemons {
		var r toyReport
		if d := &view.Daemons[i]; json.Unmarshal([]byte(d.Status.Report), &r) == nil && d.Spec.Parameters[api.ParameterReport] != "" {
			return &r
		}
	}
	return nil
}

// foreseeVolumes is what the daemons will report when they were asked for these commands.
func foreseeVolumes(was *toyReport, commands []engine.Command) *toyReport {
	next := &toyReport{}
	if was != nil {
		next.Volumes = slices.Clone(was.Volumes)
	}
	for _, c := range commands {
		next.Volumes = slices.DeleteFunc(next.Volumes, func(v string) bool { return v == c.Object })
		if c.Verb == toyMake {
			next.Volumes = append(next.Volumes, c.Object)
		}
	}
	slices.Sort(next.Volumes)
	return next
}

// keepVolumes brings the volumes to where they are wanted, by way of the first daemon that runs.
func (p *toyPlan) keepVolumes() {
	state, _ := p.view.System.(*ToyState)
	first := p.firstRunning()
	for _, v := range engine.OfKind[*api.Volume](p.view.Resources) {
		known := state != nil && state.Report != nil && first != ""
		there := known && slices.Contains(state.Report.Volumes, v.Name)
		if v.DeletionTimestamp != nil && known && !there {
			p.LetGo(v)
			continue
		}
		p.keepVolume(v, known, there)
		if verb := volumeVerb(v, there); known && verb != "" {
			p.Commands = append(p.Commands, engine.Command{Verb: verb, Object: v.Name, Daemon: first, Line: "volume/" + v.Name, Reason: "it is wanted so"})
		}
	}
}

func (p *toyPlan) firstRunning() (name string) {
	for i := range p.view.Daemons {
		if d := &p.view.Daemons[i]; d.Status.State == api.DaemonRunning && (name == "" || d.Name < name) {
			name = d.Name
		}
	}
	return name
}

func volumeVerb(v *api.Volume, there bool) string {
	switch {
	case v.DeletionTimestamp != nil:
		return toyDrop
	case !there:
		return toyMake
	}
	return ""
}

func (p *toyPlan) keepVolume(v *api.Volume, known, there bool) {
	next := v.DeepCopy()
	status := &next.Status
	status.ObservedGeneration, status.Message, status.Conditions = v.Generation, "", nil
	switch {
	case !known:
		status.State, status.Message = api.ResourcePending, "no daemon reports"
	case v.DeletionTimestamp != nil:
		status.State = api.ResourceDeleting
	case there:
		status.State = api.ResourceOnline
	case p.view.Cluster.ModeOf() == api.ClusterObserved:
		status.State, status.Message = api.ResourcePending, "the cluster is only observed"
	default:
		status.State = api.ResourceCreating
	}
	if status.State != api.ResourceOnline {
		p.decide("volume/"+v.Name, api.VerdictWait, api.ReasonNotReady, "it is "+string(status.State))
	}
	p.PutResource(v, next)
}
