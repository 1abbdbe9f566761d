package bundle

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path"
	"strings"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/agent/runtime/logfile"
	"github.com/holdfast-storage/holdfast/cli/logs"
)

const (
	// explained is of how many objects that are not ready 'why' is asked.
	explained = 50
	// logEnd is how much of the end of each log is taken, in bytes.
	logEnd = 1 << 20
)

// commands adds what other commands of this program say.
func (c *collection) commands(ctx context.Context) {
	c.command(ctx, "versions.txt", "version")
	c.command(ctx, "doctor.txt", "doctor")
	c.command(ctx, "quorum.txt", "quorum")
	_ = c.part(ctx, "metrics.txt", partTimeout, c.metrics)
	for _, key := range c.found.clusters {
		dir := path.Join("clusters", key.Namespace+"."+key.Name)
		c.command(ctx, path.Join(dir, "status.txt"), "status", key.Name, "-n", key.Namespace)
		c.command(ctx, path.Join(dir, "why.txt"), "why", "cluster/"+key.Name, "-n", key.Namespace)
	}
	for i, ill := range c.found.ill {
		if i == explained {
			c.lacks("why", fmt.Errorf("%d objects are not ready: the first %d are explained", len(c.found.ill),
				explained))
			return
		}
		file := path.Join("why", ill.namespace+"."+strings.ReplaceAll(ill.name, "/", ".")+".txt")
		c.command(ctx, file, "why", ill.name, "-n", ill.namespace)
	}
}

// command adds what a command says. One that says something and fails, as doctor does, is no missing part.
func (c *collection) command(ctx context.Context, file string, args ...string) {
	_ = c.part(ctx, file, partTimeout, func(ctx context.Context) (string, error) {
		var out bytes.Buffer
		err := c.Run(ctx, &out, args...)
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if out.Len() > 0 {
			err = nil
		}
		return out.String(), err
	})
}

// metrics reads the metrics of the server that answers.
func (c *collection) metrics(ctx context.Context) (string, error) {
	config, err := c.REST()
	if err != nil {
		return "", err
	}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return "", err
	}
	text, err := client.Get().AbsPath("/metrics").DoRaw(ctx)
	return string(text), err
}

// logs adds the ends of the logs of this host's daemons, and of Holdfast itself.
func (c *collection) logs(ctx context.Context) {
	files, err := logs.All(c.DataDir())
	if err != nil {
		c.lacks("logs", err)
	}
	for _, f := range files {
		name := path.Join("logs", f.Process, path.Base(f.Path))
		_ = c.part(ctx, name, partTimeout, func(context.Context) (string,
			error,
		) {
			return logfile.Tail(f.Path, logEnd), nil
		})
	}
	_ = c.part(ctx, "logs/holdfast.log", partTimeout, journal)
}

// journal is what Holdfast itself logged, where systemd runs it.
func journal(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "journalctl", "--no-pager", "-n", "10000", "-u", "holdfast*").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("while reading the journal of systemd: %w: %s", err, bytes.TrimSpace(out))
	}
	return string(out), nil
}
