package kube

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// everywhere is a pod of Holdfast's image on each node, and a service with the addresses of all of
// them.
const everywhere = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: web
        image: ` + Image + `
        imagePullPolicy: Never
        command: [python3, -u, -c]
        args:
        - |
          import http.server, os
          class Name(http.server.BaseHTTPRequestHandler):
              def do_GET(self):
                  self.send_response(200); self.end_headers(); self.wfile.write(os.environ["NODE"].encode())
          print("serving on " + os.environ["NODE"])
          http.server.HTTPServer(("", 8080), Name).serve_forever()
        env:
        - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        readinessProbe: {httpGet: {port: 8080}, periodSeconds: 1}
      - name: agent
        image: ` + Image + `
        imagePullPolicy: IfNotPresent
        command: [sleep, infinity]
        securityContext: {privileged: true}
        volumeMounts:
        - {name: data, mountPath: /var/lib/holdfast, mountPropagation: Bidirectional}
        - {name: dev, mountPath: /dev}
      volumes:
      - {name: data, hostPath: {path: /var/lib/holdfast, type: DirectoryOrCreate}}
      - {name: dev, hostPath: {path: /dev}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`

// TestBed shows that pods run as on real machines, which lose their power and come back, or are cut
// off.
func TestBed(t *testing.T) {
	step := stepper(t)
	k := New(t, Options{Nodes: 3, Disks: 1})
	step("three nodes are Ready")
	k.Apply(t, everywhere)
	pods := byNode(k.AwaitPods(t, "default", "app=web", 3))
	step("a pod on each is Ready")
	for node, pod := range pods {
		k.checkPod(t, node, pod)
	}
	checkService(t, k, pods)
	checkPrivileged(t, k, pods["h1"])
	step("pods do what they should")

	k.Node(2).PowerOff(t)
	k.Node(2).AwaitNotReady(t)
	step("a node without power is not Ready")
	if err := k.reach(pods["h1"], "h2", pods); err == nil {
		t.Error("the pod of a node without power answers")
	}
	k.Node(2).PowerOn(t)
	k.Node(2).AwaitReady(t)
	step("with power it is Ready again")
	pods = byNode(k.AwaitPods(t, "default", "app=web", 3))
	k.checkPod(t, "h2", pods["h2"])
	step("its pod is back")

	k.Node(3).Cut(t)
	k.Node(3).AwaitNotReady(t)
	k.Node(3).Restore(t)
	k.Node(3).AwaitReady(t)
	step("a node without a link was not Ready, and is Ready again")

	k.StopAPIServer(t)
	k.StartAPIServer(t)
	k.checkPod(t, "h1", pods["h1"])
	step("the API server was killed, and serves again")
}

// stepper returns a function that logs how long a step took.
func stepper(t *testing.T) func(what string) {
	last := time.Now()
	return func(what string) {
		t.Helper()
		t.Logf("%5.1f s: %s", time.Since(last).Seconds(), what)
		last = time.Now()
	}
}

// byNode is for pods of which each node has one.
func byNode(pods []core.Pod) map[string]core.Pod {
	all := map[string]core.Pod{}
	for _, pod := range pods {
		all[pod.Spec.NodeName] = pod
	}
	return all
}

// checkPod checks that a pod has Holdfast and the storage systems, and that its log can be had.
func (c *Cluster) checkPod(t *testing.T, node string, pod core.Pod) {
	t.Helper()
	if out := c.Kubectl(t, "exec", pod.Name, "--", "ceph", "--version"); !strings.HasPrefix(out, "ceph version") {
		t.Errorf("on %s ceph --version says %q", node, out)
	}
	if out := c.Kubectl(t, "exec", pod.Name, "--", "holdfast", "version"); out == "" {
		t.Errorf("on %s holdfast has no version", node)
	}
	_, err := c.Try(t.Context(), "", "exec", pod.Name, "--", "timeout", "3", "getent", "hosts", "registry")
	if exitCode(err) != 2 {
		t.Errorf("on %s a name that cannot be found is not refused at once: %v", node, err)
	}
	if out := c.Kubectl(t, "logs", pod.Name); !strings.Contains(out, "serving on "+node) {
		t.Errorf("the log of the pod on %s is %q", node, out)
	}
}

// checkPrivileged checks that a privileged pod has the node's disks, and that what it mounts is
// mounted on the node.
func checkPrivileged(t *testing.T, k *Cluster, pod core.Pod) {
	t.Helper()
	in := func(args ...string) string {
		return k.Kubectl(t, append([]string{"exec", pod.Name, "-c", "agent", "--"}, args...)...)
	}
	in("mkdir", "/var/lib/holdfast/brick")
	in("mkfs.xfs", "-q", k.Node(1).Disk(0).Path())
	in("mount", k.Node(1).Disk(0).Path(), "/var/lib/holdfast/brick")
	if kind := k.Node(1).Run(t, t.Context(), "stat", "-f", "-c", "%T", "/var/lib/holdfast/brick"); kind != "xfs" {
		t.Errorf("what a pod mounted with XFS is %s on the node", kind)
	}
	k.Node(1).Run(t, t.Context(), "umount", "/var/lib/holdfast/brick")
	if kind := in("stat", "-f", "-c", "%T", "/var/lib/holdfast/brick"); kind == "xfs" {
		t.Error("what the node unmounted stays mounted in the pod")
	}
}

// checkService checks that a pod reaches those of all nodes, by their own addresses and by that of
// a service.
func checkService(t *testing.T, k *Cluster, pods map[string]core.Pod) {
	t.Helper()
	for node := range pods {
		if err := k.reach(pods["h1"], node, pods); err != nil {
			t.Errorf("the pod on h1 does not reach that on %s: %v", node, err)
		}
	}
	service, err := k.Client().CoreV1().Services("default").Get(t.Context(), "web", meta.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the service to answer for each node", func(context.Context) error {
		answers := map[string]bool{}
		for range 20 {
			answer, err := k.fetch(pods["h1"], service.Spec.ClusterIP)
			if err != nil {
				return err
			}
			answers[answer] = true
		}
		if len(answers) != len(pods) {
			return fmt.Errorf("it answers for %v", answers)
		}
		return nil
	})
}

// exitCode is that of a command in a pod, as kubectl passes it on.
func exitCode(err error) int {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// reach checks that a pod reaches the one on a node.
func (c *Cluster) reach(from core.Pod, node string, pods map[string]core.Pod) error {
	answer, err := c.fetch(from, pods[node].Status.PodIP+":8080")
	if err == nil && answer != node {
		err = errors.New(answer + " answers")
	}
	return err
}

func (c *Cluster) fetch(from core.Pod, address string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return c.Try(ctx, "", "exec", from.Name, "--", "python3", "-c",
		"import urllib.request; print(urllib.request.urlopen('http://"+address+"', timeout=3).read().decode())")
}
