package ceph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/monset"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/engine"
)

// clientPrefix begins the entities of clients.
const clientPrefix = "client."

func entityOfClient(c *api.Client) string { return clientPrefix + c.Name }

// fewClients is up to how many are asked for one by one: the whole auth database has a key for each OSD, too.
const fewClients = 8

// authEntity is one of Ceph's auth database. Its key is left where it is.
type authEntity struct {
	Entity string            `json:"entity"`
	Caps   map[string]string `json:"caps"`
}

// fillClients asks for the capabilities of the cluster's Clients. What is not answered is asked again in the next run: it must not
// keep the others from what else is known.
func (c *conn) fillClients(ctx context.Context, view *engine.View, o *Observation) {
	clients := engine.OfKind[*api.Client](view.Resources)
	if len(clients) == 0 {
		return
	}
	found, err := c.authEntities(ctx, clients)
	if err != nil {
		return
	}
	o.Clients = map[string]map[string]string{}
	for _, e := range found {
		o.Clients[e.Entity] = e.Caps
	}
}

func (c *conn) authEntities(ctx context.Context, clients []*api.Client) (found []authEntity, err error) {
	if len(clients) > fewClients {
		var all struct {
			Dump []authEntity `json:"auth_dump"`
		}
		err := c.ask(ctx, "auth ls", &all)
		return all.Dump, err
	}
	for _, x := range clients {
		var one []authEntity
		out, err := c.client.Mon(ctx, command{"prefix": "auth get", "entity": entityOfClient(x), "format": "json"}, nil)
		if refused := (*rados.CommandError)(nil); errors.As(err, &refused) && refused.Errno == syscall.ENOENT {
			continue
		}
		if err == nil {
			err = json.Unmarshal(out, &one)
		}
		if err != nil {
			return nil, fmt.Errorf("asking for %s: %w", entityOfClient(x), err)
		}
		found = append(found, one...)
	}
	return found, nil
}

// authCaps sets all capabilities of an entity.
func (c *conn) authCaps(ctx context.Context, r request) error {
	var caps []string
	for _, what := range slices.Sorted(maps.Keys(r.Params)) {
		caps = append(caps, what, r.Params[what])
	}
	return c.plain(ctx, r, command{"prefix": r.Verb, "entity": r.Object, "caps": caps})
}

// clientCaps are the capabilities that a Client asks for.
func clientCaps(c *api.Client) map[string]string {
	caps := map[string]string{}
	for what, text := range c.Spec.Caps {
		caps[what] = string(text)
	}
	return caps
}

// ownsClient says whether the entity of a Client was made by Holdfast: its key lies in a Secret, or it was told to have one.
func (p *planner) ownsClient(c *api.Client) bool {
	return p.hasSecret(entityOfClient(c)) || c.Status.Entity == entityOfClient(c)
}

// hasSecret says whether the key of an entity was made by Holdfast.
func (p *planner) hasSecret(entity string) bool {
	name := secretName(p.cluster.Name, entity)
	return slices.ContainsFunc(p.view.Secrets, func(s engine.SecretInfo) bool { return s.Name == name })
}

// clientWord says what a Client is: known to Ceph with these capabilities, and why it cannot be as it is declared.
func (p *planner) clientWord(c *api.Client) (caps map[string]string, known bool, refusal engine.Objection) {
	entity := entityOfClient(c)
	if !p.clientsKnown() {
		return nil, false, refusal
	}
	caps, known = p.seen.Clients[entity]
	switch failure := p.clientFailure(c); {
	case known && !p.ownsClient(c):
		refusal = engine.Refusal(api.ReasonConflict, "Ceph already has %s with a key that Holdfast did not make: choose "+
			"another name, or remove it with 'holdfast ceph auth rm %s'", entity, entity)
	case failure.Reason == api.ReasonInvalidSpec:
		refusal = engine.Refusal(api.ReasonInvalidSpec, "Ceph refuses its capabilities: %s", failure.Message)
	}
	return caps, known, refusal
}

func (p *planner) clientsKnown() bool { return p.reachable() && p.seen.Clients != nil }

// writeClients has the keys of Clients made, put into Ceph's auth database, and taken away again.
func (p *planner) writeClients() {
	for _, c := range engine.OfKind[*api.Client](p.view.Resources) {
		entity, wanted := entityOfClient(c), clientCaps(c)
		caps, known, _ := p.clientWord(c)
		switch {
		case !p.clientsKnown() || known && !p.ownsClient(c):
		case c.DeletionTimestamp != nil && known:
			p.clientCommand(c, api.ReasonDeleting, verbAuthRm, nil,
				"the Client was deleted; connected programs keep their capabilities")
		case c.DeletionTimestamp != nil && p.hasSecret(entity):
			p.plan.Secrets = append(p.plan.Secrets, engine.SecretWant{Name: secretName(p.cluster.Name, entity), Gone: true})
		case c.DeletionTimestamp != nil:
		case !p.hasSecret(entity) && known:
			p.clientCommand(c, api.ReasonRemoving, verbAuthRm, nil, "its Secret is gone: it gets another key")
		case !p.hasSecret(entity):
			p.plan.Secrets = append(p.plan.Secrets, p.secretWant(entity))
		case !known:
			// Ceph checks capabilities when they are set, and not when a key is imported with them (AuthMonitor::prepare_command).
			p.clientCommand(c, api.ReasonDeclared, verbAuthImport, nil, "%s", whyImport(c))
			p.clientCommand(c, api.ReasonDeclared, verbAuthCaps, wanted, "its capabilities are %s", capsText(wanted))
		case !maps.Equal(caps, wanted):
			p.clientCommand(c, api.ReasonDeclared, verbAuthCaps, wanted,
				"capabilities change from %s to %s; connected programs keep their old ones", capsText(caps),
				capsText(wanted))
		}
	}
}

// whyImport says why the key of a client is put into Ceph. Who deletes it there loses nothing: the key that its users have is in the Secret.
func whyImport(c *api.Client) string {
	if c.Status.Entity == entityOfClient(c) {
		return "deleted in Ceph outside Holdfast: added again with the same key"
	}
	return "it is declared"
}

// clientCommand is a command of one client: clients do not depend on each other.
func (p *planner) clientCommand(
	c *api.Client, reason api.Reason, verb string, caps map[string]string, format string, args ...any,
) {
	p.command(reason, verb, entityOfClient(c), caps, fmt.Sprintf(format, args...))
	p.plan.Commands[len(p.plan.Commands)-1].Line = engine.ResourceObject(c)
}

func capsText(caps map[string]string) string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(caps)) {
		all = append(all, what+" '"+caps[what]+"'")
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, " ")
}

// putClients writes the statuses of Clients, and lets those go whose key is gone.
func (p *planner) putClients() {
	for _, c := range engine.OfKind[*api.Client](p.view.Resources) {
		caps, known, refusal := p.clientWord(c)
		next := c.DeepCopy()
		s := &next.Status
		s.ObservedGeneration = c.Generation
		if c.DeletionTimestamp != nil {
			ended := len(p.have) == 0 || p.clientsKnown() && !p.hasSecret(entityOfClient(c)) && (!known || !p.ownsClient(c))
			if ended {
				p.plan.LetGo(c)
				continue
			}
			s.State, s.Message = api.ResourceDeleting, ""
			p.decide(api.VerdictWait, api.ReasonDeleting, engine.ResourceObject(c), "remove its key from Ceph")
		} else {
			var problems []string
			if !refusal.None() {
				p.object(engine.ResourceObject(c), refusal)
				problems = []string{refusal.Message}
			}
			engine.Accept(next, problems, p.now)
			p.tellClient(c, s, known && p.hasSecret(entityOfClient(c)) && maps.Equal(caps, clientCaps(c)), refusal.Message)
		}
		p.plan.PutResource(c, next)
	}
}

func (p *planner) tellClient(c *api.Client, s *api.ClientStatus, done bool, refusal string) {
	s.Message = ""
	switch failure := p.clientFailure(c); {
	case refusal != "":
		s.State, s.Message = api.ResourcePending, refusal
	case !failure.None():
		s.State, s.Message = api.ResourcePending, failure.Message
	case !p.clientsKnown() && s.Entity != "":
		s.State, s.Message = api.ResourceOffline, "Ceph does not answer"
	case !p.clientsKnown():
		s.State, s.Message = api.ResourcePending, "Ceph does not answer yet"
	case !done:
		s.State, s.Message = api.ResourceCreating, "adding its key to Ceph"
	default:
		s.State = api.ResourceOnline
		s.Entity, s.Secret = entityOfClient(c), secretName(p.cluster.Name, entityOfClient(c))
		s.FSID, s.MonHost = p.fsid, monset.MonHost(p.members)
	}
}
