// Package bundle is 'holdfast support-bundle': one archive with what somebody else needs to find a fault, without
// secrets.
package bundle

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Home is what the command takes from the command line that it is part of.
type Home struct {
	// Connect and REST reach the API.
	Connect func() (client.Client, error)
	REST    func() (*rest.Config, error)
	// Run runs another command of this program against the same API, and writes all that it says.
	Run func(ctx context.Context, out io.Writer, args ...string) error
	// DataDir is the directory of Holdfast's state on this machine.
	DataDir  func() string
	Out, Err io.Writer
}

// Deadlines of one part, and of the part that reads all objects.
const (
	partTimeout    = 30 * time.Second
	objectsTimeout = 2 * time.Minute
)

// Command is 'holdfast support-bundle'.
func Command(h Home) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "support-bundle [-o FILE]",
		Short: "Write an archive for support, without secrets",
		Long: `Writes one tar.gz with all objects and events, what 'status', 'why', 'doctor' and 'quorum' say,
metrics, versions, the logs of the daemons of this host, and what each Ceph cluster says of itself
(status, health detail, osd df tree, PGs, config dump). Run it on a server as root to get all of it.

Values of Secrets, keys, tokens, private keys and passwords are replaced by [redacted]. Names of
hosts, addresses, serial numbers, pools and users stay: look at the archive before you pass it on.

What cannot be collected is listed in NOT-COLLECTED.txt, with the reason, and the rest is written.
Only you may read the file; a file that exists is not overwritten.`,
		Example: `  holdfast support-bundle
  holdfast support-bundle -o /root/case-4711.tar.gz`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			now := time.Now().UTC()
			if file == "" {
				file = "holdfast-support-" + now.Format("20060102-150405") + ".tar.gz"
			}
			return h.write(cmd.Context(), file, now)
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "the file to write (default: holdfast-support-TIME.tar.gz here)")
	return cmd
}

// write collects everything into a new file. A file that is not whole is removed.
func (h Home) write(ctx context.Context, path string, now time.Time) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("while creating the support bundle: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(path)
		}
	}()
	defer f.Close()
	c := &collection{Home: h, archive: newArchive(f, "holdfast-support", now)}
	c.all(ctx)
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted; no support bundle was written: %w", context.Cause(ctx))
	}
	if err := c.archive.close(c.missing); err != nil {
		return fmt.Errorf("while writing %s: %w", path, err)
	}
	fmt.Fprintf(h.Out, "%s written, without secrets; check it before you pass it on\n", path)
	if n := len(c.missing); n > 0 {
		fmt.Fprintf(h.Err, "warning: %d parts are missing: see NOT-COLLECTED.txt in it\n", n)
	}
	return nil
}

// collection is a bundle in the making.
type collection struct {
	Home
	archive *archive
	// missing says what could not be collected, and why.
	missing []string
	found   found
}

// all collects each part. What the API does not give, others may.
func (c *collection) all(ctx context.Context) {
	c.say("objects")
	c.objects(ctx)
	c.say("status, doctor, quorum, metrics")
	c.commands(ctx)
	c.say("logs of this host")
	c.logs(ctx)
	for _, key := range c.found.ceph {
		c.say("Ceph cluster " + key.Name)
		c.ceph(ctx, key)
	}
}

func (c *collection) say(what string) { fmt.Fprintf(c.Err, "collecting %s …\n", what) }

// lacks notes that a part is not there.
func (c *collection) lacks(part string, err error) {
	c.missing = append(c.missing, part+": "+strings.TrimSpace(c.archive.redactor.Text(err.Error())))
}

// part collects one part within a deadline, also from what does not keep it. What was there of a part that failed is
// kept.
func (c *collection) part(ctx context.Context, name string, within time.Duration,
	get func(context.Context) (string, error),
) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		text, err := get(ctx)
		answers <- answer{text, err}
	}()
	var a answer
	select {
	case a = <-answers:
	case <-ctx.Done():
		a.err = fmt.Errorf("no answer within %s: %w", within, ctx.Err())
	}
	if a.err != nil {
		c.lacks(name, a.err)
	}
	if a.text == "" && a.err != nil {
		return a.err
	}
	if err := c.archive.add(name, a.text); err != nil {
		c.lacks(name, err)
	}
	return a.err
}
