package ceph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/rgw"
)

const (
	// adminTimeout bounds one run of radosgw-admin, which takes 0.3 s, and for ever where Ceph does not answer. What it changes it tells all gateways;
	// for one that was killed half a minute ago or less it waits in vain, up to 20 s.
	adminTimeout = 40 * time.Second
	// adminWords is how much of what it says against something is told.
	adminWords = 300
)

// admin runs radosgw-admin as the gateway itself and returns what it writes. What is secret goes by its standard input and output alone: neither
// stands in the error. One that says that something does not exist wraps os.ErrNotExist.
func admin(ctx context.Context, l *service.Local, stdin []byte, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	out, says, err := asDaemon(ctx, l, rgw.FileConf, rgw.Entity(l.Daemon.Spec.ID), stdin, "radosgw-admin", args...)
	if err == nil {
		return out, nil
	}
	what := strings.Join(args[:2], " ")
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == int(syscall.ENOENT) {
		return nil, fmt.Errorf("radosgw-admin %s: %w", what, os.ErrNotExist)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("radosgw-admin %s did not end within %s: Ceph does not answer, or not for this pool", what, adminTimeout)
	}
	return nil, fmt.Errorf("radosgw-admin %s: %w: %s", what, err, lastWords(says))
}

func lastWords(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > adminWords {
		text = "…" + strings.ToValidUTF8(text[len(text)-adminWords:], "")
	}
	return text
}
