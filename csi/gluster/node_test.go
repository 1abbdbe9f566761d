package gluster

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/holdfast-storage/holdfast/csi/backend"
)

func TestCommand(t *testing.T) {
	v := backend.Volume{
		Staging: "/s", Options: []string{"nodev", "ro"},
		Context: map[string]string{contextServers: "10.0.0.1,10.0.0.2", contextVolume: "a"},
	}
	got := strings.Join(commandOf(v), " ")
	want := "glusterfs --no-daemon --log-file=- --log-level=WARNING --process-name=fuse --volfile-server=10.0.0.1 " +
		"--volfile-server=10.0.0.2 --read-only --fuse-mountopts=nodev --volfile-id=/a /s"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	v.Options = nil
	if got := strings.Join(commandOf(v), " "); strings.Contains(got, "opts") || strings.Contains(got, "read-only") {
		t.Errorf("got %s", got)
	}
}

func TestStage_refuses(t *testing.T) {
	n := &Node{}
	wantCode(t, "a filesystem", n.Stage(t.Context(), backend.Volume{FSType: "xfs"}), codes.InvalidArgument, "xfs")
	wantCode(t, "not attached", n.Stage(t.Context(), backend.Volume{}), codes.InvalidArgument, contextServers)
}
