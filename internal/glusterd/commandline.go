package glusterd

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// CommandLines are the arguments with which gluster (--mode=script --xml) is called for a command, one call after the other.
// VerbDropBrick is none of gluster's, and an error. A name that gluster would take for an option, or that has a control character, is an
// error, too: names of peers and bricks come from what nodes report.
func CommandLines(verb, object string, params map[string]string) ([][]string, error) {
	for _, name := range slices.Concat([]string{object, params[ParamOld], params[ParamNew]}, strings.Fields(params[ParamBricks]), slices.Collect(maps.Keys(params))) {
		if strings.HasPrefix(name, "-") {
			return nil, fmt.Errorf("gluster would read the name %.100q as an option: refused", name)
		}
	}
	for _, text := range slices.Concat([]string{object}, slices.Collect(maps.Keys(params)), slices.Collect(maps.Values(params))) {
		if strings.ContainsFunc(text, unicode.IsControl) {
			return nil, fmt.Errorf("%.100q has a control character: refused", text)
		}
	}
	return commandLines(verb, object, params)
}

func commandLines(verb, object string, params map[string]string) ([][]string, error) {
	volume := func(words ...string) []string { return append([]string{"volume"}, words...) }
	bricks := strings.Fields(params[ParamBricks])
	one := func(args []string) ([][]string, error) { return [][]string{force(args, params)}, nil }
	switch verb {
	case VerbProbe:
		return one([]string{"peer", "probe", object})
	case VerbDetach:
		return one([]string{"peer", "detach", object})
	case VerbCreate:
		return one(slices.Concat(volume("create", object), layout(params), bricks))
	case VerbStart:
		return one(volume("start", object))
	case VerbStop:
		return one(volume("stop", object))
	case VerbDelete:
		return one(volume("delete", object))
	case VerbSet:
		return [][]string{append(volume("set", object), pairs(params)...)}, nil
	case VerbReset:
		return each(params, func(option string) []string { return volume("reset", object, option) }), nil
	case VerbAddBrick:
		return one(slices.Concat(volume("add-brick", object), layout(params), bricks))
	case VerbRebalance:
		return one(volume("rebalance", object, "start"))
	case VerbRemoveStart, VerbRemoveStop, VerbRemoveCommit:
		last := strings.TrimPrefix(verb, "volume remove-brick ")
		return [][]string{slices.Concat(volume("remove-brick", object), bricks, []string{last})}, nil
	case VerbReplace:
		return [][]string{volume("replace-brick", object, params[ParamOld], params[ParamNew], "commit", "force")}, nil
	case VerbResetBrick:
		old := params[ParamOld]
		return [][]string{volume("reset-brick", object, old, "start"), force(volume("reset-brick", object, old, old, "commit"), params)}, nil
	case VerbHeal:
		if params[ParamFull] != "" {
			return [][]string{volume("heal", object, "full")}, nil
		}
		return [][]string{volume("heal", object)}, nil
	case VerbQuota:
		return quota(object, params[ParamLimit]), nil
	case VerbOpVersion:
		return [][]string{volume("set", "all", "cluster.op-version", object)}, nil
	}
	return nil, fmt.Errorf("gluster knows no command %q", verb)
}

func force(args []string, params map[string]string) []string {
	if params[ParamForce] == "true" {
		return append(args, "force")
	}
	return args
}

// layout writes counts as the program wants them: the replica count of a volume with an arbiter is that of its full copies.
func layout(params map[string]string) []string {
	var words []string
	for _, p := range []string{ParamReplica, ParamArbiter, ParamDisperse, ParamRedundancy} {
		if params[p] != "" {
			words = append(words, p, params[p])
		}
	}
	return words
}

func pairs(params map[string]string) []string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(params)) {
		words = append(words, name, params[name])
	}
	return words
}

func each(params map[string]string, line func(string) []string) [][]string {
	var lines [][]string
	for _, name := range slices.Sorted(maps.Keys(params)) {
		lines = append(lines, line(name))
	}
	return lines
}

func quota(volume, limit string) [][]string {
	if limit == "" {
		return [][]string{{"volume", "quota", volume, "disable"}}
	}
	return [][]string{{"volume", "quota", volume, "enable"}, {"volume", "quota", volume, "limit-usage", "/", limit}}
}

// already are the words with which glusterd refuses what was done before.
var already = map[string][]string{
	VerbProbe:        {"already in peer list"},
	VerbDetach:       {"is not part of cluster"},
	VerbStart:        {"already started"},
	VerbStop:         {"is not in the started state", "does not exist"},
	VerbDelete:       {"does not exist"},
	VerbRebalance:    {"is already started"},
	VerbRemoveStart:  {"An earlier remove-brick task exists"},
	VerbRemoveStop:   {"remove-brick not started"},
	VerbRemoveCommit: {"Incorrect brick"},
	VerbQuota:        {"Quota is already enabled", "Quota is already disabled", "Quota is disabled"},
}

// Done says whether the error of a call means that what it asks for is so already. For VerbCreate, VerbAddBrick and VerbReplace
// nobody but 'volume info' can tell: see Has.
func Done(verb string, err error) bool {
	var f *Failure
	if !errors.As(err, &f) {
		return false
	}
	return slices.ContainsFunc(already[verb], func(words string) bool { return strings.Contains(f.Text, words) })
}

// Has says whether the volumes are as VerbCreate, VerbAddBrick or VerbReplace asks for already. An agent looks before it carries
// out one of them a second time: a repeat would take the bricks of its own first try for those of another volume.
func Has(volumes []Volume, verb, object string, params map[string]string) bool {
	i := slices.IndexFunc(volumes, func(v Volume) bool { return v.Name == object })
	if i < 0 {
		return false
	}
	has := func(name string) bool { return volumes[i].Brick(name) != nil }
	switch verb {
	case VerbCreate, VerbAddBrick:
		return !slices.ContainsFunc(strings.Fields(params[ParamBricks]), func(name string) bool { return !has(name) })
	case VerbReplace:
		return has(params[ParamNew]) && !has(params[ParamOld])
	}
	return false
}
