package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/internal/cephconf"
	"github.com/holdfast-storage/holdfast/platform/store"
)

// adoptOptions are those of 'holdfast ceph adopt'.
type adoptOptions struct {
	conf, keyring, entity string
	dryRun, handOver      bool
	undo                  bool
	hosts                 []string
	approve               string
	timeout               time.Duration
}

// askLimit bounds the questions to a cluster that is to be adopted. Each command has a deadline of its own.
const askLimit = time.Minute

func newCephAdopt(g *globals) *cobra.Command {
	var o adoptOptions
	cmd := &cobra.Command{
		Use:   "adopt NAME [--conf FILE] [--keyring FILE] [--hand-over [--hosts HOST,…]] [--undo] [--approve CODE]",
		Short: "Adopt a running Ceph cluster that was made by hand or from packages",
		Long: `Adopts a running Ceph cluster in two steps. Nothing restarts before you confirm it. Without
--approve each step shows what it would do and what prevents it, and changes nothing. The code that
it prints confirms exactly that.

  1. 'adopt' creates a StorageCluster with the fsid of the cluster, Secrets with its keys, a StorageNode
     for each host, and a Daemon for each mon, mgr and OSD. Holdfast watches their processes, and
     neither starts nor stops them. --undo removes these objects.
  2. 'adopt --hand-over' stops one daemon after another (by its systemd unit, which is disabled, or
     with SIGTERM) and starts it under Holdfast on the same data. Before the next daemon it waits until
     the cluster is healthy.

Every host of the cluster needs an agent. Refused (exit code 3) are containers, OSDs on Linux RAID,
multipath or LUKS 1, FileStore, mons at other ports than 3300 and 6789, and releases before 16. MDS
and RGW stay as they are.`,
		Example: `  holdfast ceph adopt ceph
  holdfast ceph adopt ceph --approve 3f9a12c4
  holdfast ceph adopt ceph --hand-over --hosts h1`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return g.cephAdopt(cmd.Context(), args[0], &o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.conf, "conf", "/etc/ceph/ceph.conf", "the ceph.conf of the cluster")
	f.StringVar(&o.keyring, "keyring", "/etc/ceph/ceph.client.admin.keyring", "the keyring with the key of an administrator")
	f.StringVar(&o.entity, "name", "client.admin", "the entity whose key to use")
	f.BoolVar(&o.dryRun, "dry-run", false, "show only, as without --approve")
	f.BoolVar(&o.handOver, "hand-over", false, "hand the daemons of an adopted cluster over")
	f.StringSliceVar(&o.hosts, "hosts", nil, "hand over only the daemons of these hosts")
	f.BoolVar(&o.undo, "undo", false, "forget an adopted cluster without handed-over daemons")
	f.StringVar(&o.approve, "approve", "", "the confirmation code printed by the dry run")
	f.DurationVar(&o.timeout, "timeout", time.Hour, "how long to wait for the hand-over or the undo; the work continues after that")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "approve")
	cmd.MarkFlagsMutuallyExclusive("hand-over", "undo")
	return cmd
}

func (g *globals) cephAdopt(ctx context.Context, name string, o *adoptOptions) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	key := types.NamespacedName{Namespace: g.namespace, Name: name}
	switch {
	case o.handOver:
		return g.handOver(ctx, c, key, o)
	case len(o.hosts) > 0:
		return &exitError{exitUsage, errors.New("--hosts requires --hand-over: a cluster is adopted as a whole")}
	case o.undo:
		return g.undoAdoption(ctx, c, key, o)
	}
	x, err := g.lookAtCluster(ctx, c, key, o)
	if err != nil {
		return err
	}
	words := adoptionWords(x)
	fmt.Fprintln(g.out, words)
	if n := len(x.Problems); n > 0 {
		return &exitError{exitRefused, fmt.Errorf("storagecluster/%s was not adopted, and nothing was changed: resolve "+
			"the lines that begin with '!'", name)}
	}
	if err := g.approved(words, o.approve); err != nil || o.approve == "" {
		return err
	}
	return g.adopt(ctx, c, x)
}

// approved prints the code that confirms what was shown, or checks the given one.
func (g *globals) approved(words, given string) error {
	sum := sha256.Sum256([]byte(words))
	code := hex.EncodeToString(sum[:4])
	switch given {
	case code:
		return nil
	case "":
		_, err := fmt.Fprintf(g.out,
			"\nNothing was changed. To confirm exactly this, run the command again with --approve %s\n", code)
		return err
	}
	return &exitError{exitRefused, fmt.Errorf("the code %s is out of date: the cluster changed since the dry run. "+
		"Check the list above, then run the command with --approve %s", given, code)}
}

// lookAtCluster asks everybody, and changes nothing.
func (g *globals) lookAtCluster(ctx context.Context, c client.Client, key types.NamespacedName, o *adoptOptions) (*ceph.Adoption, error) {
	conf, cfg, err := o.read()
	if err != nil {
		return nil, &exitError{exitRefused, err}
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	objects, err := store.ReadObjects(ctx, c)
	if err != nil {
		return nil, err
	}
	mons := rados.Dial(cfg)
	defer mons.Close()
	facts, err := ceph.AskAdopt(ctx, mons)
	if err != nil {
		return nil, &exitError{exitRefused, fmt.Errorf("cannot connect to the cluster of %s as %s: %w",
			o.conf, o.entity, err)}
	}
	r := ceph.AdoptRequest{Namespace: key.Namespace, Name: key.Name, Conf: conf, Facts: facts, Hosts: objects.Hosts, Clusters: objects.Clusters, Daemons: objects.Daemons}
	for _, s := range objects.Secrets {
		if s.Namespace == key.Namespace && s.Cluster == key.Name {
			r.Secrets = append(r.Secrets, s.SecretInfo)
		}
	}
	x := ceph.Adopt(r)
	if len(x.Problems) > 0 {
		return x, nil
	}
	var others []*api.Daemon
	for i := range objects.Daemons {
		if d := &objects.Daemons[i]; d.Namespace != key.Namespace || d.Spec.Cluster != key.Name {
			others = append(others, d)
		}
	}
	driver := &ceph.Driver{FirstAnswer: requestTimeout, Waits: g.waits}
	defer driver.Forget(key.Namespace, key.Name)
	plan, err := x.Foresee(ctx, driver, objects.Hosts, others, time.Now())
	if err != nil {
		return nil, err
	}
	x.Tell(plan)
	return x, nil
}

// read reads the files that say how to reach the cluster.
func (o *adoptOptions) read() (map[string]map[string]string, rados.Config, error) {
	var cfg rados.Config
	text, err := os.ReadFile(o.conf)
	if err != nil {
		return nil, cfg, fmt.Errorf("while reading the ceph.conf of the cluster: %w; give its path with --conf", err)
	}
	conf := cephconf.Parse(string(text))
	keys, err := os.ReadFile(o.keyring)
	if err != nil {
		return nil, cfg, fmt.Errorf("while reading the key of %s: %w; give the path of the keyring with --keyring",
			o.entity, err)
	}
	cfg = rados.Config{
		FSID: conf["global"]["fsid"], MonHost: monHostOf(conf), Entity: o.entity, Key: cephconf.Parse(string(keys))[o.entity]["key"],
	}
	switch {
	case cfg.Key == "":
		return nil, cfg, fmt.Errorf("%s has no key of %s", o.keyring, o.entity)
	case cfg.MonHost == "":
		return nil, cfg, fmt.Errorf("%s does not name the mons (mon_host)", o.conf)
	}
	return conf, cfg, nil
}

// monHostOf is the option mon_host, or what the sections of mons in an old ceph.conf come to.
func monHostOf(conf map[string]map[string]string) string {
	var addresses []string
	for _, section := range slices.Sorted(maps.Keys(conf)) {
		if address := conf[section]["mon_addr"]; strings.HasPrefix(section, "mon.") && address != "" {
			addresses = append(addresses, address)
		}
	}
	return cmp.Or(conf["global"]["mon_host"], strings.Join(addresses, ","))
}

// adoptionWords tells an adoption before it is begun.
func adoptionWords(x *ceph.Adoption) string {
	var b strings.Builder
	fmt.Fprintf(&b, "storagecluster/%s would adopt the Ceph cluster %s:\n\n",
		x.Cluster.Name, x.Cluster.Annotations[ceph.AnnotationAdopted])
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "HOST\tDAEMON\tDATA\tDEVICE\tRUN BY\tPROCESS\tBECOMES")
	for _, r := range x.Rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Host, r.Daemon, r.Data, r.Device, r.RunBy, r.PID, r.Becomes)
	}
	_ = w.Flush() // into memory
	for _, part := range []struct {
		mark  string
		lines []string
	}{{"!", x.Problems}, {"-", x.Notes}} {
		if len(part.lines) > 0 {
			fmt.Fprintln(&b)
		}
		for _, line := range part.lines {
			fmt.Fprintf(&b, "%s %s\n", part.mark, line)
		}
	}
	if len(x.Problems) == 0 {
		fmt.Fprint(&b, "\nHoldfast then watches the daemons. It starts, stops and changes none before 'holdfast ceph "+
			"adopt --hand-over'.")
	}
	return strings.TrimRight(b.String(), "\n")
}
