package kube

import (
	"strings"

	"github.com/spf13/pflag"
)

// LeadingFlags is how many of the arguments, from the first on, are options that own has.
func LeadingFlags(own *pflag.FlagSet, args []string) int {
	for i := 0; ; {
		if i >= len(args) {
			return len(args)
		}
		name, _, joined := strings.Cut(args[i], "=")
		long, isLong := strings.CutPrefix(name, "--")
		known := isLong && own.Lookup(long) != nil || name == "-n"
		switch {
		case !known:
			return i
		case joined:
			i++
		default:
			i += 2
		}
	}
}
