package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/cli/noquorum"
	"github.com/holdfast-storage/holdfast/control/quorumview"
	"github.com/holdfast-storage/holdfast/platform/kube"
)

func newQuorum(g *globals) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "quorum",
		Short: "Show the members of etcd and the standby servers",
		Long: `Shows which servers hold a member of etcd, and so a copy of the state, which are standbys, and the
decisions about them. The number of members follows the number of servers: 1 for up to two servers,
3 for more, 5 for more than 20, 7 for more than 100.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			return g.quorum(cmd.Context(), output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json: one JSON object")
	return cmd
}

func (g *globals) quorum(ctx context.Context, output string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	config, err := g.restConfig()
	if err != nil {
		return err
	}
	status, err := seenQuorum(ctx, func() (*quorumview.Status, error) { return quorumview.Ask(ctx, config) }, time.After(lookFor), time.Second)
	if err != nil {
		return ofServers(ctx, g, err, "its etcd has its own tools, and "+
			"'kubectl -n holdfast-system get lease leader' names the operator that leads")
	}
	if output == "json" {
		return json.NewEncoder(g.out).Encode(status)
	}
	return g.printQuorum(status)
}

// lookFor is how long a new leader of etcd may take to look at the members: one whose disk hangs holds it up.
const lookFor = 15 * time.Second

// seenQuorum asks again, every so often, while who leads etcd has not looked at the members yet, until the end.
func seenQuorum(
	ctx context.Context, ask func() (*quorumview.Status, error), end <-chan time.Time, every time.Duration,
) (*quorumview.Status, error) {
	for {
		status, err := ask()
		if !errors.Is(err, quorumview.ErrUnseen) {
			return status, err
		}
		select {
		case <-time.After(every):
		case <-end:
			return nil, err
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (g *globals) printQuorum(s *quorumview.Status) error {
	w := tabwriter.NewWriter(g.out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "SERVER\tROLE\tANSWERS\tSINCE")
	for _, m := range s.Members {
		role := "learner"
		switch {
		case m.Name == s.Leader:
			role = "leader"
		case m.Voter:
			role = "member"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", m.Name, role, yesNo(m.Answers), time.Since(m.Since).Round(time.Second))
	}
	for _, name := range s.AllStandbys() {
		fmt.Fprintf(w, "%s\tstandby\tyes\t\n", name)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(g.out, "\n%d members are desired; %d more may fail. The database has %.1f MiB. ",
		s.Want, max(0, s.Spare), float64(s.DatabaseSize)/(1<<20))
	if s.LastBackup.IsZero() {
		fmt.Fprintln(g.out, "The leader has taken no backup yet.")
	} else {
		fmt.Fprintf(g.out, "The leader's last backup is %s old.\n", time.Since(s.LastBackup).Round(time.Second))
	}
	if s.Degraded != "" {
		fmt.Fprintln(g.out, "Degraded: "+s.Degraded+".")
	}
	for _, problem := range s.Problems() {
		fmt.Fprintln(g.out, printable(problem)+".")
	}
	for _, d := range s.Decisions {
		fmt.Fprintf(g.out, "%s %s: %s\n", d.Verdict, d.Object, printable(d.Message))
	}
	return nil
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "NO"
}

// ofServers explains why a command of Holdfast's own control plane failed, where the API is that of
// a Kubernetes cluster. instead says what Kubernetes has in its place. Elsewhere the error stays.
func ofServers(ctx context.Context, g *globals, err error, instead string) error {
	if err == nil || errors.As(err, new(*noquorum.Error)) {
		return err
	}
	config, problem := g.readConfig()
	if problem != nil {
		return err
	}
	config.Timeout = doctorTimeout
	c, problem := client.New(config, client.Options{Scheme: newScheme()})
	if problem != nil {
		return err
	}
	if problem := notInKubernetes(ctx, c, instead); problem != nil {
		return problem
	}
	return err
}

// notInKubernetes refuses a command of Holdfast's own control plane in Kubernetes. Where it is not
// known what the API is, it refuses nothing.
func notInKubernetes(ctx context.Context, c client.Reader, instead string) error {
	if is, err := kube.IsHome(ctx, c); err != nil || !is {
		return nil //nolint:nilerr // the command itself says what is wrong with the API
	}
	return &exitError{exitRefused, fmt.Errorf(
		"this command is for Holdfast's own servers, and this is a Kubernetes cluster: %s", instead)}
}
