package kube

import (
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/get"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/holdfast-storage/holdfast/internal/words"
)

// Get is kubectl's get, without its command.
type Get struct{ options *get.GetOptions }

// NewGet returns a Get that writes to these.
func NewGet(in io.Reader, out, errOut io.Writer) *Get {
	g := &Get{}
	streams := genericiooptions.IOStreams{In: in, Out: output{g, out}, ErrOut: errOut}
	g.options = get.NewGetOptions("holdfast", streams)
	return g
}

// output writes hidden characters in JSON and YAML as their own escapes: values stay as they are.
type output struct {
	get *Get
	to  io.Writer
}

// Write implements io.Writer. The printers of kubectl write a whole object at a time.
func (o output) Write(p []byte) (int, error) {
	text := string(p)
	if format := o.get.options.PrintFlags.OutputFormat; format != nil && *format == "json" {
		text = words.JSON(text)
	} else if format != nil && *format == "yaml" {
		text = words.YAML(text)
	}
	if _, err := io.WriteString(o.to, text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Bind adds its flags to a command.
func (g *Get) Bind(cmd *cobra.Command) {
	o, flags := g.options, cmd.Flags()
	o.PrintFlags.AddFlags(cmd)
	flags.BoolVarP(&o.Watch, "watch", "w", false, "show the objects, and then each change of them")
	flags.BoolVar(&o.WatchOnly, "watch-only", false, "show each change of the objects")
	flags.BoolVar(&o.IgnoreNotFound, "ignore-not-found", false, "end with 0 where a named object does not exist")
	flags.StringVar(&o.FieldSelector, "field-selector", "", "show only objects with these fields, such as spec.host=h1")
	flags.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "show the objects of all namespaces")
	cmdutil.AddFilenameOptionFlags(cmd, &o.FilenameOptions, "with the objects to show")
	cmdutil.AddLabelSelectorFlagVar(cmd, &o.LabelSelector)
}

// FromFiles says whether files name what it shows.
func (g *Get) FromFiles() bool {
	return !cmdutil.IsFilenameSliceEmpty(g.options.Filenames, g.options.Kustomize)
}

// Watches says whether it does not end by itself.
func (g *Get) Watches() bool { return g.options.Watch || g.options.WatchOnly }

// Run shows what the arguments name.
func (g *Get) Run(cmd *cobra.Command, from *Getter, args []string) error {
	f := cmdutil.NewFactory(from)
	if err := g.options.Complete(f, cmd, args); err != nil {
		return err
	}
	if err := g.options.Validate(); err != nil {
		return err
	}
	return g.options.Run(f, args)
}
