package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/control/rotation"
)

// noAuthority says who has one in Kubernetes.
const noAuthority = "Kubernetes issues and renews the certificates of its API"

func newCA(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "ca", Short: "Show or replace the certificate authority"}
	show := &cobra.Command{
		Use: "show", Short: "Show the trusted authorities and the progress of a rotation", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.caShow(cmd.Context()) },
	}
	var wait bool
	var timeout time.Duration
	rotate := &cobra.Command{
		Use:   "rotate",
		Short: "Replace the certificate authority without downtime",
		Long: `Creates a new authority, has every server and host trust it, renews all certificates, and drops the
old authority. It waits for every host: reconnect hosts that are disconnected, or remove them.
'holdfast action cancel' returns to the old authority until it is dropped. The last step waits until
each server has been restarted, one after another; storage daemons keep running.

Afterwards, copy admin.kubeconfig again to where you use it, create outstanding join tokens again,
and take a backup.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.caRotate(cmd.Context(), wait, timeout) },
	}
	rotate.Flags().BoolVar(&wait, "wait", false, "wait until it is done")
	rotate.Flags().DurationVar(&timeout, "timeout", time.Hour, "how long --wait waits")
	cmd.AddCommand(show, rotate)
	return cmd
}

func (g *globals) caRotate(ctx context.Context, wait bool, timeout time.Duration) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	err = withDeadline(ctx, func(ctx context.Context) error {
		return errors.Join(notInKubernetes(ctx, c, noAuthority), noRotation(ctx, c))
	})
	if err != nil {
		return err
	}
	a := &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, GenerateName: "ca-rotate-"},
		Spec:       api.ActionSpec{Kind: rotation.KindName, Target: rotation.Target},
	}
	if err := withDeadline(ctx, func(ctx context.Context) error { return c.Create(ctx, a) }); err != nil {
		return fmt.Errorf("while creating the action: %w", err)
	}
	fmt.Fprintf(g.out, "action/%s created\n", a.Name)
	if wait {
		return g.waitAction(ctx, c, a, timeout)
	}
	return g.firstWord(ctx, c, a)
}

// noRotation refuses a second rotation.
func noRotation(ctx context.Context, c client.Client) error {
	var actions api.ActionList
	if err := c.List(ctx, &actions, client.InNamespace(api.SystemNamespace)); err != nil {
		return fmt.Errorf("while reading actions: %w", err)
	}
	for i := range actions.Items {
		if a := &actions.Items[i]; a.Spec.Kind == rotation.KindName && !a.Status.State.Final() {
			return &exitError{exitRefused, fmt.Errorf("the action %s already rotates the authority%s: cancel it with "+
				"'holdfast action cancel %s'", a.Name, waitText(a), a.Name)}
		}
	}
	return nil
}

func (g *globals) caShow(ctx context.Context) error {
	config, err := g.restConfig()
	if err != nil {
		return err
	}
	c, err := g.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	trusted, err := endpoints.Trusted(ctx, config)
	if err != nil {
		return ofServers(ctx, g, err, noAuthority)
	}
	var servers corev1.ConfigMap
	err = c.Get(ctx, client.ObjectKey{Namespace: api.SystemNamespace, Name: rotation.BeliefsName}, &servers)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("while reading which authorities the servers trust: %w", err)
	}
	var hosts api.HostList
	if err := c.List(ctx, &hosts); err != nil {
		return fmt.Errorf("while reading the hosts: %w", err)
	}
	w := tabwriter.NewWriter(g.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "AUTHORITY\tSIGNS\tENDS\tFINGERPRINT")
	for i, cert := range trusted {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", cert.Subject.CommonName, map[bool]string{true: "yes", false: "no"}[i == 0],
			cert.NotAfter.UTC().Format(time.DateOnly), pki.Fingerprint(cert))
	}
	fmt.Fprintln(w, "\nNAME\tTRUSTS\tCERTIFICATE FROM\tETCD TRUSTS")
	for _, name := range slices.Sorted(maps.Keys(servers.Data)) {
		showBelief(w, "server/"+name, servers.Data[name])
	}
	for i := range hosts.Items {
		if text := hosts.Items[i].Annotations[rotation.Annotation]; text != "" && len(trusted) > 1 {
			showBelief(w, "host/"+hosts.Items[i].Name, text)
		}
	}
	return w.Flush()
}

func showBelief(w *tabwriter.Writer, who, text string) {
	var b pki.Belief
	if json.Unmarshal([]byte(text), &b) != nil {
		b = pki.Belief{}
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", who, short(b.Trusted...), short(b.Signer), short(b.Etcd...))
}

// short is as much of a fingerprint as tells two of them apart.
func short(fingerprints ...string) string {
	text := ""
	for i, f := range fingerprints {
		if i > 0 {
			text += ","
		}
		text += f[:min(8, len(f))]
	}
	return text
}
