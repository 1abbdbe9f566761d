package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/test/hosts"
)

// Install applies deploy/kubernetes as a person does, but that the agents see the disks of their
// own node alone, and waits until all hosts are connected and have reported their disks.
func (c *Cluster) Install(t hosts.T) {
	t.Helper()
	c.ApplyHoldfast(t)
	c.AwaitPods(t, "holdfast-system", "app.kubernetes.io/name=holdfast-operator", 2)
	c.AwaitPods(t, "holdfast-system", "app.kubernetes.io/name=holdfast-agent", len(c.nodes))
	await(t, "all hosts to be connected, with their disks", func(ctx context.Context) error {
		out, err := c.Try(ctx, "", "get", "hosts", "-o",
			`jsonpath={range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="AgentConnected")].status} {.status.devices[*].id}{"\n"}{end}`)
		if err != nil {
			return err
		}
		for _, n := range c.nodes {
			if !strings.Contains(out, n.Name+" True "+n.diskIDs()) {
				return errors.New(out)
			}
		}
		return nil
	})
}

// ApplyHoldfast applies what Install does, and returns what kubectl says of each object.
func (c *Cluster) ApplyHoldfast(t hosts.T) string {
	t.Helper()
	manifests, err := c.manifests()
	if err != nil {
		t.Fatalf("kube: while reading the manifests: %v", err)
	}
	return c.Apply(t, manifests)
}

// Uninstall deletes what Install applied. The definitions of the kinds stay.
func (c *Cluster) Uninstall(t hosts.T) {
	t.Helper()
	manifests, err := c.manifests()
	if err != nil {
		t.Fatalf("kube: while reading the manifests: %v", err)
	}
	c.kubectl(t, manifests, "delete", "-f", "-")
}

func (n *Node) diskIDs() string {
	var ids []string
	for _, d := range n.disks() {
		ids = append(ids, d.ID())
	}
	return strings.Join(ids, " ")
}

// disks are the disks that the node was made with.
func (n *Node) disks() (all []*hosts.Disk) {
	for number := range n.cluster.diskCount {
		all = append(all, n.Disk(number))
	}
	return all
}

// manifests are all files of deploy/kubernetes, with the device filter of this cluster.
func (c *Cluster) manifests() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(root, "deploy/kubernetes/*.yaml"))
	if err != nil || len(files) == 0 {
		return "", errors.Join(err, errors.New("there are none"))
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		all.Write(text)
		all.WriteString("\n---\n")
	}
	const after = "        - {name: HOST_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}\n"
	if !strings.Contains(all.String(), after) {
		return "", errors.New("the agent's environment is not where it was")
	}
	filter := fmt.Sprintf("        - {name: HOLDFAST_DEVICE_FILTER, value: %q}\n", c.DeviceFilter())
	return strings.Replace(all.String(), after, after+filter, 1), nil
}

// Operator runs a command of holdfast in the operator's pod, as people do.
func (c *Cluster) Operator(ctx context.Context, args ...string) (string, error) {
	return c.Try(ctx, "", append([]string{
		"-n", "holdfast-system", "exec", "deploy/holdfast-operator", "--",
		"holdfast",
	}, args...)...)
}

// Pods are the pods of a namespace, by name.
func (p *Plane) Pods(t hosts.T, namespace string) map[string]core.Pod {
	t.Helper()
	all := map[string]core.Pod{}
	list, err := p.client.CoreV1().Pods(namespace).List(context.Background(), meta.ListOptions{})
	if err != nil {
		t.Fatalf("kube: while listing pods: %v", err)
	}
	for _, pod := range list.Items {
		all[pod.Name] = pod
	}
	return all
}
