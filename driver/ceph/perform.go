package ceph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-storage/holdfast/engine"
)

const (
	// performTimeout bounds one command of a plan.
	performTimeout = 30 * time.Second
	// performAtOnce bounds how many OSDs are registered, or given a weight, at one time.
	performAtOnce = 16
)

// Perform carries out one command. Each may be repeated: 'osd new' with the same number, uuid and key, and 'auth import' of
// the same keyring, change nothing.
func (d *Driver) Perform(ctx context.Context, view *engine.View, cmd engine.Command, secrets engine.SecretReader) error {
	v, known := verbs[cmd.Verb]
	if !known {
		return fmt.Errorf("the driver for Ceph has no command %q", cmd.Verb)
	}
	ctx, cancel := context.WithTimeout(ctx, performTimeout)
	defer cancel()
	c, err := d.connect(ctx, view, secrets)
	if err != nil {
		return err
	}
	return v.perform(c, ctx, request{cmd, view.Cluster.Name, secrets})
}

// request is a command with what is needed to carry it out.
type request struct {
	engine.Command
	cluster string
	secrets engine.SecretReader
}

// names are the objects of a command that has several.
func (r request) names() []string { return strings.Split(r.Object, ", ") }

// osdNew registers OSDs, several at one time: the mons then take them in few steps, where one after the other each would wait
// for a step of its own (paxos_propose_interval, 1 s). One that fails does not keep the others.
func (c *conn) osdNew(ctx context.Context, r request) error {
	return atOnce(r, func(name string) error { return c.osdNewOne(ctx, r, name) })
}

// atOnce does something with all that a command has parameters for.
func atOnce(r request, one func(name string) error) error {
	var group errgroup.Group
	group.SetLimit(performAtOnce)
	names := slices.Sorted(maps.Keys(r.Params))
	errs := make([]error, len(names))
	for i, name := range names {
		group.Go(func() error {
			errs[i] = one(name)
			return nil
		})
	}
	_ = group.Wait()
	return errors.Join(errs...)
}

// reweight changes weights in CRUSH. That of an OSD that has it already stays.
func (c *conn) reweight(ctx context.Context, r request) error {
	return atOnce(r, func(name string) error {
		return c.plain(ctx, r, command{"prefix": r.Verb, "name": name, "weight": json.RawMessage(r.Params[name])})
	})
}

func (c *conn) osdNewOne(ctx context.Context, r request, name string) error {
	id, err := strconv.Atoi(strings.TrimPrefix(name, "osd."))
	if err != nil {
		return fmt.Errorf("registering %s: %w", name, err)
	}
	data, err := r.secrets.Secret(ctx, secretName(r.cluster, name))
	if err != nil {
		return fmt.Errorf("registering %s: reading its key: %w", name, err)
	}
	input, err := json.Marshal(map[string]string{"cephx_secret": string(data[secretKey])})
	if err != nil {
		return fmt.Errorf("registering %s: %w", name, err)
	}
	// The number has to be a JSON integer: a string is answered by "bad or missing field 'id'".
	cmd := command{"prefix": "osd new", "uuid": r.Params[name], "id": id, "format": "json"}
	if _, err := c.client.Mon(ctx, cmd, input); err != nil {
		return fmt.Errorf("registering %s: %w", name, err)
	}
	return nil
}

// noout sets the flag of OSDs, or takes it away. To Ceph it is the same whether it is set already.
func (c *conn) noout(ctx context.Context, r request) error {
	return c.plain(ctx, r, command{"prefix": strings.TrimSuffix(r.Verb, " noout"), "flags": "noout", "who": r.names()})
}

// authRm also forgets the entities that were seen, so that they are asked for anew.
func (c *conn) authRm(ctx context.Context, r request) error {
	c.mu.Lock()
	c.entities = nil
	c.mu.Unlock()
	return c.plain(ctx, r, command{"prefix": r.Verb, "entity": r.Object})
}

func (c *conn) inOut(ctx context.Context, r request) error {
	return c.plain(ctx, r, command{"prefix": r.Verb, "ids": r.names()})
}

// removeNamed removes what the command calls by its name.
func (c *conn) removeNamed(ctx context.Context, r request) error {
	return c.plain(ctx, r, command{"prefix": r.Verb, "name": strings.TrimPrefix(r.Object, "mon.")})
}

// mgrFail changes nothing when the manager is not active.
func (c *conn) mgrFail(ctx context.Context, r request) error {
	return c.plain(ctx, r, command{"prefix": r.Verb, "who": strings.TrimPrefix(r.Object, "mgr.")})
}

// plain sends a command that has no input, and whose answer says nothing.
func (c *conn) plain(ctx context.Context, r request, cmd command) error {
	_, err := c.client.Mon(ctx, cmd, nil)
	return wrapped(err, r)
}

// wrapped says what was asked for when it failed.
func wrapped(err error, r request) error {
	if err != nil {
		return fmt.Errorf("asking for %s of %s: %w", r.Verb, r.Object, err)
	}
	return nil
}

// purge goes through the mgr, which refuses an OSD that is not safe to destroy. One that is gone already is no error.
func (c *conn) purge(ctx context.Context, r request) error {
	for _, name := range r.names() {
		id, err := strconv.Atoi(strings.TrimPrefix(name, "osd."))
		if err != nil {
			return fmt.Errorf("purging %s: %w", name, err)
		}
		cmd := command{"prefix": r.Verb, "id": id, "yes_i_really_mean_it": true, "format": "json"}
		if _, err := c.client.Mgr(ctx, cmd, nil); err != nil {
			return fmt.Errorf("purging %s: %w", name, err)
		}
	}
	return nil
}

func (c *conn) authImport(ctx context.Context, r request) error {
	data, err := r.secrets.Secret(ctx, secretName(r.cluster, r.Object))
	if err != nil {
		return fmt.Errorf("importing the key of %s: reading it: %w", r.Object, err)
	}
	if _, err := c.client.Mon(ctx, command{"prefix": "auth import"}, data[secretKeyring]); err != nil {
		return fmt.Errorf("importing the key of %s: %w", r.Object, err)
	}
	return nil
}
