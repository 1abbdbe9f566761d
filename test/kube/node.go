package kube

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// Node is a host with containerd, kubelet and kube-proxy. Its disks, its link and commands in it
// are those of the host.
type Node struct {
	*hosts.Host

	number  int
	cluster *Cluster
	started time.Time
}

// PowerOn switches the node on, and starts on it what a machine starts by itself. It does not wait
// until it is Ready.
func (n *Node) PowerOn(t hosts.T) {
	t.Helper()
	n.Host.PowerOn(t)
	n.start(t)
}

// start starts the node's programs.
func (n *Node) start(t hosts.T) {
	t.Helper()
	n.prepare(t)
	containerd := n.launch(t, "containerd", "--config", n.file("containerd.toml"))
	await(t, "containerd on "+n.Name, func(ctx context.Context) error {
		select {
		case <-containerd.Done():
			t.Fatalf("kube: containerd on %s has ended (%v): see %s", n.Name, containerd.Err(), containerd.Log)
		default:
		}
		_, err := n.Containers(ctx, "version")
		return err
	})
	n.started = time.Now()
	bin, user := n.cluster.bin, n.cluster.KubeconfigFor(t, "system:node:"+n.Name, "system:nodes")
	n.launch(t, filepath.Join(bin, "kubelet"), "--config="+n.file("kubelet.yaml"), "--kubeconfig="+user,
		"--hostname-override="+n.Name, "--node-ip="+n.IP)
	n.launch(t, filepath.Join(bin, "kube-proxy"), "--config="+n.file("kube-proxy.yaml"))
}

// launch starts a program on the node, which finds those of an administrator.
func (n *Node) launch(t hosts.T, program string, args ...string) *hosts.Process {
	t.Helper()
	cmd := n.Command(context.Background(), program, args...)
	cmd.Env = append(cmd.Env, "PATH="+paths)
	return n.Launch(t, filepath.Base(program), cmd)
}

const paths = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Containers runs ctr on the node, in the namespace of the kubelet.
func (n *Node) Containers(ctx context.Context, args ...string) (string, error) {
	return n.Try(ctx, "ctr", append([]string{"--namespace", "k8s.io"}, args...)...)
}

// prepare does what is lost with the power.
func (n *Node) prepare(t hosts.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), home.Limit)
	defer cancel()
	// kube-proxy puts the address of a pod in place of a service's, when the way to that is known.
	n.Run(t, ctx, "ip", "route", "add", serviceNetwork, "via", n.cluster.Lab.Gateway)
	for _, other := range n.cluster.nodes {
		if other != n {
			n.Run(t, ctx, "ip", "route", "add", other.podNetwork(), "via", other.IP)
		}
	}
	for name := range kernelSettings {
		n.Run(t, ctx, "mount", "--bind", n.file(filepath.Base(name)), "/proc/sys/"+name)
	}
}

// AwaitReady waits until the kubelet that was started last has reported that the node is Ready.
func (n *Node) AwaitReady(t hosts.T) {
	t.Helper()
	await(t, "node "+n.Name+" to be Ready", func(ctx context.Context) error {
		lease, err := n.lease(ctx)
		if err != nil {
			return err
		}
		if lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Time.Before(n.started) {
			return fmt.Errorf("its kubelet has not reported since %s", n.started.Format(time.TimeOnly))
		}
		return n.is(ctx, core.ConditionTrue)
	})
}

// AwaitNotReady waits until Kubernetes counts the node as lost.
func (n *Node) AwaitNotReady(t hosts.T) {
	t.Helper()
	await(t, "node "+n.Name+" not to be Ready", func(ctx context.Context) error {
		return n.is(ctx, core.ConditionUnknown)
	})
}

func (n *Node) lease(ctx context.Context) (*coordination.Lease, error) {
	return n.cluster.client.CoordinationV1().Leases(core.NamespaceNodeLease).Get(ctx, n.Name, meta.GetOptions{})
}

func (n *Node) is(ctx context.Context, want core.ConditionStatus) error {
	node, err := n.cluster.client.CoreV1().Nodes().Get(ctx, n.Name, meta.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == core.NodeReady {
			if c.Status == want {
				return nil
			}
			return fmt.Errorf("it is %s: %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return fmt.Errorf("its kubelet has reported nothing yet")
}
