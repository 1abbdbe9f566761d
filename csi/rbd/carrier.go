package rbd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/agent/runtime"
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
	logName    = "log"
)

// carrierStop is how long a process may take to write what it holds.
const carrierStop = 20 * time.Second

// daemon is the program that shows an image as a file.
const daemon = "qemu-storage-daemon"

func file(v backend.Volume) string { return filepath.Join(v.Dir, fileName) }

// processOf is the name of a volume's process.
func processOf(v backend.Volume) string { return "volume-" + filepath.Base(v.Dir) }

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
	p := runtime.Process{
		Name: processOf(v), Command: command, Dir: v.Dir, LogFile: filepath.Join(v.Dir, logName),
		StopTimeout: carrierStop, Once: true,
		Needs: runtime.Needs{
			Privileged: true, Directories: []runtime.Directory{{Path: v.Dir, Mounts: runtime.MountsBoth}},
		},
	}
	if n.Owner != nil {
		p.Of = n.Owner(v, p.Name)
	}
	return n.Carriers.Start(ctx, p)
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
	for {
		info, err := os.Stat(file(v))
		if err == nil && info.Size() == size {
			return nil
		}
		if s, known := n.Carriers.State(processOf(v)); !known || !s.Running {
			return status.Errorf(codes.Internal, "%s ended: %s", daemon, lastWords(s))
		}
		select {
		case <-ctx.Done():
			return status.Errorf(codes.DeadlineExceeded,
				"%s does not show image %s; see whether the Ceph cluster is online", daemon, v.Handle.Name)
		case <-time.After(lookEvery):
		}
	}
}

func lastWords(s runtime.State) string {
	if s.LastExit == nil {
		return "nothing is known of its end"
	}
	lines := strings.Split(strings.TrimSpace(s.LastExit.Log), "\n")
	return s.LastExit.Reason + ": " + lines[len(lines)-1]
}

// errNoGreeting says that what listens on the socket is not the daemon.
var errNoGreeting = errors.New("it sent no greeting")
