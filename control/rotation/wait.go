package rotation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/pki"
)

// recheck is how often it is looked whether all are there.
const recheck = 2 * time.Second

// named is how many are told by name.
const named = 8

// wait counts the servers, and the hosts if wanted, that are where they shall be, and names the others.
func (h *Handler) wait(ctx context.Context, s *State, hosts bool, what string, is func(pki.Belief) bool) (action.Progress, error) {
	there := func(b pki.Belief) bool { return b.Generation >= s.Generation && is(b) }
	missing, total, err := h.servers(ctx, there)
	if err == nil && hosts {
		var more []string
		var count int
		more, count, err = h.hosts(ctx, there)
		missing, total = append(missing, more...), total+count
	}
	if err != nil {
		return action.Progress{}, err
	}
	p := action.Progress{
		Done: len(missing) == 0, Count: int64(total - len(missing)), Total: int64(total), Unit: "servers and hosts", Uneven: true, Recheck: recheck,
		Message: "waiting for all to " + what,
	}
	if p.Done {
		p.Message = "all " + what
		return p, nil
	}
	if len(missing) > named {
		missing = append(missing[:named:named], fmt.Sprintf("%d others", len(missing)-named))
	}
	p.WaitsFor = fmt.Sprintf("these to %s: %s", what, strings.Join(missing, ", "))
	return p, nil
}

func (h *Handler) servers(ctx context.Context, there func(pki.Belief) bool) (missing []string, total int, err error) {
	var list, beliefs corev1.ConfigMap
	if err := h.Client.Get(ctx, client.ObjectKey{Namespace: api.SystemNamespace, Name: endpoints.ServersName}, &list); err != nil {
		return nil, 0, fmt.Errorf("while reading the list of servers: %w", err)
	}
	err = h.Client.Get(ctx, client.ObjectKey{Namespace: api.SystemNamespace, Name: BeliefsName}, &beliefs)
	if client.IgnoreNotFound(err) != nil {
		return nil, 0, fmt.Errorf("while reading whom the servers believe: %w", err)
	}
	// Standbys are on no list, and keep the authority, too.
	var standbys api.HostList
	if err := h.Client.List(ctx, &standbys, client.HasLabels{api.LabelServer}); err != nil {
		return nil, 0, fmt.Errorf("while reading the Hosts of servers: %w", err)
	}
	names := slices.Collect(maps.Keys(list.Data))
	for i := range standbys.Items {
		names = append(names, standbys.Items[i].Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range names {
		if !says(beliefs.Data[name], there) {
			missing = append(missing, "server "+name)
		}
	}
	return missing, len(names), nil
}

func (h *Handler) hosts(ctx context.Context, there func(pki.Belief) bool) (missing []string, total int, err error) {
	var hosts api.HostList
	if err := h.Client.List(ctx, &hosts); err != nil {
		return nil, 0, fmt.Errorf("while reading the Hosts: %w", err)
	}
	for i := range hosts.Items {
		host := &hosts.Items[i]
		if says(host.Annotations[Annotation], there) {
			continue
		}
		name := "host " + host.Name
		if !host.AgentHeard() {
			name += " (its agent is disconnected: bring it back, or remove it with 'holdfast host remove " + host.Name + " --gone')"
		}
		missing = append(missing, name)
	}
	return missing, len(hosts.Items), nil
}

func says(text string, there func(pki.Belief) bool) bool {
	var b pki.Belief
	return json.Unmarshal([]byte(text), &b) == nil && there(b)
}
