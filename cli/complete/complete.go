// Package complete completes the names of objects on the command line. It says nothing where the API does not answer at
// once: a shell waits for it.
package complete

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// timeout bounds the answer to a shell.
const timeout = 2 * time.Second

// Home is what completion takes from the command line that it is part of.
type Home struct {
	Connect   func() (client.Client, error)
	Namespace func() string
}

// lister returns the names that may stand at a place, after other arguments. A description may follow after a tab.
type lister func(s *source, args []string, begun string) []string

// places are the commands with arguments that are names.
var places = map[string]lister{
	"why":                    explained,
	"get":                    objects,
	"delete":                 objects,
	"status":                 first(ofKind("StorageCluster")),
	"orchestrate":            first(ofKind("StorageCluster")),
	"logs":                   first(daemons),
	"daemon restart":         first(daemons),
	"daemon stop":            first(daemons),
	"daemon start":           first(daemons),
	"host show":              first(ofKind("Host")),
	"host drain":             first(ofKind("Host")),
	"host remove":            first(ofKind("Host")),
	"host replace":           first(ofKind("Host")),
	"host label":             ofKind("Host"),
	"host maintenance enter": first(ofKind("Host")),
	"host maintenance exit":  first(ofKind("Host")),
	"device list":            ofKind("Host"),
	"device wipe":            first(devices),
	"device light":           lights,
	"action show":            first(actions(func(*api.Action) bool { return true })),
	"action wait":            first(actions(isOpen)),
	"action cancel":          first(actions(isOpen)),
	"action approve":         first(actions(isPending)),
	"volume resolve":         first(ofKind("Volume")),
	"ceph recover-mons":      first(ofKind("StorageCluster")),
	"ceph client-files":      first(ofKind("Client")),
	"recreate":               objects,
}

// flags are those with names, by the command that has them.
var flags = map[string]map[string]lister{
	"apply":        {"plan": plans(api.PlanApply)},
	"delete":       {"plan": plans(api.PlanDelete)},
	"plan":         {"delete": slashed},
	"device light": {"host": ofKind("Host")},
	"device wipe":  {"host": ofKind("Host")},
	"ceph shell":   {"cluster": ofKind("StorageCluster")},
}

// Add completes names of all commands below the root. A place that is not there is a mistake in the lists above.
func Add(root *cobra.Command, h Home) (missing []string) {
	for path, l := range places {
		cmd := find(root, path)
		if cmd == nil {
			missing = append(missing, path)
			continue
		}
		cmd.ValidArgsFunction = h.complete(l)
	}
	for path, of := range flags {
		for name, l := range of {
			cmd := find(root, path)
			if cmd == nil || cmd.Flags().Lookup(name) == nil {
				missing = append(missing, path+" --"+name)
				continue
			}
			_ = cmd.RegisterFlagCompletionFunc(name, h.complete(l)) // it fails only where it was done before
		}
	}
	return missing
}

func find(root *cobra.Command, path string) *cobra.Command {
	cmd, rest, err := root.Find(strings.Fields(path))
	if err != nil || len(rest) > 0 {
		return nil
	}
	return cmd
}

// complete asks within the time that a shell waits.
func (h Home) complete(l lister) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
		defer cancel()
		answer := make(chan []string, 1)
		go func() {
			c, err := h.Connect()
			if err != nil {
				answer <- nil
				return
			}
			answer <- l(&source{ctx, c, h.Namespace()}, args, begun)
		}()
		directive := cobra.ShellCompDirectiveNoFileComp
		select {
		case all := <-answer:
			matching := starting(all, begun)
			if len(matching) > 0 && strings.HasSuffix(matching[0], "/") {
				directive |= cobra.ShellCompDirectiveNoSpace
			}
			return matching, directive
		case <-ctx.Done():
			return nil, directive
		}
	}
}

// starting are those that begin as what was typed does.
func starting(all []string, begun string) (matching []string) {
	for _, name := range all {
		if strings.HasPrefix(name, begun) {
			matching = append(matching, name)
		}
	}
	return matching
}
