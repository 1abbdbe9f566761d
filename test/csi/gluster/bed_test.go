package gluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/tier"
)

// callTimeout bounds each call, as the sidecars do.
const callTimeout = time.Minute

const mib = 1 << 20

// bed is Holdfast with a GlusterFS pool of three nodes, and the driver on two of them.
type bed struct {
	*home.Home

	t          *testing.T
	controller csi.ControllerClient
	nodes      map[string]csi.NodeClient
	processes  map[string]*hosts.Process
	// alive, when not nil, ends calls as well.
	alive context.Context
}

const cluster = `apiVersion: holdfast.io/v1alpha1
kind: StorageCluster
metadata: {name: gluster}
spec: {type: glusterfs, deletionPolicy: Wipe, interval: 1s, glusterfs: {options: {network.ping-timeout: "10"}}}
`

const storageNode = `---
apiVersion: holdfast.io/v1alpha1
kind: StorageNode
metadata: {name: %[1]s}
spec:
  type: glusterfs
  cluster: gluster
  nodeSelector: {kubernetes.io/hostname: %[1]s}
  storageNetwork: {ips: [%[2]s]}
  devices: [%[3]q]
`

func newBed(t *testing.T) *bed {
	t.Helper()
	tier.Full(t)
	binary := program(t)
	lab := hosts.New(t, hosts.Options{Count: 3, Disks: 1, DiskSize: 4 << 30})
	b := &bed{
		Home: home.Start(t, lab, binary), t: t,
		nodes: map[string]csi.NodeClient{}, processes: map[string]*hosts.Process{},
	}
	spec := cluster
	for _, h := range lab.Hosts() {
		spec += fmt.Sprintf(storageNode, h.Name, h.IP, h.Disk(0).ID())
	}
	b.Apply(t, spec)
	home.Await(t, "the cluster to be ONLINE", func() error {
		out, err := b.Holdfast("get", "storagestatuses")
		if err == nil && !strings.Contains(out, "ONLINE") {
			err = errors.New(out)
		}
		return err
	})
	b.Lab.Host(1).Run(t, t.Context(), binary, "kubeconfig", "create", "csi", "--role", "admin", "-o",
		b.path("kubeconfig"))
	b.run(1, "controller", "csi", "controller", "--endpoint", b.path("controller"), "--nodes", "h1,h2,h3")
	b.controller = csi.NewControllerClient(b.dial("controller"))
	b.node(1)
	b.node(2)
	t.Cleanup(b.checkNothingLeft)
	return b
}

// program is the one that 'make build' has made.
func program(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../../bin/holdfast")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("there is no program: run 'make build' first: %v", err)
	}
	return path
}

// path is that of a file which all hosts and the test see.
func (b *bed) path(name string) string { return filepath.Join(b.Lab.Dir, name) }

// run runs a part of the driver on a host.
func (b *bed) run(number int, name string, args ...string) {
	b.t.Helper()
	h := b.Lab.Host(number)
	cmd := h.Command(context.Background(), b.Binary, args...)
	cmd.Env = append(cmd.Env, "KUBECONFIG="+b.path("kubeconfig"))
	b.processes[name] = h.Launch(b.t, "csi-"+name, cmd)
}

// node starts the node part on a host, or starts it again.
func (b *bed) node(number int) {
	b.t.Helper()
	name := b.Lab.Host(number).Name
	b.run(number, name, "csi", "node", "--endpoint", b.path(name+".sock"), "--node", name, "--registration-dir", "")
	b.nodes[name] = csi.NewNodeClient(b.dial(name + ".sock"))
}

func (b *bed) dial(socket string) *grpc.ClientConn {
	b.t.Helper()
	conn, err := grpc.NewClient("unix://"+b.path(socket), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	b.must(err)
	b.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// checkNothingLeft fails if there is anything of a volume on the hosts, or a Volume.
func (b *bed) checkNothingLeft() {
	for _, h := range b.Lab.Hosts() {
		b.nothingOn(h)
	}
	if out, err := b.Holdfast("get", "volumes", "-o", "name"); err != nil || out != "" {
		b.t.Errorf("left: %s %v", out, err)
	}
}

// nothingOn waits until nothing of a volume is on a host: glusterd unmounts by itself what it
// mounts to count what a volume with a limit holds.
func (b *bed) nothingOn(h *hosts.Host) {
	b.t.Helper()
	home.Await(b.t, "nothing of a volume to be left on "+h.Name, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		out, err := h.Try(ctx, "sh", "-c", `find /var/lib/holdfast/csi -mindepth 1 -not -name processes 2>/dev/null
			pgrep -af '[g]lusterfs --no-daemon'; grep fuse.glusterfs /proc/self/mounts; true`)
		if err == nil && out != "" {
			err = errors.New("left: " + out)
		}
		return err
	})
}

// declared is the Volume of a name.
func (b *bed) declared(name string) (*api.Volume, error) {
	text, err := b.Get(1, home.Resource{Kind: "volumes", Name: name})
	if err != nil {
		return nil, err
	}
	v := &api.Volume{}
	return v, json.Unmarshal(text, v)
}

// must fails the test at the first error.
func (b *bed) must(errs ...error) {
	b.t.Helper()
	for _, err := range errs {
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bed) wantCode(what string, err error, want codes.Code, says ...string) {
	b.t.Helper()
	if got := status.Code(err); got != want {
		b.t.Errorf("%s: got %v (%v), want %v", what, got, err, want)
	}
	for _, part := range says {
		if err != nil && !strings.Contains(err.Error(), part) {
			b.t.Errorf("%s: %q does not say %q", what, err, part)
		}
	}
}

// write writes JSON, which is YAML too.
func (b *bed) write(name string, v any) {
	b.t.Helper()
	text, err := json.Marshal(v)
	b.must(err, os.WriteFile(b.path(name), text, 0o600))
}
