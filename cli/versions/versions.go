// Package versions says which versions of Holdfast run where.
package versions

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/version"
)

// timeout bounds the question for the agents' versions.
const timeout = 3 * time.Second

// versions is what runs where.
type versions struct {
	Client   string `json:"client"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Agents are the hosts by the version of their agents.
	Agents map[string][]string `json:"agents,omitempty"`
}

// Command is 'holdfast version'. connect makes a client of the API.
func Command(connect func() (client.Client, error), out, errOut io.Writer) *cobra.Command {
	var alone bool
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program, and of the agents",
		Args:  cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("unknown output format -o %s: use json", output)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versions{
				Client: version.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
			}
			var err error
			if !alone {
				if v.Agents, err = agents(cmd.Context(), connect); err != nil {
					fmt.Fprintf(errOut, "warning: the versions of the agents are not known: %v\n", err)
				}
			}
			return v.print(out, output)
		},
	}
	cmd.Flags().BoolVar(&alone, "client", false, "print only the version of this program")
	cmd.Flags().StringVarP(&output, "output", "o", "", "json")
	return cmd
}

// agents are the hosts by the version of their agents.
func agents(ctx context.Context, connect func() (client.Client, error)) (map[string][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := connect()
	if err != nil {
		return nil, err
	}
	var hosts api.HostList
	if err := c.List(ctx, &hosts); err != nil {
		return nil, fmt.Errorf("while reading hosts: %w", err)
	}
	by := map[string][]string{}
	for _, h := range hosts.Items {
		if v := h.Status.AgentVersion; v != "" {
			by[v] = append(by[v], h.Name)
		}
	}
	return by, nil
}

func (v versions) print(w io.Writer, output string) error {
	if output == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	}
	fmt.Fprintf(w, "Client version: %s\nGo version: %s\nPlatform: %s\n", v.Client, v.Go, v.Platform)
	for _, of := range slices.Sorted(maps.Keys(v.Agents)) {
		if _, err := fmt.Fprintf(w, "Agent version: %s (%s)\n", of, strings.Join(v.Agents[of], ", ")); err != nil {
			return err
		}
	}
	return nil
}
