package ceph

import (
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/confoptions"
)

// config are the options that the cluster's ceph.conf sets, those that differ between hosts for each daemon, so that its daemons have them after their hand-over, too; and what Holdfast
// would else set for a cluster of its own.
func (x *adopter) config() map[string]api.CephOptions {
	config := map[string]api.CephOptions{}
	set := func(section, name, value string) {
		if config[section] == nil {
			config[section] = api.CephOptions{}
		}
		config[section][name] = api.CephOptionValue(value)
	}
	var left []string
	differ := x.apart()
	for section, of := range x.Conf {
		for name, value := range of {
			_, differs := differ[section][name]
			switch {
			case confoptions.Own(name) || slices.Contains(placeOptions, name) || differs:
			case !taken(section, name):
				left = append(left, "["+section+"] "+name)
			default:
				set(section, name, value)
			}
		}
	}
	x.ownEach(set, differ)
	x.tellPlaces()
	if len(left) > 0 {
		slices.Sort(left)
		x.note("not taken over from ceph.conf: %s", strings.Join(left, ", "))
	}
	own := (&confFacts{osds: x.count(TypeOSD)}).global()
	own[optionDefaultSize] = strconv.Itoa(maxCopies) // Ceph's default, which is not lowered where pools keep as many
	for _, name := range keptSettings {
		is := x.Facts.Settings[name]
		if _, there := config["global"][name]; !there && is != "" && is != own[name] {
			set("global", name, is)
		}
	}
	return config
}
