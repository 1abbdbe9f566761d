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
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
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
	// Server is the version of the server that answers; in Kubernetes that of its API server.
	Server string `json:"server,omitempty"`
	// Agents are the hosts by the version of their agents.
	Agents map[string][]string `json:"agents,omitempty"`
}

// Home is what the command takes from the command line that it is part of.
type Home struct {
	// Connect and REST reach the API.
	Connect  func() (client.Client, error)
	REST     func() (*rest.Config, error)
	Out, Err io.Writer
}

// Command is 'holdfast version'.
func Command(h Home) *cobra.Command {
	var alone bool
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program, of the server and of the agents",
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
				if v.Server, err = server(cmd.Context(), h.REST); err == nil {
					v.Agents, err = agents(cmd.Context(), h.Connect)
				}
				if err != nil {
					fmt.Fprintf(h.Err, "warning: the versions of the server and the agents are not known: %v\n", err)
				}
			}
			return v.print(h.Out, output)
		},
	}
	cmd.Flags().BoolVar(&alone, "client", false, "print only the version of this program")
	cmd.Flags().StringVarP(&output, "output", "o", "", "json")
	return cmd
}

// server asks the server that answers for its version.
func server(ctx context.Context, reach func() (*rest.Config, error)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	config, err := reach()
	if err != nil {
		return "", err
	}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	by, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return "", err
	}
	text, err := by.Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("while asking the server: %w", err)
	}
	var info apiversion.Info
	if err := json.Unmarshal(text, &info); err != nil {
		return "", fmt.Errorf("while reading the version of the server: %w", err)
	}
	if api, own := strings.CutSuffix(info.GitVersion, "+holdfast"); own {
		return fmt.Sprintf("%s (API of Kubernetes %s)", info.GitCommit, api), nil
	}
	return "Kubernetes " + info.GitVersion, nil
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
	if v.Server != "" {
		fmt.Fprintf(w, "Server version: %s\n", v.Server)
	}
	for _, of := range slices.Sorted(maps.Keys(v.Agents)) {
		if _, err := fmt.Fprintf(w, "Agent version: %s (%s)\n", of, strings.Join(v.Agents[of], ", ")); err != nil {
			return err
		}
	}
	return nil
}
