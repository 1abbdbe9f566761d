// Package kube makes a real Kubernetes for tests, in some seconds and without a registry. New makes
// nodes: hosts of package hosts, each with containerd, kubelet and kube-proxy, and one more that is
// the control plane.
//
//	func TestMain(m *testing.M) { hosts.MaybeInit(); os.Exit(m.Run()) }
//
//	func TestSomething(t *testing.T) {
//		k := kube.New(t, kube.Options{Nodes: 3, Disks: 1})
//		k.Apply(t, manifest)
//		k.Kubectl(t, "get", "pods", "-A")
//		k.Node(2).PowerOff(t)
//		k.Node(2).AwaitNotReady(t)
//	}
//
// Control makes a control plane without nodes, as processes of this machine on loopback; it needs
// no root.
//
// The programs are what hack/kube-tools builds, the images what hack/kube-image makes. There is no
// DNS in the cluster, and no registry: a pod's image is one of Images, and its imagePullPolicy must
// not be Always. What belongs here are tests alone: those that use this package lie below it, so
// that hack/run-tests runs them when both are there.
package kube

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// Options say what to make.
type Options struct {
	// Nodes is the number of nodes; zero means 1. They are called h1, h2, …
	Nodes int
	// Disks is the number of disks of each node.
	Disks int
	// DiskSize is the size of each disk in bytes; zero means 10 GiB.
	DiskSize int64
	// Dir is where everything lies; it must not exist. Empty means a new directory below
	// os.TempDir().
	Dir string
	// Keep lets the cluster live on after the test or program, until hosts.Destroy.
	Keep bool
	// Flags are further flags of programs of the control plane, such as kube-apiserver.
	Flags map[string][]string
}

// Cluster is a Kubernetes of several nodes.
type Cluster struct {
	*Plane
	// Lab has the nodes, and as its last host the control plane.
	Lab *hosts.Lab

	nodes []*Node
	// diskCount is the number of disks of each node.
	diskCount int
}

// New makes a cluster, waits until all nodes are Ready, and has it removed when the test ends. The
// test fails if anything is left.
func New(t hosts.T, o Options) *Cluster {
	t.Helper()
	o.Nodes = max(o.Nodes, 1)
	bin := programs(t)
	checkImages(t)
	watchKernel(t)
	lab := hosts.New(t, hosts.Options{
		Count: o.Nodes + 1, Disks: o.Disks, DiskSize: o.DiskSize, Dir: o.Dir, Keep: o.Keep,
		Share:   []string{bin},
		Machine: hosts.Machine{Shared: true, Cgroup: true},
	})
	control := lab.Host(o.Nodes + 1)
	plane := newPlane(t, bin, filepath.Join(lab.Dir, "kubernetes"), &labPlace{control}, o.Flags)
	c := &Cluster{Lab: lab, Plane: plane, diskCount: o.Disks}
	for number := range o.Nodes {
		c.nodes = append(c.nodes, &Node{Host: lab.Host(number + 1), number: number + 1, cluster: c})
	}
	t.Cleanup(func() { c.diagnose(t) })
	var copies errgroup.Group
	copies.Go(func() error { return c.installAll() })
	c.start(t)
	c.letProxiesIn(t)
	if err := copies.Wait(); err != nil {
		t.Fatalf("kube: %v", err)
	}
	for _, n := range c.nodes { // pods ask the API server by their own addresses
		control.Run(t, context.Background(), "ip", "route", "add", n.podNetwork(), "via", n.IP)
	}
	for _, n := range c.nodes {
		n.start(t)
	}
	for _, n := range c.nodes {
		n.AwaitReady(t)
	}
	return c
}

// installAll gives each node its images and files.
func (c *Cluster) installAll() error {
	unlock, err := lockImages()
	if err != nil {
		return err
	}
	defer unlock()
	var group errgroup.Group
	for _, n := range c.nodes {
		group.Go(n.install)
	}
	return group.Wait()
}

// Node returns a node; the first one is number 1.
func (c *Cluster) Node(number int) *Node { return c.nodes[number-1] }

// Nodes returns all nodes in order.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// Host is the host of the control plane, for tests that cut it off from some nodes by
// Lab.Partition.
func (c *Cluster) Host() *hosts.Host { return c.Lab.Host(len(c.nodes) + 1) }

// DeviceFilter is what HOLDFAST_DEVICE_FILTER has to be for the agents, which see the devices of
// the whole machine: in a pod's environment Kubernetes puts the node's name in.
func (c *Cluster) DeviceFilter() string { return "file-" + c.Lab.Dir + "/$(NODE_NAME)/disks/*" }

// diagnose shows what Kubernetes says when the test has failed. The logs are shown by the lab.
func (c *Cluster) diagnose(t hosts.T) {
	if !t.Failed() {
		return
	}
	for _, what := range []string{"nodes", "pods --all-namespaces", "events --all-namespaces --sort-by=.lastTimestamp"} {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		out, err := c.Try(ctx, "", append(strings.Fields("get -o wide"), strings.Fields(what)...)...)
		cancel()
		t.Logf("==== kubectl get %s (%v)\n%s", what, err, out)
	}
}

// programs is the directory that hack/kube-tools fills.
func programs(t hosts.T) string {
	t.Helper()
	dir := filepath.Join(cache(t), "bin")
	if _, err := os.Stat(filepath.Join(dir, ".key")); err != nil {
		t.Fatalf("kube: there is no Kubernetes in %s (%v): run hack/kube-tools", dir, err)
	}
	return dir
}

// cache is where the scripts in hack put what this package needs, in the module that the working
// directory belongs to.
func cache(t hosts.T) string {
	t.Helper()
	dir, err := moduleRoot()
	if err != nil {
		t.Fatalf("kube: %v", err)
	}
	return filepath.Join(dir, ".cache/kube")
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("while finding the module: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("the working directory belongs to no Go module: run this in Holdfast's source")
		}
	}
}

// await waits for a condition of a cluster.
func await(t hosts.T, what string, check func(context.Context) error) {
	t.Helper()
	home.Await(t, what, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		return check(ctx)
	})
}
