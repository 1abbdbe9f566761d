package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func newHostLabel(g *globals) *cobra.Command {
	var selector string
	var location []string
	cmd := &cobra.Command{
		Use:   "label NAME… | -l SELECTOR   KEY=VALUE… KEY-… [--location LEVEL=VALUE,…]",
		Short: "Set labels and locations of hosts",
		Long: `Sets labels (KEY=VALUE) and removes labels (KEY-) of hosts. If one change is refused, nothing is
changed.

--location sets the location by these levels, from the largest to the smallest: region, zone,
datacenter, row, rack, chassis. Storage systems spread copies over them.`,
		Example: `  holdfast host label h1 h2 --location region=eu,rack=r1
  holdfast host label -l topology.holdfast.io/rack=r1 disk=ssd
  holdfast host label h1 disk-`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.hostLabel(cmd.Context(), args, selector, location)
		},
	}
	cmd.Flags().StringVarP(&selector, "selector", "l", "", "select hosts by these labels instead of names")
	cmd.Flags().StringSliceVar(&location, "location", nil, "the location, such as region=eu,rack=r1; an empty value removes a level")
	return cmd
}

func (g *globals) hostLabel(ctx context.Context, args []string, selector string, location []string) error {
	names, changes, err := labelArgs(args, location)
	if err != nil {
		return &exitError{exitRefused, err}
	}
	switch {
	case len(changes) == 0:
		return &exitError{exitUsage, fmt.Errorf("name the labels to change: KEY=VALUE, KEY- or --location")}
	case (selector == "") == (len(names) == 0):
		return &exitError{exitUsage, fmt.Errorf("select hosts either by name or with -l SELECTOR")}
	}
	c, err := g.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	hosts, err := chooseHosts(ctx, c, names, selector)
	if err != nil {
		return err
	}
	for i := range hosts {
		if err := g.labelOne(ctx, c, &hosts[i], changes); err != nil {
			return err
		}
	}
	return nil
}

// chooseHosts returns the hosts of these names, or those with the labels.
func chooseHosts(ctx context.Context, c client.Client, names []string, selector string) ([]api.Host, error) {
	all, err := readHosts(ctx, c)
	if err != nil {
		return nil, err
	}
	if selector != "" {
		return all.selected(selector)
	}
	var chosen []api.Host
	for _, name := range names {
		h, err := all.named(name)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, *h)
	}
	return chosen, nil
}

// labelArgs sorts arguments into names of hosts and changes of labels. A change to nil takes the label away.
func labelArgs(args, location []string) (names []string, changes map[string]*string, err error) {
	changes = map[string]*string{}
	for _, arg := range args {
		key, value, set := strings.Cut(arg, "=")
		switch {
		case set:
			err = put(changes, key, &value)
		case strings.HasSuffix(arg, "-"):
			err = put(changes, strings.TrimSuffix(arg, "-"), nil)
		default:
			names = append(names, arg)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	for _, part := range location {
		label, value, err := placed(part)
		if err == nil {
			err = put(changes, label, value)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		if err := checkLabel(key, changes[key]); err != nil {
			return nil, nil, err
		}
	}
	return names, changes, nil
}

// put notes what a label shall be. One that is said twice, and not alike, is a slip, of which nobody knows what was meant.
func put(changes map[string]*string, key string, value *string) error {
	if was, said := changes[key]; said && ((was == nil) != (value == nil) || was != nil && *was != *value) {
		return fmt.Errorf("the label %s is given twice, as %s and as %s: leave one out",
			key, valueText(was), valueText(value))
	}
	changes[key] = value
	return nil
}

func valueText(value *string) string {
	if value == nil {
		return "gone"
	}
	return fmt.Sprintf("%q", *value)
}

// placed is the label of a part of a location, such as rack=r1, and its value, which is nil for one that is empty.
func placed(part string) (label string, value *string, err error) {
	level, text, set := strings.Cut(part, "=")
	label, ok := locationLabel(level)
	switch {
	case !ok:
		return "", nil, fmt.Errorf("--location %s: unknown level %q: use region, zone, datacenter, row, rack or chassis",
			part, level)
	case !set:
		return "", nil, fmt.Errorf("--location %s: give the place as %s=NAME; '%s=' removes the level", part, level, level)
	case text == "":
		return label, nil, nil
	}
	return label, &text, nil
}

// locationLabel is the label of a level, such as rack.
func locationLabel(level string) (string, bool) {
	for _, label := range api.LocationLabels() {
		if _, name, _ := strings.Cut(label, "/"); name == level {
			return label, true
		}
	}
	return "", false
}

func checkLabel(key string, value *string) error {
	if key == api.LabelHostname || key == api.LabelServer {
		return fmt.Errorf("cannot change the label %s: Holdfast sets it, and StorageNodes find their host by it", key)
	}
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
		return fmt.Errorf("%q is not a valid label name: %s", key, wrong[0])
	}
	if value == nil {
		return nil
	}
	if wrong := validation.IsValidLabelValue(*value); len(wrong) > 0 {
		return fmt.Errorf("%q is not a valid value of the label %s: %s", *value, key, wrong[0])
	}
	return nil
}

func (g *globals) labelOne(ctx context.Context, c client.Client, h *api.Host, changes map[string]*string) error {
	said := labelChanges(h.Labels, changes)
	if len(said) == 0 {
		fmt.Fprintf(g.out, "host/%s unchanged\n", h.Name)
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": changes}})
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, h.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("while labelling host %s: %w", h.Name, err)
	}
	fmt.Fprintf(g.out, "host/%s labelled: %s\n", h.Name, strings.Join(said, ", "))
	return nil
}

// labelChanges says what changes, each in a few words.
func labelChanges(have map[string]string, changes map[string]*string) []string {
	var said []string
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		was, had := have[key]
		switch want := changes[key]; {
		case want == nil && had:
			said = append(said, fmt.Sprintf("%s removed (was %s)", key, was))
		case want != nil && !had:
			said = append(said, fmt.Sprintf("%s=%s", key, *want))
		case want != nil && was != *want:
			said = append(said, fmt.Sprintf("%s=%s (was %s)", key, *want, was))
		}
	}
	return said
}
