// Package optioninfo is what Ceph says of an option of its configuration, and whether a value can be
// the option's.
package optioninfo

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Info is what Ceph says of an option ('config help').
type Info struct {
	Type string
	// Enum are the values that there are; empty where there are others.
	Enum []string
	// Min and Max bound a number where they are not empty.
	Min, Max string
	// Startup: it counts from the start of a daemon. Create: it counts for what is made from now
	// on. FileOnly: it cannot be stored by the mons.
	Startup, Create, FileOnly bool
}

// Help is the answer to 'config help'. Bounds are numbers, or empty strings.
type Help struct {
	Type    string   `json:"type"`
	Enum    []string `json:"enum_values"`
	Min     any      `json:"min"`
	Max     any      `json:"max"`
	Runtime bool     `json:"can_update_at_runtime"`
	Flags   []string `json:"flags"`
}

// Info is the answer as it is kept.
func (h *Help) Info() Info {
	create := slices.Contains(h.Flags, "create") || slices.Contains(h.Flags, "cluster_create")
	return Info{
		Type: h.Type, Enum: h.Enum, Min: fmt.Sprint(cmp.Or(h.Min, any(""))), Max: fmt.Sprint(cmp.Or(h.Max, any(""))),
		Startup: !h.Runtime, Create: create, FileOnly: slices.Contains(h.Flags, "no_mon_update"),
	}
}

// Wrong says why a value cannot be that of the option; nothing where it can, as far as is known
// here: Ceph itself has the last word.
func (o Info) Wrong(value string) string {
	if len(o.Enum) > 0 && !slices.Contains(o.Enum, value) {
		return "it is one of " + strings.Join(o.Enum, ", ")
	}
	var number float64
	var err error
	switch o.Type {
	case "bool":
		words := []string{"true", "false", "yes", "no"}
		if _, isNumber := strconv.Atoi(value); isNumber != nil && !slices.Contains(words, strings.ToLower(value)) {
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

func (o Info) outside(number float64) string {
	if least, err := strconv.ParseFloat(o.Min, 64); err == nil && number < least {
		return "it is at least " + o.Min
	}
	if most, err := strconv.ParseFloat(o.Max, 64); err == nil && number > most {
		return "it is at most " + o.Max
	}
	return ""
}

// withUnit reads a number as Ceph does (strict_si_cast and strict_iecast): with K, M, G, T, P or E
// after it, or Ki, Mi …
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
