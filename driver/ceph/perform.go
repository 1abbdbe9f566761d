package ceph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-storage/holdfast/engine"
)

// The verbs of commands.
const (
	// verbOSDNew registers OSDs. Params maps each OSD, such as osd.3, to its uuid.
	verbOSDNew = "osd new"
	// verbAuthImport makes sure that an entity is in Ceph's auth database with its key and capabilities.
	verbAuthImport = "auth import"
	// verbAuthRm takes an entity from Ceph's auth database.
	verbAuthRm = "auth rm"
	// verbNoout and verbUnsetNoout set and take away the flag noout of the OSDs that are the command's object. It is the flag
	// of each OSD and not of the host's CRUSH bucket: the mons heed it alike, it shows in the map that is read anyway, it goes
	// with the OSD, and it cannot be mistaken for one that an administrator has set.
	verbNoout      = "osd set-group noout"
	verbUnsetNoout = "osd unset-group noout"
	// verbOSDOut and verbOSDIn have Ceph move the data off OSDs, and back.
	verbOSDOut = "osd out"
	verbOSDIn  = "osd in"
	// verbOSDPurge has Ceph forget OSDs: their numbers, their place in CRUSH, and their keys.
	verbOSDPurge = "osd purge"
	// verbCrushRm removes an empty bucket from CRUSH.
	verbCrushRm = "osd crush rm"
	// verbMonRemove takes a mon out of Ceph's own map.
	verbMonRemove = "mon remove"
	// verbMgrFail has the active manager hand over to a standby.
	verbMgrFail = "mgr fail"
)

const (
	// performTimeout bounds one command of a plan.
	performTimeout = 30 * time.Second
	// performAtOnce bounds how many OSDs are registered at one time.
	performAtOnce = 16
)

// Perform carries out one command. Each may be repeated: 'osd new' with the same number, uuid and key, and 'auth import' of
// the same keyring, change nothing.
func (d *Driver) Perform(ctx context.Context, view *engine.View, cmd engine.Command, secrets engine.SecretReader) error {
	ctx, cancel := context.WithTimeout(ctx, performTimeout)
	defer cancel()
	c, err := d.connect(ctx, view, secrets)
	if err != nil {
		return err
	}
	switch cmd.Verb {
	case verbOSDNew:
		return c.osdNew(ctx, view.Cluster.Name, cmd.Params, secrets)
	case verbAuthImport:
		return c.authImport(ctx, view.Cluster.Name, cmd.Object, secrets)
	case verbNoout, verbUnsetNoout:
		return c.noout(ctx, strings.TrimSuffix(cmd.Verb, " noout"), cmd.Object)
	case verbAuthRm:
		return c.authRm(ctx, cmd)
	case verbOSDOut, verbOSDIn:
		return c.plain(ctx, cmd, command{"prefix": cmd.Verb, "ids": strings.Split(cmd.Object, ", ")})
	case verbCrushRm:
		return c.plain(ctx, cmd, command{"prefix": cmd.Verb, "name": cmd.Object})
	case verbMonRemove:
		return c.plain(ctx, cmd, command{"prefix": cmd.Verb, "name": strings.TrimPrefix(cmd.Object, "mon.")})
	case verbOSDPurge:
		return c.purge(ctx, strings.Split(cmd.Object, ", "))
	case verbMgrFail:
		return c.mgrFail(ctx, cmd.Object)
	}
	return fmt.Errorf("the driver for Ceph has no command %q", cmd.Verb)
}

// osdNew registers OSDs, several at one time: the mons then take them in few steps, where one after the other each would wait
// for a step of its own (paxos_propose_interval, 1 s). One that fails does not keep the others.
func (c *conn) osdNew(ctx context.Context, cluster string, osds map[string]string, secrets engine.SecretReader) error {
	var group errgroup.Group
	group.SetLimit(performAtOnce)
	names := sortedKeys(osds)
	errs := make([]error, len(names))
	for i, name := range names {
		group.Go(func() error {
			errs[i] = c.osdNewOne(ctx, cluster, name, osds[name], secrets)
			return nil
		})
	}
	_ = group.Wait()
	return errors.Join(errs...)
}

func (c *conn) osdNewOne(ctx context.Context, cluster, name, uuid string, secrets engine.SecretReader) error {
	id, err := strconv.Atoi(strings.TrimPrefix(name, "osd."))
	if err != nil {
		return fmt.Errorf("registering %s: %w", name, err)
	}
	data, err := secrets.Secret(ctx, secretName(cluster, name))
	if err != nil {
		return fmt.Errorf("registering %s: reading its key: %w", name, err)
	}
	input, err := json.Marshal(map[string]string{"cephx_secret": string(data[secretKey])})
	if err != nil {
		return fmt.Errorf("registering %s: %w", name, err)
	}
	// The number has to be a JSON integer: a string is answered by "bad or missing field 'id'".
	cmd := command{"prefix": "osd new", "uuid": uuid, "id": id, "format": "json"}
	if _, err := c.client.Mon(ctx, cmd, input); err != nil {
		return fmt.Errorf("registering %s: %w", name, err)
	}
	return nil
}

// noout sets the flag of OSDs, given as "osd.1, osd.2". To Ceph it is the same whether it is set already.
func (c *conn) noout(ctx context.Context, prefix, osds string) error {
	cmd := command{"prefix": prefix, "flags": "noout", "who": strings.Split(osds, ", ")}
	if _, err := c.client.Mon(ctx, cmd, nil); err != nil {
		return fmt.Errorf("changing the flag noout of %s: %w", osds, err)
	}
	return nil
}

// authRm also forgets the entities that were seen, so that they are asked for anew.
func (c *conn) authRm(ctx context.Context, cmd engine.Command) error {
	c.mu.Lock()
	c.entities = nil
	c.mu.Unlock()
	return c.plain(ctx, cmd, command{"prefix": cmd.Verb, "entity": cmd.Object})
}

// plain sends a command that has no input, and whose answer says nothing.
func (c *conn) plain(ctx context.Context, what engine.Command, cmd command) error {
	if _, err := c.client.Mon(ctx, cmd, nil); err != nil {
		return fmt.Errorf("asking for %s of %s: %w", what.Verb, what.Object, err)
	}
	return nil
}

// purge goes through the mgr, which refuses an OSD that is not safe to destroy. One that is gone already is no error.
func (c *conn) purge(ctx context.Context, osds []string) error {
	for _, name := range osds {
		id, err := strconv.Atoi(strings.TrimPrefix(name, "osd."))
		if err != nil {
			return fmt.Errorf("purging %s: %w", name, err)
		}
		cmd := command{"prefix": verbOSDPurge, "id": id, "yes_i_really_mean_it": true, "format": "json"}
		if _, err := c.client.Mgr(ctx, cmd, nil); err != nil {
			return fmt.Errorf("purging %s: %w", name, err)
		}
	}
	return nil
}

// mgrFail changes nothing when the manager is not active.
func (c *conn) mgrFail(ctx context.Context, name string) error {
	if _, err := c.client.Mon(ctx, command{"prefix": "mgr fail", "who": strings.TrimPrefix(name, "mgr.")}, nil); err != nil {
		return fmt.Errorf("having %s hand over: %w", name, err)
	}
	return nil
}

func (c *conn) authImport(ctx context.Context, cluster, entity string, secrets engine.SecretReader) error {
	data, err := secrets.Secret(ctx, secretName(cluster, entity))
	if err != nil {
		return fmt.Errorf("importing the key of %s: reading it: %w", entity, err)
	}
	if _, err := c.client.Mon(ctx, command{"prefix": "auth import"}, data[secretKeyring]); err != nil {
		return fmt.Errorf("importing the key of %s: %w", entity, err)
	}
	return nil
}
