package convert

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/holdfast-storage/holdfast/cli/exit"
	"github.com/holdfast-storage/holdfast/cli/kube"
)

// Home is what the command takes from the command line that it is part of.
type Home struct {
	In  io.Reader
	Out io.Writer
}

// Command is 'holdfast convert'.
func Command(h Home) *cobra.Command {
	var files kube.Files
	var name string
	cmd := &cobra.Command{
		Use:   "convert -f FILE",
		Short: "Print files of QuarterMaster or heketi as documents of Holdfast's kinds",
		Long: `Reads QuarterMaster's StorageClusters and StorageNodes, or heketi's topology file, and prints a
StorageCluster, and a StorageNode for each node. It changes nothing and asks no server.

A comment above a document names what was left out of it. What cannot be converted is refused with
its file and line, and nothing is printed.`,
		Example: `  holdfast convert -f topology.json > cluster.yaml
  holdfast plan -f cluster.yaml`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return h.convert(files, name) },
	}
	files.Bind(cmd.Flags(), "of QuarterMaster or heketi")
	cmd.Flags().StringVar(&name, "name", "gluster", "the name of heketi's cluster, which its file does not have")
	return cmd
}

func (h Home) convert(files kube.Files, name string) error {
	if !files.Given() {
		return exit.With(exit.Usage, errors.New("give a file with -f FILE (or -f - for standard input)"))
	}
	if validation.IsDNS1123Subdomain(name) != nil {
		return exit.With(exit.Usage,
			fmt.Errorf("--name %q cannot be the name of an object: use small letters, digits, '-' and '.'", name))
	}
	sources, err := files.Read(h.In)
	if err != nil {
		return err
	}
	var all [][]byte
	var faults []error
	c := Conversion{Name: name}
	for _, s := range sources {
		if err := kube.RefuseRepeatedKeys(s.Data, s.Name); err != nil {
			faults = append(faults, err)
			continue
		}
		out, err := c.Documents(s.Name, s.Data)
		faults = append(faults, err)
		all = append(all, out)
	}
	if err := errors.Join(faults...); err != nil {
		return exit.With(exit.Refused, err)
	}
	for i, out := range all {
		if i > 0 {
			out = append([]byte("---\n"), out...)
		}
		if _, err := h.Out.Write(out); err != nil {
			return err
		}
	}
	return nil
}
