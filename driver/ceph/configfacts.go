package ceph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"

	"github.com/holdfast-storage/holdfast/driver/ceph/optioninfo"
	"github.com/holdfast-storage/holdfast/driver/ceph/optionset"
	"github.com/holdfast-storage/holdfast/engine"
)

// ConfigFacts are what Ceph says of its own configuration. Keys of options are "section name".
type ConfigFacts struct {
	// Options are those of the declared options that Ceph knows; Near has names that are like those that it does not know.
	Options map[string]optioninfo.Info
	Near    map[string][]string
	// Stored is what is set in the mons' database, but for what is set for a part of the hosts or devices.
	Stored map[string]string
	// Owned is what Holdfast has set there.
	Owned map[string]OwnedOption
}

// hasAsked says whether Ceph was asked for an option: without that nobody knows whether it has the
// option.
func (x *ConfigFacts) hasAsked(name string) bool {
	_, known := x.Options[name]
	_, missed := x.Near[name]
	return known || missed
}

// OwnedOption is an option that Holdfast has set: Is is the value as declared, As as Ceph then stored it; empty until that was seen.
type OwnedOption struct {
	Is string `json:"is"`
	As string `json:"as,omitempty"`
}

const (
	// configRecord is where Holdfast writes down, in Ceph itself, which options it has set: what it did not set it does not take away.
	configRecord = "holdfast/config"
)

// fillConfig asks for Ceph's own configuration where options are declared, or were.
func (c *conn) fillConfig(ctx context.Context, view *engine.View, o *Observation) error {
	if view.Cluster.Spec.Ceph == nil {
		return nil
	}
	wanted := declared(view.Cluster.Spec.Ceph, o.Version)
	if c.owned == nil {
		owned, err := c.readOwned(ctx, configRecord)
		if err != nil {
			return err
		}
		c.owned = owned
	}
	facts := &ConfigFacts{Options: map[string]optioninfo.Info{}, Near: map[string][]string{}, Owned: c.owned}
	o.Config = facts
	if len(wanted)+len(c.owned) == 0 {
		return nil
	}
	var err error
	if facts.Stored, err = c.readStored(ctx); err != nil {
		return err
	}
	wanted.Each(func(_, name, _ string) {
		if err == nil {
			err = c.fillOption(ctx, name, o.Version, facts)
		}
	})
	return err
}

// fillOption asks for an option once for each release.
func (c *conn) fillOption(ctx context.Context, name, release string, facts *ConfigFacts) error {
	if c.optionsOf != release {
		c.options, c.optionNames, c.optionsOf = map[string]optioninfo.Info{}, nil, release
	}
	if info, known := c.options[name]; known {
		facts.Options[name] = info
		return nil
	}
	out, err := c.client.Mon(ctx, command{"prefix": "config help", "key": name, "format": "json"}, nil)
	if errors.Is(err, syscall.ENOENT) {
		return c.fillNear(ctx, name, facts)
	}
	var help optioninfo.Help
	if err == nil {
		err = json.Unmarshal(out, &help)
	}
	if err != nil {
		return fmt.Errorf("asking for the option %s: %w", name, err)
	}
	c.options[name] = help.Info()
	facts.Options[name] = c.options[name]
	return nil
}

func (c *conn) fillNear(ctx context.Context, name string, facts *ConfigFacts) error {
	if c.optionNames == nil {
		if err := c.ask(ctx, "config ls", &c.optionNames); err != nil {
			return err
		}
	}
	facts.Near[name] = optionset.Nearest(c.optionNames, name)
	return nil
}

// readOwned reads what Holdfast has written down; nothing where it has not.
func (c *conn) readOwned(ctx context.Context, record string) (map[string]OwnedOption, error) {
	owned := map[string]OwnedOption{}
	out, err := c.client.Mon(ctx, command{"prefix": "config-key get", "key": record}, nil)
	if errors.Is(err, syscall.ENOENT) {
		return owned, nil
	}
	if err == nil {
		err = json.Unmarshal(out, &owned)
	}
	if err != nil {
		return nil, fmt.Errorf("reading which options Holdfast has set: %w", err)
	}
	return owned, nil
}

// readStored reads the mons' database of options.
func (c *conn) readStored(ctx context.Context) (map[string]string, error) {
	var dump []struct {
		Section string `json:"section"`
		Name    string `json:"name"`
		Value   string `json:"value"`
		Mask    string `json:"mask"`
	}
	err := c.ask(ctx, "config dump", &dump)
	stored := make(map[string]string, len(dump))
	for _, o := range dump {
		if o.Mask == "" {
			stored[configKey(o.Section, o.Name)] = o.Value
		}
	}
	return stored, err
}
