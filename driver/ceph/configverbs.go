package ceph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// verbConfigSet and verbConfigRm store options in Ceph's own configuration, and take those away that Holdfast has stored. Params are the
// values by "section name".
const (
	verbConfigSet = "config set"
	verbConfigRm  = "config rm"
)

// configSet writes down what it is going to set before it does, so that what a run that is cut off has set is taken away some day, and
// afterwards how Ceph has understood it (4G is stored as 4294967296).
func (c *conn) configSet(ctx context.Context, r request) error {
	owned, err := c.readOwned(ctx, recordOf(r.Verb))
	if err != nil {
		return err
	}
	for key, value := range r.Params {
		owned[key] = OwnedOption{Is: value}
	}
	if err := c.writeOwned(ctx, recordOf(r.Verb), owned); err != nil {
		return err
	}
	setting := c.eachOption(r, func(who, name string) error {
		_, err := c.client.Mon(ctx, command{"prefix": "config set", "who": who, "name": name, "value": r.Params[configKey(who, name)]}, nil)
		return err
	})
	stored, err := c.readStored(ctx)
	if err != nil {
		return errors.Join(setting, err)
	}
	for key := range r.Params {
		owned[key] = OwnedOption{Is: owned[key].Is, As: stored[key]}
	}
	return errors.Join(setting, c.writeOwned(ctx, recordOf(r.Verb), owned))
}

// configRm takes away what is as Holdfast has set it; what an administrator has changed since is theirs.
func (c *conn) configRm(ctx context.Context, r request) error {
	owned, err := c.readOwned(ctx, recordOf(r.Verb))
	if err != nil {
		return err
	}
	stored, err := c.readStored(ctx)
	if err != nil {
		return err
	}
	err = c.eachOption(r, func(who, name string) error {
		key := configKey(who, name)
		if was, ours := owned[key]; !ours || was.As != "" && was.As != stored[key] {
			return nil
		}
		_, err := c.client.Mon(ctx, command{"prefix": "config rm", "who": who, "name": name}, nil)
		return err
	})
	if err != nil {
		return err
	}
	maps.DeleteFunc(owned, func(key string, _ OwnedOption) bool { _, gone := r.Params[key]; return gone })
	return c.writeOwned(ctx, recordOf(r.Verb), owned)
}

// eachOption does something for several options at one time: the mons then take them in few steps.
func (c *conn) eachOption(r request, do func(who, name string) error) error {
	var group errgroup.Group
	group.SetLimit(performAtOnce)
	keys := slices.Sorted(maps.Keys(r.Params))
	errs := make([]error, len(keys))
	for i, key := range keys {
		who, name, _ := strings.Cut(key, " ")
		group.Go(func() error {
			if err := do(who, name); err != nil {
				errs[i] = fmt.Errorf("asking for '%s' of %s for %s: %w", r.Verb, name, who, err)
			}
			return nil
		})
	}
	_ = group.Wait()
	return errors.Join(errs...)
}

// writeOwned writes down what Holdfast has set, and has it read anew.
func (c *conn) writeOwned(ctx context.Context, record string, owned map[string]OwnedOption) error {
	c.mu.Lock()
	c.owned, c.defaults = nil, nil
	c.mu.Unlock()
	cmd := command{"prefix": "config-key rm", "key": record}
	if len(owned) > 0 {
		text, err := json.Marshal(owned)
		if err != nil {
			return err
		}
		cmd = command{"prefix": "config-key set", "key": record, "val": string(text)}
	}
	if _, err := c.client.Mon(ctx, cmd, nil); err != nil {
		return fmt.Errorf("recording which options Holdfast has set: %w", err)
	}
	return nil
}

// configFacts are those of before, to be changed by commands.
func (f *foresight) configFacts() *ConfigFacts {
	was := f.seen.Config
	if was == nil {
		return nil
	}
	now := *was
	now.Stored, now.Owned = maps.Clone(was.Stored), maps.Clone(was.Owned)
	if now.Stored == nil {
		now.Stored = map[string]string{}
	}
	return &now
}

// configSet takes it that Ceph stores values as they are written.
func (f *foresight) configSet(r request) {
	for key, value := range r.Params {
		f.Config.Owned[key], f.Config.Stored[key] = OwnedOption{Is: value, As: value}, value
	}
}

func (f *foresight) configRm(r request) {
	for key := range r.Params {
		delete(f.Config.Owned, key)
		delete(f.Config.Stored, key)
	}
}
