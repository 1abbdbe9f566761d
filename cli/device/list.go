package device

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/exit"
	"github.com/holdfast-storage/holdfast/cli/why"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// listing are the options of 'device list'.
type listing struct {
	available, all bool
	output         string
}

func newList(h Home) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:     "list [HOST...]",
		Aliases: []string{"ls"},
		Short:   "List the devices of all hosts, what uses them, and why one is not available",
		Long: `Lists the disks of all hosts, or of those named, as 'ceph orch device ls' does. USED BY names the daemons
on a disk, what claims it (a StorageNode or DriveGroup), or what was found on it. Partitions are listed
with --all.`,
		Example: `  holdfast device list
  holdfast device list h1 h2 --available`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if l.output != "" && l.output != "json" {
				return exit.With(exit.Usage, fmt.Errorf("unknown output format -o %s: use json", l.output))
			}
			return h.list(cmd.Context(), args, l)
		},
	}
	cmd.Flags().BoolVar(&l.available, "available", false, "list only those that are available, and that nothing claims")
	cmd.Flags().BoolVar(&l.all, "all", false, "list partitions, too")
	cmd.Flags().StringVarP(&l.output, "output", "o", "", "json")
	return cmd
}

// row is what the list says of a device.
type row struct {
	Host      string   `json:"host"`
	Path      string   `json:"path"`
	Type      string   `json:"type"`
	ID        string   `json:"id"`
	Model     string   `json:"model,omitempty"`
	Serial    string   `json:"serial,omitempty"`
	Size      string   `json:"size"`
	Available bool     `json:"available"`
	UsedBy    []string `json:"usedBy,omitempty"`
	Reasons   []string `json:"reasons,omitempty"`
}

func (h Home) list(ctx context.Context, hosts []string, l listing) error {
	all, err := h.read(ctx)
	if err != nil {
		return err
	}
	if err := all.know(hosts); err != nil {
		return err
	}
	rows := []row{}
	for i := range all.hosts {
		host := &all.hosts[i]
		if len(hosts) > 0 && !slices.Contains(hosts, host.Name) {
			continue
		}
		if !meta.IsStatusConditionTrue(host.Status.Conditions, api.HostAgentConnected) {
			fmt.Fprintf(h.Err,
				"warning: the agent of host %s is not connected: its devices are as it reported them last\n", host.Name)
		}
		for d := range host.Status.Devices {
			r := all.row(on{host.Name, &host.Status.Devices[d]})
			if (host.Status.Devices[d].Parent == "" || l.all) && (!l.available || r.Available && len(r.UsedBy) == 0) {
				rows = append(rows, r)
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(strings.Compare(a.Host, b.Host),
			strings.Compare(a.Path, b.Path))
	})
	if l.output == "json" {
		encoder := json.NewEncoder(h.Out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(rows)
	}
	return table(h.Out, rows)
}

func table(w io.Writer, rows []row) error {
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tw, "HOST\tPATH\tTYPE\tDEVICE ID\tSIZE\tAVAILABLE\tUSED BY\tREJECT REASONS")
	for _, r := range rows {
		yes := "No"
		if r.Available {
			yes = "Yes"
		}
		cells := []string{
			r.Host, r.Path, r.Type, r.ID, r.Size, yes, cmp.Or(strings.Join(r.UsedBy, ", "),
				"-"), cmp.Or(strings.Join(r.Reasons, "; "), "-"),
		}
		for i := range cells {
			cells[i] = words.Visible(strings.Join(strings.Fields(cells[i]), " "))
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	return tw.Flush()
}

// world is what says who uses which device.
type world struct {
	hosts   []api.Host
	daemons []api.Daemon
	nodes   []api.StorageNode
	groups  []api.DriveGroup
}

func (h Home) read(ctx context.Context) (*world, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	c, err := h.Connect()
	if err != nil {
		return nil, err
	}
	var hosts api.HostList
	var daemons api.DaemonList
	var nodes api.StorageNodeList
	var groups api.DriveGroupList
	for _, list := range []client.ObjectList{&hosts, &daemons, &nodes, &groups} {
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("while reading %T: %w", list, err)
		}
	}
	return &world{hosts.Items, daemons.Items, nodes.Items, groups.Items}, nil
}

// know refuses names of hosts that do not exist.
func (w *world) know(hosts []string) error {
	for _, name := range hosts {
		if !slices.ContainsFunc(w.hosts, func(h api.Host) bool { return h.Name == name }) {
			return exit.With(exit.Refused, fmt.Errorf("host %s does not exist: see 'holdfast host list'", name))
		}
	}
	return nil
}

func (w *world) row(d on) row {
	r := row{
		Host: d.host, Path: d.Path, Type: kindOf(d.Device), ID: d.ID,
		Model: d.Model, Serial: d.Serial, Size: d.Size.String(),
		Available: d.Taken() == "", UsedBy: w.usedBy(d),
	}
	if why := d.Taken(); why != "" {
		r.Reasons = []string{why}
		if len(d.Reasons) > 0 {
			r.Reasons = d.Reasons
		}
	}
	return r
}

// kindOf is the type of a device as Ceph has it: hdd or ssd; where it is neither, what sort of device it is.
func kindOf(d *api.Device) string {
	switch {
	case d.Kind != api.DeviceDisk && d.Kind != "":
		return strings.ToLower(string(d.Kind))
	case d.Media == api.MediaRotational:
		return "hdd"
	case d.Media == api.MediaSolidState:
		return "ssd"
	}
	return "disk"
}

// usedBy names what uses a device: daemons, else what claims it, else what was found there.
func (w *world) usedBy(d on) (by []string) {
	for i := range w.daemons {
		x := &w.daemons[i]
		uses := func(part api.DaemonDevice) bool {
			return part.ID == d.ID || part.Of == d.ID || w.parent(d.host, part.ID) == d.ID
		}
		if x.Spec.Host == d.host && slices.ContainsFunc(x.Spec.Devices, uses) {
			by = append(by, why.ShortName(x))
		}
	}
	by = append(by, w.claims(d)...)
	if len(by) > 0 {
		return by
	}
	if of := d.Ceph; of != nil {
		if of.OSDID == nil {
			return []string{"an OSD of another cluster"}
		}
		return []string{fmt.Sprintf("osd.%d of cluster %s", *of.OSDID, cmp.Or(of.FSID, "unknown"))}
	}
	for _, at := range d.MountPoints {
		by = append(by, "mounted at "+at)
	}
	if len(by) == 0 && d.Filesystem != nil {
		by = append(by, d.Filesystem.Type)
	}
	return by
}

// claims are the StorageNodes and DriveGroups that have a device.
func (w *world) claims(d on) (by []string) {
	for i := range w.nodes {
		n := &w.nodes[i]
		claimed := func(c api.ClaimedDevice) bool { return c.ID == d.ID && slices.Contains(n.Spec.Devices, c.Name) }
		if n.Status.Host == d.host && slices.ContainsFunc(n.Status.Devices, claimed) {
			by = append(by, "node/"+n.Name)
		}
	}
	for i := range w.groups {
		of := func(s *api.DeviceSlot) bool { return s != nil && s.ID == d.ID }
		taken := func(x api.GroupDevice) bool {
			return x.Host == d.host && (x.ID == d.ID || of(x.Data) || of(x.DB) || of(x.WAL))
		}
		if slices.ContainsFunc(w.groups[i].Status.Devices, taken) {
			by = append(by, "drivegroup/"+w.groups[i].Name)
		}
	}
	return by
}

// parent is the device that a partition of a host lies on.
func (w *world) parent(host, id string) string {
	for i := range w.hosts {
		if w.hosts[i].Name != host {
			continue
		}
		for _, d := range w.hosts[i].Status.Devices {
			if d.ID == id {
				return d.Parent
			}
		}
	}
	return ""
}
