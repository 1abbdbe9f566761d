package ceph

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/tool"
)

// asDaemon runs one of Ceph's programs with the ceph.conf and the key of a daemon, until ctx ends at the latest, and returns what it writes to its
// standard output and what it says beside. What is secret goes by its standard input and output alone. The socket and the log are the daemon's.
func asDaemon(ctx context.Context, l *service.Local, conf, entity string, stdin []byte, program string, args ...string) (out []byte, says string, err error) {
	common := []string{"-c", filepath.Join(l.Data, conf), "-n", entity, "--admin-socket=", "--log-to-stderr=false"}
	cmd := exec.CommandContext(ctx, program, append(common, args...)...)
	cmd.Dir, cmd.Stdin, cmd.WaitDelay = l.Data, bytes.NewReader(stdin), time.Second
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "CEPH_") })
	var beside bytes.Buffer
	cmd.Stderr = &beside
	out, err = tool.Ask(cmd)
	return out, beside.String(), err
}
