package rbd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/disk"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// The files of a volume's process, in the volume's directory.
const (
	fileName   = "disk" // the image, as a file
	confName   = "ceph.conf"
	keyName    = "key"
	socketName = "qmp"
)

// daemon is the program that shows an image as a file.
const daemon = "qemu-storage-daemon"

func file(v backend.Volume) string { return filepath.Join(v.Dir, fileName) }

// start starts the volume's process. Of an earlier one nothing may be left.
func (n *Node) start(ctx context.Context, v backend.Volume) error {
	if err := disk.Remove(file(v)); err != nil {
		return err
	}
	conf := fmt.Sprintf(
		"[global]\nfsid = %s\nmon_host = %s\nkeyring = /dev/null\nlog_file = /dev/null\nadmin_socket =\n",
		v.Handle.Cluster, v.Context[contextMons])
	for name, text := range map[string]string{confName: conf, keyName: v.Secrets[backend.SecretKey], fileName: ""} {
		if err := atomicfile.Write(filepath.Join(v.Dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	command, err := commandOf(v)
	if err != nil {
		return err
	}
	return n.Carriers.Start(ctx, v, command...)
}

// commandOf is the command of a volume's process. The key is in a file.
func commandOf(v backend.Volume) ([]string, error) {
	device, err := json.Marshal(map[string]any{
		"driver": "rbd", "node-name": "volume", "pool": v.Context[contextPool], "image": v.Handle.Name,
		"conf": filepath.Join(v.Dir, confName),
		"user": v.Secrets[backend.SecretUser], "key-secret": "key", "discard": "unmap",
		"cache": map[string]bool{"direct": true},
	})
	if err != nil {
		return nil, err
	}
	export, err := json.Marshal(map[string]any{
		"type": "fuse", "id": "volume", "node-name": "volume", "mountpoint": file(v), "writable": true,
		"allow-other": "off",
	})
	if err != nil {
		return nil, err
	}
	return []string{
		daemon,
		"--object", "secret,id=key,format=base64,file=" + filepath.Join(v.Dir, keyName),
		"--blockdev", string(device),
		"--chardev", "socket,id=qmp,server=on,wait=off,path=" + filepath.Join(v.Dir, socketName),
		"--monitor", "chardev=qmp",
		"--export", string(export),
	}, nil
}

// awaitFile waits until the image's file has the image's size. The kernel keeps the size of a file
// for a second.
func (n *Node) awaitFile(ctx context.Context, v backend.Volume, size int64) error {
	late := fmt.Sprintf("%s does not show image %s; see whether the Ceph cluster is online", daemon, v.Handle.Name)
	return n.Carriers.Await(ctx, v, late, func() (bool, error) {
		info, err := os.Stat(file(v)) // it is not there at first, and may be broken for a moment
		return err == nil && info.Size() == size, nil
	})
}

// errNoGreeting says that what listens on the socket is not the daemon.
var errNoGreeting = errors.New("it sent no greeting")
