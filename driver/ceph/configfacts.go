package ceph

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/spell"
)

// ConfigFacts are what Ceph says of its own configuration. Keys of options are "section name".
type ConfigFacts struct {
	// Options are those of the declared options that Ceph knows; Near has names that are like those that it does not know.
	Options map[string]OptionInfo
	Near    map[string][]string
	// Stored is what is set in the mons' database, but for what is set for a part of the hosts or devices.
	Stored map[string]string
	// Owned is what Holdfast has set there.
	Owned map[string]OwnedOption
}

// OwnedOption is an option that Holdfast has set: Is is the value as declared, As as Ceph then stored it; empty until that was seen.
type OwnedOption struct {
	Is string `json:"is"`
	As string `json:"as,omitempty"`
}

// OptionInfo is what Ceph says of an option ('config help').
type OptionInfo struct {
	Type string
	// Enum are the values that there are; empty where there are others.
	Enum []string
	// Min and Max bound a number where they are not empty.
	Min, Max string
	// Startup: it counts from the start of a daemon. Create: it counts for what is made from now on. FileOnly: it cannot be stored by the mons.
	Startup, Create, FileOnly bool
}

// optionHelp is the answer to 'config help'. Bounds are numbers, or empty strings.
type optionHelp struct {
	Type    string   `json:"type"`
	Enum    []string `json:"enum_values"`
	Min     any      `json:"min"`
	Max     any      `json:"max"`
	Runtime bool     `json:"can_update_at_runtime"`
	Flags   []string `json:"flags"`
}

func (h *optionHelp) info() OptionInfo {
	create := slices.Contains(h.Flags, "create") || slices.Contains(h.Flags, "cluster_create")
	return OptionInfo{
		Type: h.Type, Enum: h.Enum, Min: fmt.Sprint(cmp.Or(h.Min, any(""))), Max: fmt.Sprint(cmp.Or(h.Max, any(""))),
		Startup: !h.Runtime, Create: create, FileOnly: slices.Contains(h.Flags, "no_mon_update"),
	}
}

// wrong says why a value cannot be that of the option; nothing where it can, as far as is known here: Ceph itself has the last word.
func (o OptionInfo) wrong(value string) string {
	if len(o.Enum) > 0 && !slices.Contains(o.Enum, value) {
		return "it is one of " + strings.Join(o.Enum, ", ")
	}
	var number float64
	var err error
	switch o.Type {
	case "bool":
		if _, isNumber := strconv.Atoi(value); isNumber != nil && !slices.Contains([]string{"true", "false", "yes", "no"}, strings.ToLower(value)) {
			return "it is true or false"
		}
		return ""
	case "float":
		number, err = strconv.ParseFloat(value, 64)
	case "int", "uint", "size":
		number, err = withUnit(value)
	default:
		return ""
	}
	switch {
	case err != nil:
		return "it is a number, of type " + o.Type
	case o.Type != "float" && o.Type != "int" && number < 0:
		return "it is not negative"
	}
	return o.outside(number)
}

func (o OptionInfo) outside(number float64) string {
	if least, err := strconv.ParseFloat(o.Min, 64); err == nil && number < least {
		return "it is at least " + o.Min
	}
	if most, err := strconv.ParseFloat(o.Max, 64); err == nil && number > most {
		return "it is at most " + o.Max
	}
	return ""
}

// withUnit reads a number as Ceph does (strict_si_cast and strict_iecast): with K, M, G, T, P or E after it, or Ki, Mi …
func withUnit(value string) (float64, error) {
	digits := strings.TrimRight(strings.TrimSuffix(value, "B"), "KMGTPEi")
	if unit := value[len(digits):]; len(strings.TrimSuffix(unit, "B")) > 2 {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	power := strings.Index("KMGTPE", strings.TrimSuffix(strings.TrimSuffix(value[len(digits):], "B"), "i")) + 1
	if value[len(digits):] == "" {
		power = 0
	}
	number := float64(n)
	for range power {
		number *= 1024
	}
	return number, err
}

const (
	// configRecord is where Holdfast writes down, in Ceph itself, which options it has set: what it did not set it does not take away.
	configRecord = "holdfast/config"
	// maxNear is how many names are offered for one that is not known.
	maxNear = 3
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
	facts := &ConfigFacts{Options: map[string]OptionInfo{}, Near: map[string][]string{}, Owned: c.owned}
	o.Config = facts
	if len(wanted)+len(c.owned) == 0 {
		return nil
	}
	var err error
	if facts.Stored, err = c.readStored(ctx); err != nil {
		return err
	}
	wanted.each(func(_, name, _ string) {
		if err == nil {
			err = c.fillOption(ctx, name, o.Version, facts)
		}
	})
	return err
}

// fillOption asks for an option once for each release.
func (c *conn) fillOption(ctx context.Context, name, release string, facts *ConfigFacts) error {
	if c.optionsOf != release {
		c.options, c.optionNames, c.optionsOf = map[string]OptionInfo{}, nil, release
	}
	if info, known := c.options[name]; known {
		facts.Options[name] = info
		return nil
	}
	out, err := c.client.Mon(ctx, command{"prefix": "config help", "key": name, "format": "json"}, nil)
	if errors.Is(err, syscall.ENOENT) {
		return c.fillNear(ctx, name, facts)
	}
	var help optionHelp
	if err == nil {
		err = json.Unmarshal(out, &help)
	}
	if err != nil {
		return fmt.Errorf("asking for the option %s: %w", name, err)
	}
	c.options[name] = help.info()
	facts.Options[name] = c.options[name]
	return nil
}

func (c *conn) fillNear(ctx context.Context, name string, facts *ConfigFacts) error {
	if c.optionNames == nil {
		if err := c.ask(ctx, "config ls", &c.optionNames); err != nil {
			return err
		}
	}
	facts.Near[name] = nearest(c.optionNames, name)
	return nil
}

// nearest are the names that are like one that is not known, the most like it first.
func nearest(names []string, name string) []string {
	near := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !spell.Alike(name, 2*spell.Distance(name, n)) })
	slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(spell.Distance(name, a), spell.Distance(name, b)) })
	return near[:min(len(near), maxNear)]
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
