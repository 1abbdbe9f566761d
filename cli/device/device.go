// Package device is 'holdfast device': the devices of all hosts, what uses them, their lights, and how they become
// free.
package device

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action/hostaction"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/exit"
	"github.com/holdfast-storage/holdfast/internal/devicename"
)

// readTimeout bounds what is read from the API.
const readTimeout = 30 * time.Second

// Home is what the commands take from the command line that they are part of.
type Home struct {
	Connect func() (client.Client, error)
	// Act creates an action, and waits for its end or for the leader's first word.
	Act      func(ctx context.Context, a *api.Action, wait bool, timeout time.Duration) error
	Out, Err io.Writer
}

// Command is 'holdfast device'.
func Command(h Home) *cobra.Command {
	cmd := &cobra.Command{Use: "device", Short: "List devices, switch their lights, wipe and free them"}
	cmd.AddCommand(newList(h), newLight(h), newWipe(h), newFree(h))
	return cmd
}

// on is a device of a host.
type on struct {
	host string
	*api.Device
}

// find is the one device that a name means, of one host or of all.
func (h Home) find(ctx context.Context, name, host string) (on, error) {
	all, err := h.read(ctx)
	if err != nil {
		return on{}, err
	}
	var found []on
	for i := range all.hosts {
		if host == "" || all.hosts[i].Name == host {
			for _, d := range devicename.Match(all.hosts[i].Status.Devices, name) {
				found = append(found, on{all.hosts[i].Name, d})
			}
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	if len(found) == 0 {
		return on{}, exit.With(exit.Refused,
			fmt.Errorf("no device of the hosts matches %s: see 'holdfast device list'", name))
	}
	var texts []string
	for _, d := range found {
		texts = append(texts, d.ID+" of host "+d.host)
	}
	return on{}, exit.With(exit.Refused,
		fmt.Errorf("%s matches %d devices (%s): name one by its id, or its host with --host",
			name, len(found), strings.Join(texts, ", ")))
}

// action is one on a device, of a kind of package hostaction.
func (d on) action(kind string, parameters map[string]api.ActionParameter) *api.Action {
	verb := strings.TrimPrefix(kind, "device.")
	return &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, GenerateName: verb + "-" + d.host + "-"},
		Spec:       api.ActionSpec{Kind: kind, Target: "device/" + d.ID, Host: d.host, Parameters: parameters},
	}
}

// waiting are the flags of what creates an action.
type waiting struct {
	host    string
	wait    bool
	timeout time.Duration
}

func (w *waiting) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.host, "host", "", "the host of the device, where several hosts have one of that name")
	cmd.Flags().BoolVar(&w.wait, "wait", false, "wait until it is done")
	cmd.Flags().DurationVar(&w.timeout, "timeout", 15*time.Minute,
		"how long --wait waits; the action continues after that")
}

func newLight(h Home) *cobra.Command {
	var w waiting
	var fault bool
	cmd := &cobra.Command{
		Use:   "light on|off DEVICE",
		Short: "Switch the light of a disk's slot",
		Long: `Switches the light that identifies the slot of a disk, or with --fault the one for a fault, if the kernel
knows the enclosure (/sys/class/enclosure). DEVICE is an id, WWN, serial number or path.`,
		Example:   `  holdfast device light on wwn-5000c500a1b2c3d4`,
		Args:      cobra.ExactArgs(2),
		ValidArgs: []string{"on", "off"},
		RunE: func(cmd *cobra.Command, args []string) error {
			state := api.ActionParameter(args[0])
			if state != hostaction.On && state != hostaction.Off {
				return exit.With(exit.Usage, fmt.Errorf("%s is neither on nor off", args[0]))
			}
			d, err := h.find(cmd.Context(), args[1], w.host)
			if err != nil {
				return err
			}
			parameters := map[string]api.ActionParameter{
				hostaction.ParamLight: hostaction.Ident,
				hostaction.ParamState: state,
			}
			if fault {
				parameters[hostaction.ParamLight] = hostaction.Fault
			}
			return h.Act(cmd.Context(), d.action(hostaction.Light, parameters), w.wait, w.timeout)
		},
	}
	w.bind(cmd)
	cmd.Flags().BoolVar(&fault, "fault", false, "the light for a fault, instead of the one that identifies the slot")
	return cmd
}

func newWipe(h Home) *cobra.Command {
	var w waiting
	var confirm string
	cmd := &cobra.Command{
		Use:   "wipe DEVICE --confirm ID",
		Short: "Wipe a disk that no cluster uses",
		Long: `Makes a disk of any host look empty; its data is lost. Without --confirm it shows the disk and what is on
it, and changes nothing. A disk that a StorageNode, a DriveGroup, a daemon or an OSD of a cluster needs,
or that is mounted or otherwise in use, is refused. Where a cluster on the host requires approval, the
action waits for it. DEVICE is an id, WWN, serial number or path.

Most of the data is not overwritten: if others must not read it, use 'blkdiscard -z' on its host.`,
		Example: `  holdfast device wipe /dev/sdb --host h4
  holdfast device wipe wwn-5000c500a1b2c3d4 --confirm wwn-5000c500a1b2c3d4 --wait`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return h.wipe(cmd.Context(), args[0], confirm, w)
		},
	}
	w.bind(cmd)
	cmd.Flags().StringVar(&confirm, "confirm", "", "the id of the device, from 'holdfast device list'")
	return cmd
}

func (h Home) wipe(ctx context.Context, name, confirm string, w waiting) error {
	d, err := h.find(ctx, name, w.host)
	if err != nil {
		return err
	}
	if err := hostaction.Wipeable(d.Device); err != nil {
		return exit.With(exit.Refused, err)
	}
	if confirm == "" {
		all, err := h.read(ctx)
		if err != nil {
			return err
		}
		if err := table(h.Out, []row{all.row(d)}); err != nil {
			return err
		}
		return exit.With(exit.Refused,
			fmt.Errorf("this destroys the data on the disk, so nothing was changed: if it is the right one, "+
				"run the command again with --confirm %s", d.ID))
	}
	if confirm != d.ID {
		return exit.With(exit.Refused, fmt.Errorf("%s of host %s is %s, not %s: nothing was changed", d.Path, d.host,
			d.ID, confirm))
	}
	a := d.action(hostaction.Wipe, map[string]api.ActionParameter{hostaction.ParamConfirm: api.ActionParameter(d.ID)})
	return h.Act(ctx, a, w.wait, w.timeout)
}
