package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/cli/doctor"
	"github.com/holdfast-storage/holdfast/internal/version"
)

// A server is slow that takes longer than doctorTimeout for an answer, and does not answer after doctorPatience.
const doctorTimeout, doctorPatience = 5 * time.Second, 20 * time.Second

func newDoctor(g *globals) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the whole system and print the next steps",
		Long: `Checks servers and their quorum, clocks, disks, certificates, versions, disconnected agents, stray
processes, clusters, actions, tokens and backups. Each line has a finding and the next step.

It changes nothing. If the API cannot be reached, it checks this machine, and which of the servers
that it knows answer. The exit code is 1 if a check failed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			return g.doctor(cmd.Context(), output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json: all findings as one JSON array")
	return cmd
}

func (g *globals) doctor(ctx context.Context, output string) error {
	source := doctor.Source{DataDir: g.dataDir, Version: version.Version, Timeout: doctorTimeout, Patience: doctorPatience}
	config, err := g.restConfig()
	if err == nil {
		config.Timeout = doctorPatience
		source.Config = config
		source.Client, err = client.New(config, client.Options{Scheme: newScheme()})
	}
	findings := doctor.Examine(doctor.Look(ctx, source, err))
	if output == "json" {
		encoder := json.NewEncoder(g.out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(findings); err != nil {
			return err
		}
	} else {
		g.showFindings(findings)
	}
	if doctor.Failed(findings) {
		return errors.New("something needs attention: see the lines that begin with FAIL")
	}
	return nil
}

func (g *globals) showFindings(findings []doctor.Finding) {
	for _, f := range findings {
		fmt.Fprintf(g.out, "%-4s  %-12s  %s\n", f.Level, f.Check, printable(f.Message))
		if f.Remedy != "" {
			fmt.Fprintf(g.out, "%20s→ %s\n", "", printable(f.Remedy))
		}
	}
}
