package cephfs

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/carrier"
	"github.com/holdfast-storage/holdfast/csi/conn"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// fsType is the filesystem that a class may name.
const fsType = "ceph"

// program mounts a filesystem of Ceph in user space.
const program = "ceph-fuse"

// The files of a volume's process, in the volume's directory.
const (
	confName    = "ceph.conf"
	keyringName = "keyring"
)

// conf is the configuration of a volume's process. After client_mount_timeout it ends when the
// cluster does not answer. The kernel checks permissions: in a pod, ceph-fuse cannot look up the groups
// of the processes of other pods.
const conf = `[global]
fsid = FSID
mon_host = MONHOST
keyring = KEYRING
log_file =
log_to_stderr = true
admin_socket =
[client]
client_mount_timeout = 30
fuse_default_permissions = true
fuse_set_user_groups = false
`

// Node has subvolumes appear on this node.
type Node struct {
	// Clients are the connections to clusters.
	Clients *conn.Clients
	carrier.FileNode
}

var _ backend.Node = (*Node)(nil)

// Name implements backend.Node.
func (*Node) Name() string { return Name }

// Stage implements backend.Node.
func (n *Node) Stage(ctx context.Context, v backend.Volume) error {
	if v.FSType != "" && v.FSType != fsType {
		return status.Errorf(codes.InvalidArgument,
			"volumes of the back end %s cannot have the filesystem %q; leave the parameter "+
				"csi.storage.k8s.io/fstype of the StorageClass out", Name, v.FSType)
	}
	if !strings.HasPrefix(v.Context[contextPath], GroupPath+"/") {
		return status.Errorf(codes.InvalidArgument, "the publish_context of volume %s has no %s", v.ID, contextPath)
	}
	s, done, err := existing(ctx, n.Clients, v.Secrets, v.Handle)
	if err != nil {
		return err
	}
	defer done()
	late := fmt.Sprintf("%s does not mount volume %s; see whether the Ceph cluster is online", program, v.Handle.Name)
	return n.Carriers.Mount(ctx, v, late, func() ([]string, error) { return commandOf(v, s.fs.Name) })
}

// commandOf is the command of a volume's process. The key is in a file.
func commandOf(v backend.Volume, fs string) ([]string, error) {
	path := func(name string) string { return filepath.Join(v.Dir, name) }
	user := "client." + v.Secrets[backend.SecretUser]
	files := map[string]string{
		keyringName: fmt.Sprintf("[%s]\n\tkey = %s\n", user, v.Secrets[backend.SecretKey]),
		confName: strings.NewReplacer("FSID", v.Handle.Cluster, "MONHOST", v.Context[contextMons],
			"KEYRING", path(keyringName)).Replace(conf),
	}
	for name, text := range files {
		if err := atomicfile.Write(path(name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	command := []string{
		program, "-f", "--conf", path(confName), "-n", user, "--client_fs", fs, "-r", v.Context[contextPath],
	}
	if len(v.Options) > 0 {
		command = append(command, "-o", strings.Join(v.Options, ","))
	}
	return append(command, v.Staging), nil
}
